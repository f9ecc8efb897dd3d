"""The numbers of a report agree with sets of matches counted by hand."""

from __future__ import annotations

import base64
from itertools import pairwise

import numpy as np
import pytest

from stiefelsync.datasets import synthetic
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.report.collect import Change, change, match_matrix, worst_conflicts
from stiefelsync.report.viewer import choose_pairs, pack_objects, pack_pairs
from stiefelsync.sync.method import Outcome
from stiefelsync.sync.result import Synchronisation


def as_set(matchings: Matchings) -> set[tuple[int, int]]:
    return set(map(tuple, matchings.endpoints.tolist()))


def decoded(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


@pytest.fixture
def found(plain: Synchronisation) -> Change:
    return change(plain.input, plain)


def test_kept_removed_and_added_are_the_set_differences(plain: Synchronisation, found: Change) -> None:
    before, after = as_set(plain.input), as_set(plain.matchings())
    assert as_set(plain.input.keep(found.kept)) == before & after
    assert found.removed == len(before - after) > 0
    assert as_set(found.added) == after - before
    assert found.after.matches == len(after)


def test_matches_alone_give_the_same_difference_without_confidence(plain: Synchronisation, found: Change) -> None:
    other = change(plain.input, plain.matchings())
    assert np.array_equal(other.kept, found.kept)
    assert other.added == found.added
    assert other.support is None
    assert np.array_equal(found.support, plain.confidence)


def test_a_method_that_is_not_consistent_has_no_confidence(plain: Synchronisation) -> None:
    result = Synchronisation(plain.input, "same", Outcome(matchings=plain.input), 12)
    found = change(plain.input, result)
    assert found.support is None
    assert found.removed == 0
    assert found.after.conflicts == found.before.conflicts > 0


def test_tracks_after_are_the_labels_seen_twice(plain: Synchronisation, found: Change) -> None:
    counts = np.bincount(plain.labels)
    assert found.after.tracks == (counts > 1).sum()
    assert found.after.matched_points == counts[counts > 1].sum()
    assert found.after.conflicts == 0
    assert found.after.mean_length == pytest.approx(counts[counts > 1].mean())


def test_every_object_counts_the_matches_that_touch_it(plain: Synchronisation, found: Change) -> None:
    counts = found.per_object()
    owner = plain.input.point_objects
    removed = as_set(plain.input) - as_set(plain.matchings())
    for i in range(plain.input.n_objects):
        assert counts["removed"][i] == sum(i in (owner[a], owner[b]) for a, b in removed)
    assert counts["kept"].sum() == 2 * found.kept.sum()
    assert counts["added"].sum() == 2 * found.added.n_matches


@pytest.mark.parametrize("limit", [160, 4])
def test_the_matrix_counts_every_match_once_on_each_side(found: Change, limit: int) -> None:
    bounds, counts = match_matrix(found, limit)
    assert bounds[0] == 0
    assert bounds[-1] == found.input.n_objects
    for key, total in [("before", found.input.n_matches), ("removed", found.removed)]:
        assert np.array_equal(counts[key], counts[key].T)
        assert np.triu(counts[key]).sum() == total
    if limit > 9:
        assert counts["before"][2, 5] == len(found.input.pair(2, 5))


def test_the_histogram_loses_no_track_however_long(found: Change) -> None:
    chain = Matchings.from_labels(np.zeros(500, dtype=int), np.ones(500, dtype=int))
    for one in (found, change(chain, chain)):
        bins = one.track_bins(limit=10)
        assert len(bins) <= 10
        assert sum(b.before for b in bins) == one.before.tracks
        assert sum(b.after for b in bins) == one.after.tracks
        assert sum(b.before_conflicted for b in bins) == one.before.conflicts
        assert all(a.high + 1 == b.low for a, b in pairwise(bins))


def test_the_worst_conflict_is_the_one_with_most_surplus() -> None:
    # Two conflicts: point 0 of object 1 reaches two points of object 0; point 1 of object 1 reaches three of them.
    before = Matchings.from_arrays(
        [[0, 1], [1, 2], [0, 2], [0, 1], [1, 2], [0, 2], [2, 3], [0, 3]],
        [[0, 0], [0, 0], [1, 0], [2, 1], [1, 1], [3, 1], [1, 0], [4, 0]],
        [5, 2, 2, 1],
    )
    labels = np.array([0, -1, 1, -1, -1, 0, 1, 0, 1, 1])
    worst = worst_conflicts(change(before, Synchronisation(before, "hand", Outcome(labels=labels), 2)))
    assert [(c.points, c.objects) for c in worst] == [(6, 4), (4, 3)]
    assert worst[0].tracks == ((2, 6, 8, 9),)
    assert worst[0].alone == (3, 4)
    assert worst[1].tracks == ((0, 5, 7),)
    assert worst[1].n_alone == 1


def test_long_conflicts_are_shortened_and_say_so() -> None:
    n = 40
    labels = np.concatenate([np.arange(n), np.arange(n)])
    pairs = {(0, 2): [[i, 0] for i in range(1)], (0, 1): [[i, i] for i in range(n)]}
    chain = {(1, 3): [[i, i] for i in range(n)], (0, 3): [[i + 1, i] for i in range(n - 1)]}
    before = Matchings.from_pairs({**pairs, **chain}, [n, n, 1, n])
    answer = np.concatenate([labels, [0], np.full(n, -1)])
    (worst,) = worst_conflicts(
        change(before, Synchronisation(before, "hand", Outcome(labels=answer), n)), rows=3, row_length=5
    )
    assert worst.points == 3 * n + 1
    assert worst.n_tracks == n
    assert worst.track_lengths == (3, 2, 2)
    assert len(worst.alone) == 5
    assert worst.n_alone == n


def test_a_result_of_another_problem_is_refused(plain: Synchronisation) -> None:
    other, _ = synthetic(12, 9, 0.7, 0.3, rng=4)
    with pytest.raises(InputError, match="pass the matches that were synchronised"):
        change(other, plain)
    with pytest.raises(InputError, match="the matches after have 2 objects, those before 9"):
        change(plain.input, Matchings.from_labels([0, 0], [1, 1]))


def test_matches_afterwards_are_found_by_name_and_may_lack_what_is_unmatched() -> None:
    before = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0]]}, [2, 2, 1], names=["a", "b", "c"])
    found = change(before, Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], names=["b", "a"]))
    assert found.kept.tolist() == [True, False, False]
    assert found.added.n_matches == 0
    with pytest.raises(InputError, match="about 'x', which those before do not know"):
        change(before, Matchings.from_labels([0, 0], [1, 1], names=["a", "x"]))
    with pytest.raises(InputError, match="'c' has 2 points after and 1 before"):
        change(before, Matchings.from_labels([0, 0, 1], [1, 2], names=["a", "c"]))


def test_the_viewer_takes_the_pairs_that_lost_most_and_packs_them_without_loss(photographed: Synchronisation) -> None:
    found = change(photographed.input, photographed)
    table = choose_pairs(found, max_pairs=4, max_matches=10**6)
    assert table.embedded.sum() == 4
    assert table.left_out == len(table.objects) - 4
    assert (np.diff(table.removed) <= 0).all()
    assert table.kept.sum() + table.removed.sum() == found.input.n_matches
    packed, used = pack_pairs(found, table)
    objects = pack_objects(found, used, dict.fromkeys(used, (640, 480)))
    before, after = as_set(found.input), as_set(photographed.matchings())
    for pair in packed:
        i, j = pair["i"], pair["j"]
        ends = [decoded(objects[o]["points"], "<u4")[decoded(pair[e], "<u4")] for o, e in ((i, "a"), (j, "b"))]
        ids = list(zip(ends[0] + found.input.offsets[i], ends[1] + found.input.offsets[j], strict=True))
        kept, removed = pair["kept"], pair["removed"]
        assert set(ids[:kept]) <= before & after
        assert set(ids[kept : kept + removed]) <= before - after
        assert set(ids[kept + removed :]) <= after - before
        support = decoded(pair["support"], "u1")
        assert (support[: kept + removed] <= 100).all()
        assert (support[kept + removed :] == 255).all()
        where = decoded(objects[i]["xy"], "<u2").reshape(-1, 2) / 65535 * (640, 480)
        true = found.input.coordinates[found.input.offsets[i] + used[i]]
        assert np.abs(where - true.clip(0, (640, 480))).max() < 0.01


def test_pairs_that_do_not_fit_are_left_out_and_smaller_ones_still_taken(plain: Synchronisation) -> None:
    table = choose_pairs(change(plain.input, plain), max_pairs=100, max_matches=30)
    sizes = table.kept + table.removed + table.added
    assert 0 < sizes[table.embedded].sum() <= 30
    assert sizes[~table.embedded].min() > 30 - sizes[table.embedded].sum()


def test_points_without_a_finite_position_lie_in_the_middle() -> None:
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], coordinates=[[np.nan, 0], [4, 4], [0, 0], [8, 2]])
    found = change(problem, problem)
    packed, used = pack_pairs(found, choose_pairs(found, max_pairs=1, max_matches=9))
    places = decoded(pack_objects(found, used, {})[0]["xy"], "<u2").reshape(-1, 2)
    assert places[0, 0] == pytest.approx(32768, abs=1)
    assert len(packed) == 1
