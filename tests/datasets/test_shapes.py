"""The shapes of problems: what each generator promises."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import score
from stiefelsync.datasets import shapes
from stiefelsync.errors import InputError

SMALL = {
    "ring": lambda rng: shapes.ring(20, 10, rng=rng),
    "window": lambda rng: shapes.window(20, 40, width=10, rng=rng),
    "crowd": lambda rng: shapes.crowd(60, 20, partners=12, rng=rng),
    "large": lambda rng: shapes.large(40, rng=rng),
    "rogue": lambda rng: shapes.rogue(8, 12, rng=rng),
    "twins": lambda rng: shapes.twins(8, 40, rng=rng),
    "weighted": lambda rng: shapes.weighted(rng=rng),
    "uneven": lambda rng: shapes.uneven(rng=rng),
    "networks": lambda rng: shapes.networks(rng=rng),
    "video": lambda rng: shapes.video(40, rng=rng),
    "independent": lambda rng: shapes.independent(8, 12, rng=rng),
    "independent ring": lambda rng: shapes.independent(20, 10, reach=3, rng=rng),
    "photos": lambda rng: shapes.photos(20, 3, rng=rng),
    "cells": lambda rng: shapes.cells(5, 30, rng=rng),
    "reid": lambda rng: shapes.reid(4, 40, rng=rng),
    "merging": lambda rng: shapes.merging(3, 32, noise=1.5, rng=rng),
    "groups": lambda rng: shapes.groups(2, 4, rng=rng),
    "window detected": lambda rng: shapes.window_detected(20, 60, width=20, reach=3, rng=rng),
    "drive": lambda rng: shapes.drive(40, loop=8, rng=rng),
    "star": lambda rng: shapes.star(8, 20, own=3, rng=rng),
    "bipartite": lambda rng: shapes.bipartite(4, 3, 20, rng=rng),
    "queries": lambda rng: shapes.queries(16, 4, 80, rng=rng),
    "mosaic": lambda rng: shapes.mosaic(4, rng=rng),
    "hierarchy": lambda rng: shapes.hierarchy(2, 2, 3, rng=rng),
    "skips": lambda rng: shapes.skips(30, rng=rng),
    "hubs": lambda rng: shapes.hubs(3, 5, rng=rng),
    "unequal": lambda rng: shapes.unequal(8, 2, 50, 60, rng=rng),
    "singles": lambda rng: shapes.singles(6, rng=rng),
    "large detected": lambda rng: shapes.large_detected(40, rng=rng),
    "halves": lambda rng: shapes.halves(12, rng=rng),
    "alias": lambda rng: shapes.alias(8, rng=rng),
    "rogues": lambda rng: shapes.rogues(8, rng=rng),
    "worth": lambda rng: shapes.worth(rng=rng),
}


def errors(matchings, truth):
    """Share of wrong matches of every compared pair."""
    a, b = truth[matchings.endpoints].T
    return np.add.reduceat(a != b, matchings.pair_start[:-1]) / np.diff(matchings.pair_start)


@pytest.mark.parametrize("name", SMALL)
def test_truth_is_a_labelling_and_seeds_decide(name):
    matchings, truth = SMALL[name](3)
    again, same = SMALL[name](3)
    assert matchings == again
    assert np.array_equal(truth, same)
    assert SMALL[name](4)[0] != matchings
    for a, b in zip(matchings.offsets[:-1], matchings.offsets[1:], strict=True):
        assert len(np.unique(truth[a:b])) == b - a
    assert 0 < score(matchings, truth).fscore < 1


def test_without_errors_only_true_matches_of_compared_pairs_are_left():
    matchings, truth = shapes.ring(20, 30, error=0.0, reach=2, rng=0)
    assert not errors(matchings, truth).any()
    i, j = matchings.pair_objects.T
    assert set(np.minimum(j - i, 20 - (j - i)).tolist()) == {1, 2}
    assert len(i) == 40  # every one of them shares a point


def test_a_window_moves_along_the_ring():
    matchings, truth = shapes.window(20, 40, width=10, rng=0)
    offset = (truth - matchings.point_objects * 2) % 40
    assert offset.max() == 9


def test_a_crowd_has_sizes_and_partners_as_asked():
    matchings, _ = shapes.crowd(400, least=3, most=4, partners=20, error=0.0, rng=0)
    assert set(matchings.sizes.tolist()) == {3, 4}
    # Two objects of three and four points have a point in common with probability .36; pairs without are not there.
    assert 2 * len(matchings.pair_objects) / 400 == pytest.approx(20 * 0.36, rel=0.15)


def test_one_object_is_the_rogue():
    matchings, truth = shapes.rogue(12, 25, error=0.1, rng=0)
    wrong = errors(matchings, truth)
    of = np.array([wrong[(matchings.pair_objects == i).any(axis=1)].mean() for i in range(12)])
    assert (of > 0.7).sum() == 1
    assert np.sort(of)[-2] < 0.3


def test_twins_are_taken_for_each_other_and_nobody_else():
    matchings, truth = shapes.twins(12, 40, error=0.0, share=0.05, rng=0)
    a, b = np.sort(truth[matchings.endpoints], axis=1).T
    confused = {(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True) if x != y}
    assert len(confused) == 2
    assert len({x for pair in confused for x in pair}) == 4


def test_weights_know():
    matchings, truth = shapes.weighted(20, rng=0)
    a, b = truth[matchings.endpoints].T
    assert matchings.weights[a == b].mean() == pytest.approx(5 / 7, abs=0.03)
    assert matchings.weights[a != b].mean() == pytest.approx(2 / 7, abs=0.03)


@pytest.mark.parametrize("of", ["points", "objects"])
def test_half_sees_or_is_seen_ninefold(of):
    matchings, truth = shapes.uneven(60, 40, of=of, rng=0)
    which = truth if of == "points" else matchings.point_objects
    counts = np.bincount(which, minlength=40 if of == "points" else 60)
    assert counts[::2].mean() / counts[1::2].mean() == pytest.approx(9, rel=0.25)


def test_what_uneven_is_of_is_checked():
    with pytest.raises(InputError, match='of must be "points" or "objects", got \'rows\''):
        shapes.uneven(of="rows")


def test_scores_of_networks_know_too():
    matchings, truth = shapes.networks(rng=0)
    a, b = truth[matchings.endpoints].T
    assert matchings.weights[a == b].mean() > matchings.weights[a != b].mean()
    assert shapes.networks(rng=0, weights=False)[0].weights is None
    assert matchings.n_matches == 3 * 64


def test_near_frames_are_right_and_the_runs_share_their_mistakes():
    matchings, truth = shapes.video(60, rng=0)
    i, j = matchings.pair_objects.T
    wrong = errors(matchings, truth)
    assert not wrong[j - i <= 10].any()
    between = (j - i > 10) & (i < 10)
    assert wrong[between].mean() > 0.35
    assert wrong[(j - i > 10) & (j - i < 20) & (i >= 10)].mean() < 0.1
    # Look-alikes: the four commonest confusions between the runs stand out.
    pair = matchings.match_pairs
    a, b = np.sort(truth[matchings.endpoints], axis=1).T
    counts = np.sort(np.bincount((a * 30 + b)[between[pair] & (a != b)]))[::-1]
    assert counts[3] > 5 * counts[4]


@pytest.mark.parametrize("name", shapes.FAMILIES["detected"])
def test_both_sides_err_in_detected_shapes(name):
    """A point is matched to one of another universe point although its own is there, in rows and in columns."""
    matchings, truth = shapes.SHAPES[name](rng=100)
    a, b = matchings.endpoints.T
    wrong = np.flatnonzero(truth[a] != truth[b])
    d = truth.max() + 1
    there = np.zeros((matchings.n_objects, d), dtype=bool)
    there[matchings.point_objects, truth] = True
    for one, other in ((a, b), (b, a)):
        partner_missed = there[matchings.point_objects[other[wrong]], truth[one[wrong]]]
        assert 0.02 < partner_missed.mean() <= 1


def test_photos_of_one_place_share_points_and_others_are_rarely_compared():
    matchings, truth = shapes.photos(rng=100)
    place = [set((truth[a:b]).tolist()) for a, b in zip(matchings.offsets[:-1], matchings.offsets[1:], strict=True)]
    common = np.array([len(place[i] & place[j]) for i, j in matchings.pair_objects])
    assert (common == 0).mean() < 0.3
    assert np.diff(matchings.pair_start).min() >= 4


def test_cells_die_and_are_born():
    matchings, truth = shapes.cells(rng=100)
    first, last = (set(truth[matchings.point_objects == i].tolist()) for i in (0, 19))
    assert 0 < len(first & last) < 0.3 * len(first)  # (1 - 1/8)^19 is .08
    i, j = matchings.pair_objects.T
    assert (j - i).max() == 3


@pytest.mark.parametrize("name", ["cells", "reid", "merging"])
def test_scores_of_descriptors_are_weights_when_asked_for(name):
    plain, truth = getattr(shapes, name)(rng=100)
    matchings, _ = getattr(shapes, name)(rng=100, weights=True)
    assert plain.weights is None
    assert np.array_equal(plain.endpoints, matchings.endpoints)
    right = matchings.agreeing(truth)
    assert matchings.weights[right].mean() > matchings.weights[~right].mean()
    assert matchings.weights.min() > 0


def test_errors_of_descriptors_repeat_themselves():
    """Whether a match of a point is right tells about its other matches; where errors are drawn anew it does not."""

    def spread(problem):
        matchings, truth = problem
        right = matchings.agreeing(truth)
        ends = matchings.endpoints.T.ravel()
        n = np.bincount(ends, minlength=len(truth))
        share = np.bincount(ends, np.tile(right, 2), len(truth))[n > 2] / n[n > 2]
        expected = right.mean() * (1 - right.mean()) * np.mean(1 / n[n > 2])
        return share.var() / expected

    assert spread(shapes.merging(rng=100)) > 1.5
    assert spread(shapes.cells(rng=100)) > 1.5
    assert spread(shapes.independent(6, 25, observed=1.0, hit=0.55, rng=100)) < 1.5


def test_matches_inside_groups_are_better():
    matchings, truth = shapes.groups(2, 6, rng=100)
    wrong = np.sort([round(x, 3) for x in errors(matchings, truth)])
    assert wrong[len(wrong) // 4] < 0.3 < 0.7 < wrong[-len(wrong) // 4]


def test_a_drive_comes_back_to_its_beginning():
    matchings, truth = shapes.drive(60, loop=10, rng=100)
    seen = [set(truth[matchings.point_objects == i].tolist()) for i in range(60)]
    assert len(seen[0] & seen[50]) > 10
    assert not seen[0] & seen[40]
    i, j = matchings.pair_objects.T
    assert set((j - i).tolist()) == {1, 2, 3, 4, 49, 50, 51}


def test_a_loop_is_at_most_half_of_a_leg():
    with pytest.raises(InputError, match="a loop of 20 is more than half of a leg: 100 objects in 3 legs"):
        shapes.drive(100, legs=3)


def test_every_leg_of_a_drive_comes_back_to_its_own_beginning():
    matchings, truth = shapes.drive(90, legs=3, loop=5, rng=100)
    assert matchings.n_objects == 90
    seen = [set(truth[matchings.point_objects == i].tolist()) for i in range(90)]
    for leg in (0, 30, 60):
        assert len(seen[leg] & seen[leg + 25]) > 10
    assert not seen[0] & seen[85]


def seen_of(problem):
    """Return the set of universe points of every object."""
    matchings, truth = problem
    return [set(truth[matchings.point_objects == i].tolist()) for i in range(matchings.n_objects)]


def distances(matchings):
    i, j = matchings.pair_objects.T
    return j - i


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_the_table_calls_generators_by_seed(name):
    matchings, truth = shapes.SHAPES[name](rng=100)
    assert len(truth) == matchings.n_points
    assert matchings.n_matches > 0
    if name.startswith(("row k=", "detected k=")):
        assert matchings.n_objects == int(name.split("=")[1])
    again, _ = shapes.SHAPES[name](rng=100)
    assert matchings == again


def test_families_share_no_name():
    assert sum(map(len, shapes.FAMILIES.values())) == len(shapes.SHAPES)


def test_a_star_has_one_centre_and_points_of_its_own():
    matchings, truth = shapes.star(10, 30, own=5, rng=0)
    assert set(matchings.pair_objects[:, 0].tolist()) == {0}
    assert matchings.sizes[0] == 30
    once = truth[np.bincount(truth)[truth] == 1]
    own = np.bincount(matchings.point_objects[np.isin(truth, once)], minlength=10)
    assert own[1:].min() >= 5


def test_both_sides_of_a_bipartite_problem_are_not_compared_with_themselves():
    matchings, _ = shapes.bipartite(5, 3, 40, rng=0)
    i, j = matchings.pair_objects.T
    assert i.max() == 4
    assert j.min() == 5
    assert len(i) == 15


def test_queries_are_compared_with_the_map_alone_and_matched_worse():
    matchings, truth = shapes.queries(24, 6, 100, partners=4, rng=0)
    i, j = matchings.pair_objects.T
    assert np.bincount(j[j >= 24])[24:].tolist() == [4] * 6
    assert i.max() < 24
    wrong = errors(matchings, truth)
    assert wrong[j >= 24].mean() > wrong[j < 24].mean() + 0.15
    seen = seen_of((matchings, truth))
    # The nearest of 24 evenly spread windows begins at most half a step away.
    shared = [len(seen[i] & seen[j]) / len(seen[j]) for i, j in matchings.pair_objects if j >= 24]
    assert np.mean(shared) == pytest.approx(0.6 * 0.9, abs=0.08)


def test_tiles_of_a_mosaic_are_compared_with_those_around_them():
    matchings, _ = shapes.mosaic(4, observed=1.0, hit=1.0, rng=0)
    corner = np.stack(np.divmod(matchings.pair_objects, 4), axis=-1)
    assert np.abs(corner[:, 0] - corner[:, 1]).max() == 1
    assert len(corner) == 2 * (4 * 3) + 2 * 9  # beside each other, and across
    seen = seen_of(shapes.mosaic(6, density=20, observed=1.0, rng=0))
    assert len(seen[0] & seen[1]) / len(seen[0]) == pytest.approx(1.2 / 2.2, abs=0.1)


def test_matches_are_worse_the_further_apart_groups_are():
    problem = shapes.hierarchy(2, 2, 6, rng=0)
    matchings, truth = problem
    seen = seen_of(problem)
    shared = np.array([len(seen[i] & seen[j]) for i, j in matchings.pair_objects])
    wrong = errors(matchings, truth)
    # .49 of 30, 18 and 8 points are shared on three levels.
    assert wrong[shared > 11].mean() < 0.35 < wrong[(shared > 6) & (shared < 11)].mean() < wrong[shared < 5].mean()


def test_skips_reach_far_and_worsen():
    matchings, truth = shapes.skips(60, rng=0)
    assert set(distances(matchings).tolist()) == {1, 2, 4, 8, 16}
    wrong = errors(matchings, truth)
    assert wrong[distances(matchings) == 1].mean() < wrong[distances(matchings) == 16].mean() - 0.2
    seen = np.bincount(truth)
    assert seen.max() > 30  # some points live through more than half of the sequence,
    assert np.median(seen) < 8  # most do not


def test_clusters_meet_in_their_hubs():
    matchings, truth = shapes.hubs(3, 5, common=4, rng=0)
    i, j = matchings.pair_objects.T
    across = i // 5 != j // 5
    assert not (i[across] % 5).any()
    assert not (j[across] % 5).any()
    assert len(i) == 3 + 3 * (4 + 4)
    seen = seen_of((matchings, truth))
    assert 0 < len(set.union(*seen[:5]) & set.union(*seen[5:])) <= 4


def test_sizes_are_unequal_as_asked():
    matchings, _ = shapes.unequal(10, 3, 100, 150, rng=0)
    assert sorted(matchings.sizes.tolist()) == np.rint(np.geomspace(3, 100, 10)).astype(int).tolist()
    with pytest.raises(InputError, match=r"sizes must lie between 1 and the universe, got 2 to 600 of 500"):
        shapes.unequal(universe=500)


def test_most_points_are_singles():
    matchings, truth = shapes.singles(10, 8, 20, observed=1.0, rng=0)
    assert np.bincount(np.bincount(truth)).tolist() == [0, 200, *[0] * 8, 8]
    assert matchings.sizes.tolist() == [28] * 10


def test_halves_are_confused_by_whole_pairs():
    matchings, truth = shapes.halves(30, 20, observed=1.0, corners=0.0, confused=0.5, hit=1.0, wrong=0.0, rng=0)
    side = truth[matchings.offsets[:-1]] // 20
    i, j = matchings.pair_objects.T
    wrong = errors(matchings, truth)
    assert not wrong[side[i] == side[j]].any()
    assert (wrong[side[i] != side[j]] == 1).all()
    a, b = truth[matchings.endpoints].T
    assert set(np.abs(a - b).tolist()) == {0, 20}  # a point or its twin
    # Pairs of different sides that were not confused have no match at all.
    apart = (np.bincount(side)[0] * np.bincount(side)[1]).item()
    assert (side[i] != side[j]).sum() / apart == pytest.approx(0.5, abs=0.1)


def test_an_observation_looks_like_the_same_other_point_in_all_pairs():
    matchings, truth = shapes.alias(20, 30, share=0.2, hit=1.0, wrong=0.0, rng=0)
    a, b = matchings.endpoints.T
    wrong = truth[a] != truth[b]
    share = np.bincount(np.r_[a, b], np.r_[wrong, wrong], len(truth)) / np.bincount(np.r_[a, b], minlength=len(truth))
    # Right everywhere but where the others err, or wrong (almost) everywhere.
    assert ((share < 0.55) | (share > 0.85)).mean() > 0.9
    assert (share > 0.85).mean() == pytest.approx(0.2, abs=0.04)


def test_rogues_have_strays_only():
    matchings, truth = shapes.rogues(12, 25, 3, rng=0)
    wrong = errors(matchings, truth)
    of = np.array([wrong[(matchings.pair_objects == i).any(axis=1)].mean() for i in range(12)])
    worst = np.argsort(of)[-3:]
    bad = np.isin(matchings.pair_objects, worst).any(axis=1)
    assert wrong[bad].mean() > 0.85
    assert wrong[~bad].mean() < 0.45  # about 2.6 strays for 5.4 right ones


def test_weights_know_in_half_of_the_pairs():
    matchings, truth = shapes.worth(24, 60, rng=0)
    right = matchings.agreeing(truth)
    cuts = zip(matchings.pair_start[:-1], matchings.pair_start[1:], strict=True)
    gaps = []
    for a, b in cuts:
        weights, good = matchings.weights[a:b], right[a:b]
        if 2 < good.sum() < b - a - 2:
            gaps.append((weights[good].mean() - weights[~good].mean()) / weights.std())
    told = np.array(gaps) > 0.75
    assert told.mean() == pytest.approx(0.5, abs=0.12)
    assert np.median(np.array(gaps)[~told]) == pytest.approx(0.1, abs=0.25)
