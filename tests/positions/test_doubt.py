"""Witnesses against a slow oracle, and which matches and pairs are doubted."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given

from stiefelsync import Matchings, synchronise
from stiefelsync.errors import InputError
from stiefelsync.positions import doubt as module
from stiefelsync.positions.doubt import doubt, witnesses
from stiefelsync.positions.neighbours import neighbour_support
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
    expected = slow_witnesses(problem)
    found = witnesses(problem)
    assert list(zip(found.agree.tolist(), found.differ.tolist(), found.silent.tolist(), strict=True)) == expected


@given(problems())
def test_only_matches_that_are_kept_are_asked_and_speak(problem: Matchings) -> None:
    kept = np.random.default_rng(problem.n_matches).random(problem.n_matches) < 0.7
    expected, left = np.zeros((problem.n_matches, 3), dtype=int), slow_witnesses(problem.keep(kept))
    expected[kept] = np.array(left, dtype=int).reshape(-1, 3)
    degree = np.bincount(problem.endpoints[kept].ravel(), minlength=problem.n_points)
    others = (degree[problem.endpoints] - kept[:, None] > 0).all(axis=1)
    asked = np.arange(problem.n_matches) % 3 > 0
    found, few = witnesses(problem, kept), witnesses(problem, kept, asked)
    np.testing.assert_array_equal(module._others(problem, kept), others)
    np.testing.assert_array_equal(np.stack([found.agree, found.differ, found.silent], axis=1), expected)
    np.testing.assert_array_equal(np.stack([few.agree, few.differ, few.silent], axis=1), expected * asked[:, None])


def views(k: int = 10, n: int = 300, *, bad: float, wrong: float, seed: int = 0) -> tuple[Matchings, np.ndarray]:
    """Return views of a relief in which a share of the pairs is mostly wrong, and which matches are right.

    A third of the points of an image are of nothing that others see; wrong matches lead to points that are free.
    """
    rng = np.random.default_rng(seed)
    relief, extra = np.column_stack([rng.uniform(0, 1000, (n, 2)), rng.uniform(0, 60, n)]), n // 2
    places, pairs = [], {}
    for i in range(k):
        turned = relief[:, :2] * (1 + 0.01 * i) + 15 * i + np.outer(relief[:, 2], [0.1 * i, 0.05 * i])
        places.append(np.vstack([turned + rng.normal(size=(n, 2)) / 2, rng.uniform(0, 1000, (extra, 2))]))
    for i in range(k):
        for j in range(i + 1, k):
            hopeless = rng.random() < bad
            seen = np.flatnonzero(rng.random(n) < (0.15 if hopeless else 0.6))
            free = np.setdiff1d(np.arange(n + extra), seen)
            count = min(round(len(seen) * (4 if hopeless else wrong / (1 - wrong))), len(free))
            one, two = (rng.choice(free, count, replace=False) for _ in range(2))
            pairs[i, j] = np.vstack([np.stack([seen, seen], axis=1), np.stack([one, two], axis=1)])
    problem = Matchings.from_pairs(pairs, [n + extra] * k, coordinates=np.concatenate(places))
    return problem, (problem.indices[:, 0] == problem.indices[:, 1]) & (problem.indices[:, 0] < n)


def judged(problem: Matchings) -> tuple[np.ndarray, module.Doubt]:
    kept = problem.agreeing(synchronise(problem, method="tracks", doubt=0).labels)
    return kept, doubt(problem, kept, neighbour_support(problem))


@pytest.mark.parametrize(("bad", "wrong"), [(0.0, 0.0), (0.0, 0.05), (0.1, 0.2), (0.4, 0.05), (0.6, 0.05)])
def test_the_wrong_share_of_every_pair_is_estimated(bad: float, wrong: float) -> None:
    problem, right = views(bad=bad, wrong=wrong)
    _, found = judged(problem)
    pair, n = problem.match_pairs, len(problem.pair_objects)
    true = np.bincount(pair, ~right, n) / np.bincount(pair, minlength=n)
    assert np.sqrt(np.mean((found.wrong - true) ** 2)) <= 0.1
    assert not found.hopeless[true < 0.4].any()


@pytest.mark.parametrize("seed", range(3))
def test_doubts_remove_more_wrong_matches_than_right_ones(seed: int) -> None:
    problem, right = views(bad=0.4, wrong=0.05, seed=seed)
    answers = [synchronise(problem, method="tracks", doubt=harm).labels for harm in (0, 1)]
    trusting, doubting = (problem.agreeing(labels) for labels in answers)
    lost = trusting & ~doubting
    assert (lost & ~right).sum() > (lost & right).sum() > 0
    assert right[doubting].mean() > right[trusting].mean()


@pytest.mark.parametrize("seed", range(3))
def test_bad_pairs_are_hopeless_where_single_matches_are_not_doubted(seed: int) -> None:
    # As on grids: what is doubtful of a bad pair would stay, and counts against it.
    problem, right = views(bad=0.1, wrong=0.05, seed=seed)
    kept = right | (np.random.default_rng(seed).random(problem.n_matches) < 0.6)
    support = np.where(right, 0.8, 0.1)
    found = doubt(problem, kept, support, harm=1e-9)
    pair, n = problem.match_pairs[kept], len(problem.pair_objects)
    left = np.bincount(pair, ~right[kept], n) / np.maximum(np.bincount(pair, minlength=n), 1)
    bad = left > 0.6
    assert bad.any()
    assert found.hopeless[bad].mean() >= 0.5  # as many as may be lost in right matches
    assert not found.hopeless[left < 0.1].any()
    np.testing.assert_array_equal(found.matches, kept & found.hopeless[problem.match_pairs])


def test_matches_that_agree_are_not_doubted() -> None:
    problem, right = views(bad=0, wrong=0)
    kept, found = judged(problem)
    assert kept.all()
    assert right.all()
    assert not found.matches.any()
    assert (found.wrong < 0.01).all()


def test_more_harm_more_doubts() -> None:
    problem, _ = views(bad=0.3, wrong=0.1)
    kept, support = judged(problem)[0], neighbour_support(problem)
    counts = [doubt(problem, kept, support, harm=harm).matches.sum() for harm in (0.1, 1, 10)]
    assert counts[0] < counts[1] < counts[2]


def test_confirmation_halves_the_odds() -> None:
    # Four objects see 60 points. Twenty more, of little support, are in three of them; ten of these close no triangle.
    labels = np.tile(np.arange(80), 4).reshape(4, 80)
    labels[3, 60:] = -1
    problem = Matchings.from_labels(labels.ravel(), [80] * 4)
    point, (i, j) = problem.indices[:, 0], problem.pair_objects[problem.match_pairs].T
    problem = problem.keep((point < 70) | (i == 0))
    point, (i, j) = problem.indices[:, 0], problem.pair_objects[problem.match_pairs].T
    kept = ~((point >= 60) & (point < 64) & (i == 0) & (j == 1))  # contradicted
    odds = doubt(problem, kept, np.where(point >= 60, 0.1, 0.8)).odds
    for pair in (0, 1):
        first = (i == 0) & (j == pair + 1)
        confirmed, alone = odds[first & (point >= 64) & (point < 70)], odds[first & (point >= 70)]
        assert confirmed.min() == confirmed.max() > 0
        np.testing.assert_allclose(alone, 2 * confirmed[0])
    assert (odds[point < 60] == 0).all()


@pytest.mark.parametrize(("bad", "wrong"), [(0.0, 0.02), (0.1, 0.0)])
def test_third_objects_are_spared_where_they_change_nothing(
    bad: float, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, _ = views(bad=bad, wrong=wrong)
    found = judged(problem)[1]
    monkeypatch.setattr(module, "_decisive", lambda _, kept, *__: kept)
    asked = judged(problem)[1]
    np.testing.assert_array_equal(found.matches, asked.matches)
    np.testing.assert_array_equal(found.hopeless, asked.hopeless)
    assert (found.odds >= asked.odds).all()


@pytest.mark.parametrize(("bad", "wrong"), [(0.0, 0.05), (0.1, 0.2), (0.2, 0.02), (0.4, 0.05), (0.6, 0.05)])
def test_without_estimates_fewer_are_asked_and_doubts_are_the_same(
    bad: float, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, _ = views(bad=bad, wrong=wrong)
    kept, support = judged(problem)[0], neighbour_support(problem)
    kept &= np.random.default_rng(0).random(len(kept)) < 0.97 + 0.03 * support  # so that all levels of support differ
    asked, ask = [], module.witnesses

    def noted(matchings: Matchings, kept: np.ndarray, which: np.ndarray) -> module.Witnesses:
        asked[-1] += np.count_nonzero(kept & which)
        return ask(matchings, kept, which)

    monkeypatch.setattr(module, "CLEAN", 0)
    left = 1 - 1 / (1 + doubt(problem, kept, support).odds[kept])
    monkeypatch.setattr(module, "witnesses", noted)
    # Where those asked leave it open whether few wrong matches are left, all others are asked, too.
    for times in (0.01, 0.5, 0.9, 0.999, 1.001, 1.1, 2):
        monkeypatch.setattr(module, "CLEAN", times * left.mean())
        for harm in (0.2, 1.0, 5.0, 1e4):
            found = []
            for estimates in (True, False):
                asked.append(0)
                found.append(doubt(problem, kept, support, harm=harm, estimates=estimates))
            np.testing.assert_array_equal(found[0].matches, found[1].matches)
            np.testing.assert_array_equal(found[0].hopeless, found[1].hopeless)
            assert (found[0].odds <= found[1].odds).all()
    assert 0 < sum(asked[1::2]) < sum(asked[::2])


def contradicted(level: np.ndarray, kept: np.ndarray, n: int) -> np.ndarray:
    """Return the share of every level that is not kept, made to fall."""
    return module._contradicted(np.bincount(level[~kept], minlength=n), np.bincount(level, minlength=n))


@pytest.mark.parametrize("n", [100, 101, 4321])
def test_quantiles_of_support_are_those_of_numpy(n: int) -> None:
    rng = np.random.default_rng(n)
    few, many = rng.integers(1, 17, n) / 16, rng.random(n)
    for support in (few, many, many**20, rng.beta(8, 2, n), np.full(n, 0.3)):
        np.testing.assert_allclose(
            module._quantiles(support), np.quantile(support, module._QUANTILES_OF_SUPPORT), rtol=1e-15
        )


def test_rates_fall_with_support() -> None:
    level, kept = np.repeat(np.arange(4), 10), np.tile(np.arange(10), 4) >= np.repeat([5, 2, 3, 0], 10)
    np.testing.assert_allclose(contradicted(level, kept, 4), [0.5, 0.25, 0.25, 0], atol=1e-9)


def test_a_level_without_matches_counts_with_the_next() -> None:
    level, kept = np.repeat([0, 2], 10), np.tile(np.arange(10), 2) >= np.repeat([5, 2], 10)
    np.testing.assert_allclose(contradicted(level, kept, 4), [0.5, 0.2, 0.2, 0], atol=1e-9)


def test_nothing_is_doubted_without_examples() -> None:
    problem = Matchings.from_labels(np.tile(np.arange(10), 4), [10] * 4)
    everything = np.ones(problem.n_matches, dtype=bool)
    found = doubt(problem, everything, np.zeros(problem.n_matches))
    assert not found.matches.any()
    assert not found.hopeless.any()


@pytest.mark.parametrize("harm", [0.0, -0.1, float("inf"), float("nan")])
def test_harm_out_of_range_is_refused(harm: float) -> None:
    problem = Matchings.from_labels(np.tile(np.arange(10), 4), [10] * 4)
    with pytest.raises(InputError, match="harm of a wrong match is"):
        doubt(problem, np.ones(problem.n_matches, dtype=bool), np.zeros(problem.n_matches), harm=harm)
    if harm:
        with pytest.raises(InputError, match="doubt is"):
            synchronise(problem, method="tracks", doubt=harm)


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
    doubting, trusting = (synchronise(problem, method="tracks", doubt=level) for level in (1, 0))
    kept = [problem.agreeing(answer.labels) for answer in (doubting, trusting)]
    assert right[kept[0]].mean() >= right[kept[1]].mean()
    matches = doubting.outcome.details.matches_by_rule
    assert sum(asdict(matches).values()) == problem.n_matches
    assert matches.consistent + matches.kept == kept[0].sum()
    assert trusting.outcome.details.hopeless == ()
    figures = doubting.as_dict()
    assert figures.get("hopeless_pairs", []) == [[str(i), str(j)] for i, j in doubting.outcome.details.hopeless]


def test_pairs_with_more_contradictions_than_due_are_trusted_less() -> None:
    """λ of a pair: its contradictions over those due by the supports of its matches, one reckoned among both."""
    problem, _ = views(bad=0.1, wrong=0.1)
    support = neighbour_support(problem)
    rng = np.random.default_rng(0)
    kept = rng.random(problem.n_matches) > np.where(support > 0.5, 0.05, 0.4)
    moving = np.isfinite(support) & (support > 0)
    found = module._rates(problem, kept, support)
    assert found is not None
    rates = found[1][found[0]] * found[2][problem.match_pairs]
    # Two matches of one level of support differ by λ alone; the level of the smallest supports has odds above zero.
    degree = np.bincount(problem.endpoints[kept].ravel(), minlength=problem.n_points)
    speak = moving & (degree[problem.endpoints].min(axis=1) - kept > 0)
    levels = np.unique(np.quantile(support[speak & kept], module._QUANTILES_OF_SUPPORT))
    level = np.searchsorted(levels, np.where(moving, support, np.inf), side="right")
    share = contradicted(level[moving], kept[moving], len(levels) + 1)
    pair = problem.match_pairs
    expected = np.where(moving, share[level], 0.0)
    still = np.isfinite(support) & ~moving
    expected[still] = np.mean(~kept[still]) if still.any() else 0.0
    known = np.isfinite(support)
    some = np.flatnonzero(moving & (level == 0))
    factor = [
        (np.sum(~kept[(pair == one) & known]) + 1) / (np.sum(expected[(pair == one) & known]) + 1) for one in pair[some]
    ]
    assert len(some) > 5
    np.testing.assert_allclose(rates[some] / rates[some[0]], np.array(factor) / factor[0])
    # And in all: the odds of contradiction of that level, less those of well-supported matches, times λ.
    lost = contradicted(level[speak], kept[speak], len(levels) + 1)
    assert 0 < lost[-1] < lost[0]
    odds = lost[0] / (1 - lost[0]) - lost[-1] / (1 - lost[-1])
    np.testing.assert_allclose(rates[some], odds * np.array(factor))


@given(problems())
def test_matches_are_judged_that_third_objects_speak_of(problem: Matchings) -> None:
    rng = np.random.default_rng(problem.n_matches)
    kept, which = rng.random((2, problem.n_matches)) < 0.8
    support = np.where(rng.random(problem.n_matches) < 0.2, np.nan, 0.5)
    before = np.where(kept, 1.0, np.inf)
    odds, found = before.copy(), witnesses(problem, kept, which)
    judged = module._ask(problem, kept, support, odds, which)
    for n in range(problem.n_matches):
        spoken = found.agree[n] or found.differ[n] or found.silent[n]
        assert judged[n] == bool(kept[n] and not np.isnan(support[n]) and spoken)
        assert odds[n] == before[n] / 2.0 ** found.agree[n]


def test_more_matches_than_can_be_counted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Matchings.from_labels([0, 0, 0], [1, 1, 1])
    monkeypatch.setattr(module, "_MAX_MATCHES", 3)
    with pytest.raises(InputError, match="3 matches are more than the 2 that can be doubted at once"):
        witnesses(problem)
