"""Score, objective and cycle error against brute force, and their invariances."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stiefelsync import InputError
from stiefelsync.datasets import scene, synthetic
from stiefelsync.matching import CycleError, Matchings, Score, cycle_error, objective, score
from tests.matching.strategies import labellings, problems


def match_set(side: np.ndarray | Matchings, sizes: list[int]) -> set[tuple[int, int]]:
    matchings = side if isinstance(side, Matchings) else Matchings.from_labels(side, sizes)
    return set(map(tuple, matchings.endpoints.tolist()))


@given(st.data())
def test_score_counts_matches(data: st.DataObject) -> None:
    truth, sizes = data.draw(labellings())
    answer, _ = data.draw(labellings(sizes))
    A, T = match_set(answer, sizes), match_set(truth, sizes)
    expected = Score(
        precision=len(A & T) / len(A) if A else 1.0,
        recall=len(A & T) / len(T) if T else 1.0,
        fscore=2 * len(A & T) / (len(A) + len(T)) if A or T else 1.0,
    )
    for left, right in itertools.product(
        (answer, Matchings.from_labels(answer, sizes)), (truth, Matchings.from_labels(truth, sizes))
    ):
        assert score(left, right) == expected


@given(labellings(), st.randoms(use_true_random=False))
def test_score_ignores_the_names_of_universe_points(drawn: tuple[np.ndarray, list[int]], random: object) -> None:
    truth, _ = drawn
    names = list(range(20))
    random.shuffle(names)  # type: ignore[attr-defined]
    answer = np.where(truth >= 0, np.array(names)[truth], -1)
    assert score(answer, truth) == Score(1.0, 1.0, 1.0)


def test_score_is_invariant_under_permuting_points() -> None:
    _, truth = synthetic(10, 6, 0.7, 0.5, rng=3)
    order = np.random.default_rng(0).permutation(len(truth))
    answer = np.random.default_rng(1).permutation(truth)
    assert score(answer[order], truth[order]) == score(answer, truth)


def test_score_needs_no_pairs() -> None:
    # 200 universe points seen 10,000 times each stand for ten billion matches.
    truth = np.tile(np.arange(200), 10_000)
    start = time.perf_counter()
    assert score(truth, truth) == Score(1.0, 1.0, 1.0)
    assert time.perf_counter() - start < 20


def test_score_and_objective_refuse_what_does_not_fit() -> None:
    problem = Matchings.from_labels([0, 0], [1, 1])
    with pytest.raises(InputError, match=r"^the answer has 3 points but the truth has 2; both must describe the same"):
        score([0, 0, 1], problem)
    with pytest.raises(InputError, match=r"^the answer and the truth have objects of different sizes$"):
        score(problem, Matchings.from_labels([0, 1], [2]))
    with pytest.raises(InputError, match=r"^labels must be one whole number per point, got float64 of shape"):
        score([0.5, 1.0], problem)
    with pytest.raises(InputError, match=r"^2 points need 2 labels, got shape \(1,\)$"):
        objective([0], problem)


@given(problems(), st.data())
def test_objective_is_the_trace(problem: Matchings, data: st.DataObject) -> None:
    assume(problem.n_objects)
    labels, _ = data.draw(labellings(problem.sizes.tolist()))
    alone = labels < 0
    full = np.where(alone, labels.max(initial=0) + 1 + np.cumsum(alone), labels)
    P = np.eye(full.max(initial=0) + 1)[full]
    expected = np.trace(P.T @ problem.to_matrix().toarray() @ P)
    assert objective(labels, problem) == pytest.approx(expected, rel=1e-12)


def brute_cycle_error(problem: Matchings) -> float:
    partner: dict[tuple[int, int], dict[int, int]] = {}
    for (i, j), block in problem.pairs().items():
        partner[i, j], partner[j, i] = dict(block.tolist()), dict(block[:, ::-1].tolist())
    counts = {True: 0, False: 0}
    for i, j in problem.pairs():
        for l in range(problem.n_objects):
            if (i, l) in partner and (l, j) in partner:
                for a, c in partner[i, l].items():
                    b = partner[l, j].get(c)
                    if b is not None and (a in partner[i, j] or b in partner[j, i]):
                        counts[partner[i, j].get(a) == b] += 1
    return counts[False] / max(sum(counts.values()), 1)


@given(problems())
def test_cycle_error_is_the_definition(problem: Matchings) -> None:
    found = cycle_error(problem)
    assert found.exact
    assert found.standard_error == 0
    assert float(found) == brute_cycle_error(problem)


@given(labellings())
def test_consistent_matchings_have_no_cycle_error(drawn: tuple[np.ndarray, list[int]]) -> None:
    problem = Matchings.from_labels(*drawn)
    assert cycle_error(problem).value == 0
    # Missing matches contradict nothing.
    assert cycle_error(problem.keep(np.arange(problem.n_matches) % 3 > 0)).value == 0


def test_cycle_error_without_the_dense_table_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = synthetic(12, 9, 0.6, 0.4, noise="mix", rng=1)
    exact = cycle_error(problem)
    monkeypatch.setattr("stiefelsync.matching.metrics._DENSE", 0)
    monkeypatch.setattr("stiefelsync.matching.metrics._CHUNK", 17)
    assert cycle_error(problem) == exact


@pytest.mark.parametrize("enumerated", [4_000_000, 0])
def test_sampled_cycle_error_covers_the_exact_one(enumerated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = synthetic(10, 24, 0.7, 0.4, rng=2)
    exact = cycle_error(problem)
    monkeypatch.setattr("stiefelsync.matching.metrics._ENUMERATED", enumerated)
    samples = [cycle_error(problem, max_triplets=150, rng=seed) for seed in range(40)]
    assert all(not s.exact and s.triplets == 150 for s in samples)
    deviation = np.array([s.value - exact.value for s in samples])
    error = np.array([s.standard_error for s in samples])
    # Forty standardised deviations: their mean is near 0, nearly all lie within two and a half.
    assert abs((deviation / error).mean()) < 0.6
    assert (abs(deviation) < 2.5 * error).mean() > 0.9
    assert cycle_error(problem, max_triplets=150, rng=0) == samples[0]


def test_cycle_error_of_nothing_and_of_a_scene() -> None:
    assert cycle_error(Matchings.from_pairs({}, [])) == CycleError(0.0, 0.0, 0, True, 0)
    noisy, _ = scene(2_000, 40, 100, 250, 0.3, 0.3, rng=0)
    clean, _ = scene(2_000, 40, 100, 250, 0.0, 0.3, rng=0)
    assert cycle_error(clean).value == 0
    assert 0.4 < cycle_error(noisy).value < 0.8
    with pytest.raises(InputError, match=r"^max_triplets must be at least 2, got 1$"):
        cycle_error(noisy, max_triplets=1)
