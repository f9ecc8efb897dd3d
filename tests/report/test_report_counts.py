"""The numbers of a report agree with sets of matches counted by hand."""

from __future__ import annotations

import base64
from itertools import pairwise

import numpy as np
import pytest

from stiefelsync.matching.difference import Difference, difference
from stiefelsync.matching.matchings import Matchings
from stiefelsync.report.conflicts import worst_conflicts
from stiefelsync.report.counts import match_matrix, per_object, track_bins
from stiefelsync.report.viewer import choose_pairs, pack_objects, pack_pairs
from stiefelsync.sync.result import Synchronisation


def as_set(matchings: Matchings) -> set[tuple[int, int]]:
    return set(map(tuple, matchings.endpoints.tolist()))


def decoded(text: str, dtype: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype)


@pytest.fixture
def found(plain: Synchronisation) -> Difference:
    return plain.difference


def test_every_object_counts_the_matches_that_touch_it(plain: Synchronisation, found: Difference) -> None:
    counts = per_object(found)
    owner = plain.input.point_objects
    removed = as_set(plain.input) - as_set(plain.matchings())
    for i in range(plain.input.n_objects):
        assert counts["removed"][i] == sum(i in (owner[a], owner[b]) for a, b in removed)
    assert counts["kept"].sum() == 2 * found.kept.sum()
    assert counts["added"].sum() == 2 * found.added.n_matches


@pytest.mark.parametrize("limit", [160, 4])
def test_the_matrix_counts_every_match_once_on_each_side(found: Difference, limit: int) -> None:
    bounds, counts = match_matrix(found, limit)
    assert bounds[0] == 0
    assert bounds[-1] == found.input.n_objects
    for key, total in [("before", found.input.n_matches), ("removed", found.counts.removed)]:
        assert np.array_equal(counts[key], counts[key].T)
        assert np.triu(counts[key]).sum() == total
    if limit > 9:
        assert counts["before"][2, 5] == len(found.input.pair(2, 5))


def test_the_histogram_loses_no_track_however_long(found: Difference) -> None:
    chain = Matchings.from_labels(np.zeros(500, dtype=int), np.ones(500, dtype=int))
    for one in (found, difference(chain, chain)):
        bins = track_bins(one, limit=10)
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
    worst = worst_conflicts(difference(before, labels))
    assert [(c.points, c.objects) for c in worst] == [(6, 4), (4, 3)]
    assert worst[0].tracks == ((2, 6, 8, 9),)
    assert worst[0].alone == (3, 4)
    assert worst[1].tracks == ((0, 5, 7),)
    assert worst[1].n_alone == 1


def test_the_order_of_conflicts_is_surplus_then_points_then_place() -> None:
    """Each conflict is a chain of points of the objects listed; a repeated object is its surplus."""
    small, large, deep = [0, 1, 2, 0], [0, 1, 2, 3, 4, 5, 0], [0, 1, 2, 0, 1]
    sizes, objects, points, first = np.zeros(6, dtype=int), [], [], []
    for chain in (small, large, deep, small):
        ends = []
        for o in chain:
            ends.append((o, sizes[o]))
            sizes[o] += 1
        first.append(ends[0][1])
        for (i, a), (j, b) in pairwise(ends):
            objects.append([i, j])
            points.append([a, b])
    before = Matchings.from_arrays(objects, points, sizes)
    listed = worst_conflicts(difference(before, np.full(before.n_points, -1)))
    assert [(one.points, one.objects) for one in listed] == [(5, 3), (7, 6), (4, 3), (4, 3)]
    # All first points are of object 0, whose points are numbered as the chains are listed.
    assert [min(one.alone) for one in listed] == [first[2], first[1], first[0], first[3]]


def test_long_conflicts_are_shortened_and_say_so() -> None:
    n = 40
    labels = np.concatenate([np.arange(n), np.arange(n)])
    pairs = {(0, 2): [[i, 0] for i in range(1)], (0, 1): [[i, i] for i in range(n)]}
    chain = {(1, 3): [[i, i] for i in range(n)], (0, 3): [[i + 1, i] for i in range(n - 1)]}
    before = Matchings.from_pairs({**pairs, **chain}, [n, n, 1, n])
    answer = np.concatenate([labels, [0], np.full(n, -1)])
    (worst,) = worst_conflicts(difference(before, answer), rows=3, row_length=5)
    assert worst.points == 3 * n + 1
    assert worst.n_tracks == n
    assert worst.track_lengths == (3, 2, 2)
    assert len(worst.alone) == 5
    assert worst.n_alone == n


def test_the_viewer_takes_the_pairs_that_lost_most_and_packs_them_without_loss(photographed: Synchronisation) -> None:
    found = photographed.difference
    table = choose_pairs(found, max_pairs=4, max_matches=10**6)
    assert table.embedded.sum() == 4
    assert (np.diff(table.removed) <= 0).all()
    assert table.kept.sum() + table.removed.sum() == found.input.n_matches
    packed, used = pack_pairs(found, table, photographed.confidence)
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
    table = choose_pairs(plain.difference, max_pairs=100, max_matches=30)
    sizes = table.kept + table.removed + table.added
    assert 0 < sizes[table.embedded].sum() <= 30
    assert sizes[~table.embedded].min() > 30 - sizes[table.embedded].sum()


def test_points_without_a_finite_position_lie_in_the_middle() -> None:
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], coordinates=[[np.nan, 0], [4, 4], [0, 0], [8, 2]])
    found = difference(problem, problem)
    packed, used = pack_pairs(found, choose_pairs(found, max_pairs=1, max_matches=9))
    places = decoded(pack_objects(found, used, {})[0]["xy"], "<u2").reshape(-1, 2)
    assert places[0, 0] == pytest.approx(32768, abs=1)
    assert len(packed) == 1
