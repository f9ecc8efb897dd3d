"""Witnesses against a slow oracle, and which matches and pairs are doubted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from stiefelsync import Matchings, synchronise
from stiefelsync.errors import InputError
from stiefelsync.matching import doubt as module
from stiefelsync.matching.doubt import doubt, witnesses
from tests.matching.strategies import problems


def slow_witnesses(problem: Matchings) -> list[tuple[int, int, int]]:
    partner: dict[int, dict[int, int]] = {point: {} for point in range(problem.n_points)}
    owner = problem.point_objects.tolist()
    for x, y in problem.endpoints.tolist():
        partner[x][owner[y]] = y
        partner[y][owner[x]] = x
    compared = {frozenset(pair) for pair in problem.pair_objects.tolist()}
    found = []
    for x, y in problem.endpoints.tolist():
        agree = differ = silent = 0
        for third in {*partner[x], *partner[y]} - {owner[x], owner[y]}:
            one, two = partner[x].get(third), partner[y].get(third)
            if one is not None and two is not None:
                agree, differ = agree + (one == two), differ + (one != two)
            else:
                silent += {owner[x], third} in compared and {owner[y], third} in compared
        found.append((agree, differ, silent))
    return found


@given(problems())
def test_witnesses_are_those_of_the_slow_way(problem: Matchings) -> None:
    found = witnesses(problem)
    assert list(zip(found.agree.tolist(), found.differ.tolist(), found.silent.tolist(), strict=True)) == slow_witnesses(
        problem
    )


def test_witnesses_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    problem = Matchings.from_labels(np.concatenate([rng.permutation(60)[:40] for _ in range(6)]), [40] * 6)
    problem = problem.keep(rng.random(problem.n_matches) < 0.7)
    whole = witnesses(problem)
    monkeypatch.setattr(module, "_LOOKUPS_PER_CHUNK", 7)
    parts = witnesses(problem)
    for name in ("agree", "differ", "silent"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))


def test_a_pair_with_little_support_is_doubted_as_a_whole() -> None:
    problem = Matchings.from_labels(np.tile(np.arange(50), 8), [50] * 8)
    pair = problem.match_pairs
    support = np.linspace(0.5, 1, problem.n_matches)
    support[pair == 2] = np.where(np.arange(50) < 30, 0.01, 0.9)
    found = doubt(problem, support)
    assert np.flatnonzero(found.hopeless).tolist() == [2]
    assert found.little[2] == pytest.approx(0.6)
    assert found.matches[pair == 2].all()
    support[pair == 2] = np.where(np.arange(50) < 20, 0.01, 0.9)
    assert not doubt(problem, support).hopeless.any()


def test_more_dissent_needs_more_support_and_triangles_need_less() -> None:
    # The bound of a match grows with third objects that know one of its points only, and falls with triangles.
    right = Matchings.from_labels(np.tile(np.append(np.arange(60), [-1] * 3), 5), [63] * 5)
    pairs = right.pairs()
    pairs[0, 1] = np.vstack([pairs[0, 1], [[60, 60], [61, 61]]])
    pairs[0, 2] = np.vstack([pairs[0, 2], [[61, 61]]])
    pairs[0, 3] = np.vstack([pairs[0, 3], [[61, 61]]])
    pairs[0, 4] = np.vstack([pairs[0, 4], [[61, 61]]])
    problem = Matchings.from_pairs(pairs, [63] * 5)
    support = np.linspace(0, 1, problem.n_matches)
    new = problem.indices[:, 0] >= 60
    support[new] = np.quantile(support[~new], 0.05)
    found = doubt(problem, support)
    assert not found.matches[problem.indices[:, 0] == 60].any()  # nobody could confirm it
    assert found.matches[problem.indices[:, 0] == 61].all()  # .05 < .03·(1 + 3)
    support[new] = np.quantile(support[~new], 0.2)
    assert not doubt(problem, support).matches[new].any()
    assert not found.matches[~new & (support > 0.02)].any()  # on three triangles .03/7 is enough


def test_nothing_is_doubted_without_examples_of_right_matches() -> None:
    problem = Matchings.from_labels(np.tile(np.arange(10), 4), [10] * 4)
    found = doubt(problem, np.zeros(problem.n_matches))
    assert not found.matches.any()
    assert not found.hopeless.any()


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, float("nan")])
def test_levels_out_of_range_are_refused(level: float) -> None:
    problem = Matchings.from_labels(np.tile(np.arange(10), 4), [10] * 4)
    with pytest.raises(InputError, match="level of doubt is"):
        doubt(problem, np.zeros(problem.n_matches), level=level)
    if level:
        with pytest.raises(InputError, match="level of doubt is"):
            synchronise(problem, method="tracks", doubt=level)


def smooth_views(k: int = 8, n: int = 400, seed: int = 3) -> tuple[Matchings, np.ndarray]:
    """Return k views of a plane with a tenth of the matches wrong, and all of the pair (0, 1)."""
    rng = np.random.default_rng(seed)
    plane = rng.uniform(0, 1000, (n, 2))
    places = np.concatenate([plane + 10 * i + rng.normal(size=(n, 2)) for i in range(k)])
    pairs, right = {}, []
    for i in range(k):
        for j in range(i + 1, k):
            target = np.arange(n)
            wrong = np.flatnonzero(rng.random(n) < (0.8 if (i, j) == (0, 1) else 0.05))
            # Wrong matches lead to near points, as repeated structure does.
            target[wrong] = np.roll(wrong[np.argsort(plane[wrong, 0])], 1)[np.argsort(np.argsort(plane[wrong, 0]))]
            pairs[i, j] = np.stack([np.arange(n), target], axis=1)
            right.append(target == np.arange(n))
    return Matchings.from_pairs(pairs, [n] * k, coordinates=places), np.concatenate(right)


def test_tracks_name_what_they_doubt() -> None:
    problem, right = smooth_views()
    doubting, trusting = (synchronise(problem, method="tracks", doubt=level) for level in (0.03, 0))
    kept = [problem.agreeing(answer.labels) for answer in (doubting, trusting)]
    assert right[kept[0]].mean() >= right[kept[1]].mean()
    matches = doubting.outcome.details["matches"]
    assert sum(matches.values()) == problem.n_matches
    assert matches["consistent"] + matches["kept"] == kept[0].sum()
    assert trusting.outcome.details["hopeless"] == []
    figures = doubting.as_dict()
    assert figures.get("hopeless_pairs", []) == [[str(i), str(j)] for i, j in doubting.outcome.details["hopeless"]]
