"""Score, objective and cycle error against brute force, and their invariances."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stiefelsync import InputError
from stiefelsync.datasets import scene, synthetic
from stiefelsync.matching import CycleError, Matchings, Score, cycle_error, objective, score
from stiefelsync.matching.metrics import _triplets
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


def test_score_of_nothing() -> None:
    assert score([], []) == Score(1.0, 1.0, 1.0)


def test_score_needs_no_pairs() -> None:
    # 200 universe points seen 10,000 times each stand for ten billion matches.
    truth = np.tile(np.arange(200), 10_000)
    tracemalloc.start()
    try:
        assert score(truth, truth) == Score(1.0, 1.0, 1.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(truth)  # bytes; the matches would be 5,000 times as many as the points


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


def brute_triplets(problem: Matchings) -> dict[tuple[int, int, int], tuple[int, int]]:
    """Return (confirmed, contradicted) composed matches of every object triplet whose three pairs have matches."""
    partner: dict[tuple[int, int], dict[int, int]] = {}
    for (i, j), block in problem.pairs().items():
        partner[i, j], partner[j, i] = dict(block.tolist()), dict(block[:, ::-1].tolist())
    found = {}
    for triplet in itertools.combinations(range(problem.n_objects), 3):
        if not all(pair in partner for pair in itertools.combinations(triplet, 2)):
            continue
        counts = {True: 0, False: 0}
        for l in triplet:
            i, j = (o for o in triplet if o != l)
            for a, c in partner[i, l].items():
                b = partner[l, j].get(c)
                if b is not None and (a in partner[i, j] or b in partner[j, i]):
                    counts[partner[i, j].get(a) == b] += 1
        found[triplet] = counts[True], counts[False]
    return found


@given(problems())
def test_cycle_error_is_the_definition(problem: Matchings) -> None:
    found, counts = cycle_error(problem), brute_triplets(problem)
    assert found.exact
    assert found.standard_error == 0
    assert found.triplets == len(counts)
    assert found.judged == sum(map(sum, counts.values()))
    assert float(found) == sum(no for _, no in counts.values()) / max(found.judged, 1)


@pytest.mark.parametrize("n", [2, 7, 60])
def test_sampled_cycle_error_is_the_ratio_estimator(n: int) -> None:
    problem, _ = synthetic(8, 12, 0.8, 0.4, rng=5)
    counts = brute_triplets(problem)
    for seed in range(3):
        found = cycle_error(problem, max_triplets=n, rng=seed)
        drawn, exact = _triplets(problem, n, np.random.default_rng(seed))
        assert not exact
        assert len(set(map(tuple, drawn.tolist()))) == n == found.triplets
        units = [counts[tuple(triplet)] for triplet in drawn.tolist()]
        total = sum(yes + no for yes, no in units)
        ratio = sum(no for _, no in units) / total
        squares = sum((no - ratio * (yes + no)) ** 2 for yes, no in units)
        assert (found.value, found.judged) == (pytest.approx(ratio), total)
        assert found.standard_error == pytest.approx(math.sqrt(n / (n - 1) * squares) / total)


def test_by_default_as_many_triplets_as_take_a_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = synthetic(8, 12, 0.6, 0.4, rng=5)
    per_pair = problem.n_matches / len(problem.pairs())
    for dense, budget in ((True, 700), (False, 400)):
        monkeypatch.setattr("stiefelsync.matching.metrics._MAX_COMPOSED", {dense: budget})
        monkeypatch.setattr("stiefelsync.matching.metrics._MAX_TABLE_ENTRIES", problem.n_points * 12 - (not dense))
        found = cycle_error(problem)
        assert (found.triplets, found.exact) == (int(budget / (3 * per_pair)), False)
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_COMPOSED", {False: 1})
    assert cycle_error(problem).triplets == 2  # never fewer, or there is no standard error
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_COMPOSED", {False: 15})
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_TABLE_ENTRIES", 0)
    assert cycle_error(Matchings.from_labels([0] * 9, [1] * 9)).triplets == 5


def test_as_many_triplets_as_there_are_is_all_of_them() -> None:
    problem = Matchings.from_labels([0] * 5, [1] * 5)
    assert cycle_error(problem, max_triplets=10).exact
    assert not cycle_error(problem, max_triplets=9).exact


def test_many_wedges_are_drawn_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = synthetic(8, 12, 0.6, 0.4, rng=5)
    wedges = {(i, j, l) for i, j in problem.pairs() for j2, l in problem.pairs() if j2 == j}
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_LISTED_TRIPLETS", len(wedges) - 1)
    drawn, exact = _triplets(problem, 50, np.random.default_rng(0))
    assert (len(drawn), exact) == (50, False)
    assert set(map(tuple, drawn.tolist())) <= set(brute_triplets(problem))
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_LISTED_TRIPLETS", len(wedges))
    assert _triplets(problem, len(wedges), np.random.default_rng(0))[1]


@given(labellings())
def test_consistent_matchings_have_no_cycle_error(drawn: tuple[np.ndarray, list[int]]) -> None:
    problem = Matchings.from_labels(*drawn)
    assert cycle_error(problem).value == 0
    # Missing matches contradict nothing.
    assert cycle_error(problem.keep(np.arange(problem.n_matches) % 3 > 0)).value == 0


def test_cycle_error_without_the_dense_table_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = synthetic(12, 9, 0.6, 0.4, noise="mix", rng=1)
    exact = cycle_error(problem)
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_TABLE_ENTRIES", 0)
    monkeypatch.setattr("stiefelsync.matching.metrics._COMPOSED_PER_CHUNK", 17)
    assert cycle_error(problem) == exact


@pytest.mark.parametrize("enumerated", [4_000_000, 0])
def test_sampled_cycle_error_covers_the_exact_one(enumerated: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, _ = synthetic(10, 24, 0.7, 0.4, rng=2)
    exact = cycle_error(problem)
    monkeypatch.setattr("stiefelsync.matching.metrics._MAX_LISTED_TRIPLETS", enumerated)
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
