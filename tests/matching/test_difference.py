"""What became of matches agrees with sets counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.errors import InputError
from stiefelsync.matching.difference import Difference, difference
from stiefelsync.matching.matchings import Matchings


def as_set(matchings: Matchings) -> set[tuple[int, int]]:
    return set(map(tuple, matchings.endpoints.tolist()))


def tracks(points: int, matches: set[tuple[int, int]]) -> list[set[int]]:
    """Connected components, slowly: sets are merged match by match."""
    found = [{p} for p in range(points)]
    for a, b in matches:
        one, other = (next(track for track in found if p in track) for p in (a, b))
        if one is not other:
            found.remove(other)
            one |= other
    return found


def labelled(seed: int) -> tuple[Matchings, np.ndarray]:
    """A noisy problem and a labelling with some points unmatched."""
    problem, truth = synthetic(8, 6, 0.7, 0.3, rng=seed)
    labels = np.where(np.random.default_rng(seed).random(len(truth)) < 0.2, -1, truth)
    return problem, labels


@pytest.mark.parametrize("adds", [True, False])
@pytest.mark.parametrize("as_labels", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_every_number_is_that_of_the_sets(seed: int, as_labels: bool, adds: bool) -> None:
    problem, labels = labelled(seed)
    answer = Matchings.from_labels(labels, problem.sizes)
    found = difference(problem, labels if as_labels else answer, adds=adds)
    before, all_after = as_set(problem), as_set(answer)
    after = all_after if adds else before & all_after
    assert as_set(problem.keep(found.kept)) == before & all_after
    assert as_set(found.added) == all_after - before
    assert as_set(found.all_matches) == all_after
    assert as_set(found.matches_after) == after
    assert (found.n_kept, found.n_added) == (len(before & all_after), len(all_after - before))
    counts = found.counts
    assert (counts.before, counts.kept, counts.removed) == (len(before), found.n_kept, len(before - all_after))
    assert (counts.added, counts.after, counts.adds) == (found.n_added, len(after), adds)
    owner = problem.point_objects.tolist()
    for side, matches, told in (
        (found.before, before, counts.conflicts_before),
        (found.after, after, counts.conflicts_after),
    ):
        expected = tracks(problem.n_points, matches)
        broken = [len({owner[p] for p in track}) < len(track) for track in expected]
        assert side.matches == len(matches)
        assert {frozenset(np.flatnonzero(side.track == t).tolist()) for t in range(len(side.lengths))} == {
            frozenset(track) for track in expected
        }
        assert side.lengths.tolist() == np.bincount(side.track).tolist()
        assert side.tracks == sum(len(track) > 1 for track in expected)
        assert side.matched_points == sum(len(track) for track in expected if len(track) > 1)
        assert told == side.conflicts == sum(broken) == side.conflicted.sum()
        assert all(broken[expected.index(t)] == side.conflicted[side.track[min(t)]] for t in expected)
    assert counts.conflicts_before > 0 == counts.conflicts_after


def test_an_answer_that_contradicts_itself_is_counted_as_such() -> None:
    problem, _ = labelled(0)
    found = difference(problem, problem)
    assert (found.n_kept, found.n_added) == (problem.n_matches, 0)
    assert found.counts.conflicts_after == found.counts.conflicts_before > 0


def test_nothing_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, labels = labelled(1)
    found = difference(problem, labels, adds=False)
    first = found.before, found.after, found.added, found.counts
    monkeypatch.setattr("stiefelsync.matching.difference.components", None)
    assert all(a is b for a, b in zip(first, (found.before, found.after, found.added, found.counts), strict=True))


@pytest.mark.parametrize("sizes", [[], [3, 0]])
def test_nothing_makes_no_difference(sizes: list[int]) -> None:
    problem = Matchings.from_pairs({}, sizes)
    for after in (problem, np.full(sum(sizes), -1)):
        found: Difference = difference(problem, after)
        assert (found.counts.before, found.counts.after, found.before.tracks, found.after.tracks) == (0, 0, 0, 0)


def test_other_objects_are_refused() -> None:
    before, _ = labelled(0)
    with pytest.raises(InputError, match="the matches after have 2 objects, those before 6"):
        difference(before, Matchings.from_labels([0, 0], [1, 1]))


def test_matches_after_are_found_by_name_and_may_lack_what_is_unmatched() -> None:
    before = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0]]}, [2, 2, 1], names=["a", "b", "c"])
    found = difference(before, Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], names=["b", "a"]))
    assert found.kept.tolist() == [True, False, False]
    assert found.n_added == 0
    with pytest.raises(InputError, match="about 'x', which those before do not know"):
        difference(before, Matchings.from_labels([0, 0], [1, 1], names=["a", "x"]))
    with pytest.raises(InputError, match="'c' has 2 points after and 1 before"):
        difference(before, Matchings.from_labels([0, 0, 1], [1, 2], names=["a", "c"]))


def test_where_one_side_has_no_names_objects_are_told_apart_by_number() -> None:
    bare = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])
    named = Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2], names=["a", "b"])
    assert difference(bare, named).kept.tolist() == [True, False]
    assert difference(named, bare).kept.tolist() == [True]


@pytest.mark.parametrize("high", [2**31 - 1, 2**62])
def test_labels_far_above_their_number(high):
    """They were counted one by one up to the highest: 16 GiB."""
    problem, labels = labelled(0)
    far = np.where(labels >= 0, high - labels, -1)
    found, plain = difference(problem, far), difference(problem, labels)
    assert found.counts == plain.counts
    np.testing.assert_array_equal(found.kept, plain.kept)
    np.testing.assert_array_equal(found.after.track, plain.after.track)
    with pytest.raises(InputError, match="labels hold -7; the least is -1, unmatched"):
        difference(problem, np.full(problem.n_points, -7))
