"""Cells followed over simulated days, against what was drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stiefelsync import Matchings, datasets
from stiefelsync.errors import ConvergenceWarning, InputError
from stiefelsync.following import follow_sessions, follow_units, summary
from stiefelsync.io.cells import from_networkx, units_of
from stiefelsync.registration import (
    Candidates,
    Session,
    Trust,
    candidates_of_matrix,
    compare_sessions,
    confidences,
    fit_sameness,
    greedy,
    judge,
    recalibrated,
    stacked,
    table_of,
    weighed,
)
from stiefelsync.registration.align import Views, align, turn
from stiefelsync.registration.judgement import transitivity
from stiefelsync.registration.mixture import FALLBACK
from stiefelsync.registration.similarity import moved, similarities
from stiefelsync.report.sessions import render_sessions, to_common


def f1(labels, truth, sizes):
    found, true = (Matchings.from_labels(of, sizes) for of in (labels, truth))
    right = len(np.intersect1d(found.match_keys, true.match_keys))
    return 2 * right / (found.n_matches + true.n_matches)


@pytest.fixture(scope="module")
def week():
    """Six easy days, their truth and what was found."""
    days, truth = datasets.sessions(6, 150, difficulty="easy", shape=(360, 360), rng=11)
    return days, truth, follow_sessions([days])


def test_cells_are_found_again(week):
    days, truth, found = week
    assert f1(found.parts[0].labels, truth, [len(d) for d in days]) > 0.98


def test_every_detection_is_in_the_table_once_under_its_own_number(week):
    days, _, found = week
    own = found.table.own
    for session, day in enumerate(days):
        listed = [n for n in own[:, session] if n is not None]
        assert sorted(listed) == sorted(day.numbers.tolist())


def test_the_table_is_the_labelling(week):
    days, _, found = week
    labels = found.parts[0].labels
    starts = np.cumsum([0, *map(len, days)])
    for row in found.table.index[:50]:
        points = [starts[s] + i for s, i in enumerate(row) if i >= 0]
        assert len(set(labels[points].tolist())) == 1


def test_confidence_promises_what_it_keeps(week):
    _, truth, found = week
    places, labels = confidences(found.parts[0].candidates, found.parts[0].labels).places, found.parts[0].labels
    known = np.isfinite(places)
    right = []
    for i in np.flatnonzero(known):
        track = labels == labels[i]
        right.append(truth[i] >= 0 and 2 * np.count_nonzero(track & (truth == truth[i])) > np.count_nonzero(track))
    assert abs(np.mean(right) - places[known].mean()) < 0.03


def line(*p):
    """Candidates of three objects of one point each, with the probabilities of pairs (0, 1), (0, 2), (1, 2)."""
    ends = np.array([[0, 1], [0, 2], [1, 2]])[: len(p)]
    return Candidates(np.array([1, 1, 1]), ends, np.array(p), ("a", "b", "c"))


def test_greedy_joins_take_the_most_probable_first_and_no_object_twice():
    ends, p = np.array([[0, 2], [1, 2], [0, 3], [1, 3]]), np.array([0.9, 0.95, 0.99, 0.2])
    found = Candidates(np.array([2, 1, 1]), ends, p, ("a", "b", "c"))
    assert greedy(found).tolist() == [0, 1, 1, 0]
    assert greedy(found, 0.97).tolist() == [0, -1, -1, 0]
    assert greedy(line(0.1, 0.2, 0.3)).tolist() == [-1, -1, -1]


def test_greedy_joins_are_those_of_a_literal_loop():
    rng = np.random.default_rng(3)
    sizes, p = np.array([6, 7, 5, 6]), []
    objects = np.repeat(np.arange(4), sizes)
    ends = np.argwhere(np.triu(objects[:, None] != objects, 1))
    p = rng.random(len(ends))
    found = greedy(Candidates(sizes, ends, p, tuple("abcd")), 0.4)
    tracks = [{i} for i in range(24)]
    for t in np.argsort(-p):
        one, other = (next(of for of in tracks if end in of) for end in ends[t])
        if p[t] > 0.4 and one is not other and not set(objects[list(one)]) & set(objects[list(other)]):
            tracks = [of for of in tracks if of is not one and of is not other] + [one | other]
    kept = {frozenset(of) for of in tracks if len(of) > 1}
    assert {frozenset(np.flatnonzero(found == label).tolist()) for label in range(found.max() + 1)} == kept


def test_of_two_answers_the_better_part_is_taken():
    both = Candidates(
        np.array([2, 2, 2]), np.array([[0, 2], [0, 4], [2, 4], [1, 3], [1, 5], [3, 5]]),
        np.array([0.99, 0.99, 0.99, 0.98, 0.98, 0.98]), ("a", "b", "c"),
    )  # fmt: skip
    first, second = np.array([0, -1, 0, -1, 0, -1]), np.array([0, 1, -1, 1, 0, 1])
    assert weighed(both, [first, second]).tolist() == [0, 1, 0, 1, 0, 1]
    assert weighed(both, [np.full(6, -1)]).tolist() == [-1] * 6


def test_places_that_are_hardly_sure_are_left_out():
    ends = np.array([[0, 9], [0, 18], [9, 18]])
    found = Candidates(np.array([9, 9, 9]), ends, np.array([0.99, 0.05, 0.05]), ("a", "b", "c"))
    labels = np.where(np.isin(np.arange(27), [0, 9, 18]), 0, -1)  # and many that are alone
    assert np.flatnonzero(weighed(found, [labels]) == 0).tolist() == [0, 9]


def discs(name, centres, side=300):
    """A session of round cells."""
    disc = np.stack(np.mgrid[-4:5, -4:5], axis=-1).reshape(-1, 2)
    disc = disc[np.hypot(*disc.T) <= 4]
    pixels = np.round(centres).astype(int)[:, None, :] + disc
    cells = np.repeat(np.arange(len(centres)), len(disc))
    flat = (pixels[..., 1] * side + pixels[..., 0]).ravel()
    return Session.from_pixels(name, (side, side), cells, flat, numbers=np.arange(len(centres)))


@pytest.mark.parametrize("angle", [-9.0, 0.0, 4.0, 10.0])
def test_rotation_and_shift_are_found(angle):
    rng = np.random.default_rng(5)
    at = rng.uniform(60, 240, (120, 2))
    shown = (at - 150) @ turn(angle).T + 150 + [11.0, -6.0]
    days = [discs("a", shown), discs("b", at)]
    views = Views(days)
    found = align(*days, views.search(views.still(days[0]), views.turned(days[1])))
    assert np.hypot(*(found(at) - shown).T).max() < 1.0
    assert found.angle == pytest.approx(angle, abs=0.3)
    assert not found.failed


@pytest.mark.parametrize("angle", [-35.0, 90.0, 178.0])
def test_a_session_that_was_turned_far_is_found(angle):
    rng = np.random.default_rng(6)
    at = rng.uniform(80, 220, (60, 2))
    days = [discs("a", (at - 150) @ turn(angle).T + 150 + [5.0, 9.0]), discs("b", at[10:])]
    found = compare_sessions(days).alignments[0, 1]
    assert found.angle == pytest.approx(angle, abs=0.5)
    assert not found.failed


@pytest.mark.parametrize("window", [1, 2])
def test_a_window_compares_the_same_sessions_in_the_same_way(week, window):
    days, _, found = week
    whole = found.parts[0].compared.alignments
    some = compare_sessions(days, window=window).alignments
    assert list(some) == [(i, j) for i, j in whole if j - i <= window]
    assert all((some[pair].matrix == whole[pair].matrix).all() for pair in some)


@pytest.mark.parametrize("cells", [15, 30, 60, 150])
def test_strangers_are_told_however_few_cells_there_are(cells):
    rng = np.random.default_rng(cells)
    days = [discs(name, rng.uniform(8, 292, (cells, 2))) for name in "abcd"]
    with pytest.warns(ConvergenceWarning, match="could not be laid over each other"):
        found = compare_sessions(days)
    assert len(found.failed) == 6


def test_a_pair_with_few_cells_in_common_is_laid_by_way_of_others():
    rng = np.random.default_rng(3)
    at = rng.uniform(40, 260, (46, 2))
    seen = [at[:25], at, at[21:]]  # of the first and the last 4 cells are in common
    days = [discs(name, of + np.array([14.0, -9.0]) * k) for k, (name, of) in enumerate(zip("abc", seen, strict=True))]
    with pytest.warns(ConvergenceWarning, match="could not be laid over each other"):
        compare_sessions([days[0], days[2]])
    found = compare_sessions(days)
    assert found.failed == []
    back = found.alignments[0, 2](days[2].centroids[:4])
    assert np.hypot(*(back - days[0].centroids[21:]).T).max() < 3  # cells of nine pixels still lie on themselves


def test_few_cells_that_stay_where_they_are_meet():
    at = np.array([[40.0, 50.0], [200.0, 90.0], [120.0, 240.0]])
    found = follow_sessions([[discs(name, at) for name in "abc"]])
    assert found.table.own.tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_days_of_different_fields_are_told_and_not_matched():
    first, _ = datasets.sessions(1, 120, shape=(300, 300), rng=1)
    second, _ = datasets.sessions(1, 120, shape=(300, 300), rng=2)
    with pytest.warns(ConvergenceWarning, match="could not be laid over each other"):
        found = compare_sessions([*first, replace(second[0], name="other")])
    assert found.failed == [(0, 1)]
    assert found.candidates.matchings(0.3).n_matches == 0


def test_similarity_equals_the_dense_cosine():
    days, _ = datasets.sessions(2, 40, difficulty="easy", shape=(160, 160), rng=3)
    found = compare_sessions(days)
    near = found.near[0, 1]
    a, b = days[0].footprints.toarray(), moved(days[1], found.alignments[0, 1].matrix, days[0].shape).toarray()
    cosine = (a / np.linalg.norm(a, axis=1)[:, None]) @ (b / np.linalg.norm(b, axis=1)[:, None]).T
    np.testing.assert_allclose(near.cosine, cosine[near.first, near.second], atol=1e-5)
    assert near.distance.max() <= found.reach


def test_a_day_without_cells_is_told_and_changes_nothing(week):
    days, _, found = week
    empty = Session.from_masks("empty", np.zeros((0, 360, 360)), total=9)
    with pytest.warns(ConvergenceWarning) as told:
        more = follow_sessions([[*days[:3], empty, *days[3:]]])
    assert [str(word.message) for word in told] == [
        "there are no cells in 'empty' (none of its 9 detections was accepted)"
    ]
    assert np.array_equal(np.delete(more.table.index, 3, axis=1), found.table.index)
    assert more.parts[0].compared.failed == []
    assert more.as_dict()["planes"][0]["registrations"][2]["near"] is None
    page_maps = to_common(more.parts[0].compared)
    assert all((page_maps[s] != np.eye(2, 3)).any() for s in (0, 1, 2, 5, 6))  # the one in the middle has no cells


def test_a_plane_without_any_cells_is_an_empty_table(week):
    days, _, found = week
    none = [Session.from_masks(day.name, np.zeros((0, 360, 360)), plane=1) for day in days]
    with pytest.warns(ConvergenceWarning, match=r"there are no cells in 'day01', 'day02', 'day03' and 3 more"):
        both = follow_sessions([days, none])
    assert np.array_equal(both.table.index, found.table.index)
    assert [plane["plane"] for plane in both.as_dict()["planes"]] == [0, 1]
    assert "none: no two sessions have cells" in summary(both)["registration of plane 1"]
    assert "<html" in render_sessions(both.table, [part.compared for part in both.parts], summary(both))


def test_sessions_far_apart_are_drawn_over_each_other_by_way_of_others(week):
    days, _, found = week
    near, whole = (to_common(of) for of in (compare_sessions(days, window=1), found.parts[0].compared))
    centre = np.array([180.0, 180.0, 1.0])
    for a, b in zip(near, whole, strict=True):
        assert np.hypot(*(a @ centre - b @ centre)) < 1.5


def test_sessions_without_cells_are_followed_by_nobody():
    day = Session.from_masks("empty", np.zeros((0, 64, 64)))
    other, _ = datasets.sessions(1, 20, shape=(64, 64), rng=0)
    with pytest.warns(ConvergenceWarning):
        found = follow_sessions([[day, *other]])
    assert len(found.table) == len(other[0])
    none = similarities(day, other[0], found.parts[0].compared.alignments[0, 1], 5.0)
    assert len(none.first) == 0


def test_probabilities_never_fall_with_similarity():
    rng = np.random.default_rng(0)
    found = fit_sameness(np.concatenate([1 - np.minimum(rng.lognormal(-3, 0.6, 3000), 1), rng.beta(2, 7, 4000)]))
    assert found.fitted
    assert (np.diff(found.probability) >= 0).all()
    assert found.probability[0] < 0.05
    assert found.probability[-1] > 0.95
    assert found.misfit < 0.1


@pytest.mark.parametrize("similarity", [np.empty(0), np.full(500, 0.97), np.array([0.3, 0.9])])
def test_where_no_mixture_fits_a_fixed_curve_is_taken(similarity):
    found = fit_sameness(similarity)
    assert not found.fitted
    assert found(np.array([FALLBACK])) == pytest.approx(0.5)


def test_matches_are_those_of_a_dense_assignment():
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(2)
    p = np.where(rng.random((12, 14)) < 0.3, rng.random((12, 14)), 0)
    a, b = np.nonzero(p)
    found = Candidates(np.array([12, 14]), np.stack([a, b + 12], axis=1), p[a, b], ("x", "y")).matchings(0.2)
    gain = np.maximum(p - 0.2, 0)
    best = gain[linear_sum_assignment(gain, maximize=True)].sum()
    chosen = found.pair(0, 1)
    assert gain[chosen[:, 0], chosen[:, 1]].sum() == pytest.approx(best)
    assert (gain[chosen[:, 0], chosen[:, 1]] > 0).all()


def test_probabilities_are_corrected_by_what_agrees():
    days, truth = datasets.sessions(8, 120, difficulty="hard", shape=(340, 340), rng=12)
    raw = compare_sessions(days).candidates
    found = follow_sessions([days]).parts[0].candidates
    assert (found.ends == raw.ends).all()
    order = np.argsort(raw.p, kind="stable")
    assert (np.diff(found.p[order]) >= 0).all()
    same = (truth[found.ends[:, 0]] == truth[found.ends[:, 1]]) & (truth[found.ends[:, 0]] >= 0)
    loss = [-np.log(np.where(same, p, 1 - p).clip(1e-3)).mean() for p in (raw.p, found.p)]
    assert loss[1] < loss[0]


def test_few_objects_or_pairs_correct_nothing():
    two = Candidates(np.array([200, 200]), np.arange(400).reshape(2, 200).T, np.full(200, 0.4), ("a", "b"))
    assert recalibrated(two, np.tile(np.arange(200), 2)) is two
    few = line(0.4, 0.5, 0.6)
    assert recalibrated(few, np.array([0, 0, 0])).p.tolist() == few.p.tolist()


def test_distances_are_corrected_apart():
    ends = np.concatenate([[(i, i + 150), (i + 150, i + 300), (i, i + 300)] for i in range(150)])
    found = Candidates(np.full(3, 150), ends, np.full(450, 0.5), ("a", "b", "c"))
    labels = np.concatenate([np.arange(150), np.arange(150), np.full(150, -1)])
    p = recalibrated(found, labels, by_distance=True).p.reshape(150, 3)
    assert np.allclose(p[:, :2], 0.5, atol=0.01)
    assert (p[:, 2] < 0.03).all()


def test_cellregs_scores_by_hand():
    # Cell 0: days 1 and 2 with p = .9, absent on day 3, where a neighbour has p = .2 with its first place.
    found = Candidates(np.array([1, 1, 1]), np.array([[0, 1], [0, 2]]), np.array([0.9, 0.2]), ("a", "b", "c"))
    told = judge(found, np.array([0, 0, 1]))
    assert told.cells == 2
    assert told.sessions_per_cell == (1, 1, 0)
    assert told.true_positive == pytest.approx(0.9)
    # Cell 0: (1 − .2 + 1 − 0) / 2; cell 1: (1 − .2 + 1 − 0) / 2.
    assert told.true_negative == pytest.approx(0.9)
    assert told.exclusivity == pytest.approx(1.0)
    assert told.active == pytest.approx(0.5)
    assert judge(found, np.array([0, 0, 0])).doubled == 0


def test_two_cells_of_one_session_are_counted():
    found = Candidates(np.array([2, 1]), np.array([[0, 2], [1, 2]]), np.array([0.9, 0.8]), ("a", "b"))
    assert judge(found, np.array([0, 0, 0])).doubled == 1


def test_transitivity_counts_paths():
    triangle = Matchings.from_labels([0, 0, 0], [1, 1, 1])
    assert transitivity(triangle) == 1.0
    assert transitivity(Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])) == 0.0
    assert np.isnan(transitivity(Matchings.from_labels([0, 0], [1, 1])))


def test_planes_are_stacked():
    trust = Trust(np.array([0.9, 0.9]), np.array([0.9]))
    planes = [
        table_of(np.array([0, 0]), ["a", "b"], [np.array([n]), np.array([n + 1])], trust, plane=plane)
        for plane, n in ((0, 3), (1, 7))
    ]
    both = stacked(planes)
    assert both.own.tolist() == [[3, 4], [7, 8]]
    assert both.plane.tolist() == [0, 1]
    with pytest.raises(InputError, match="holds one plane"):
        both.one_plane("this")


def test_units_are_followed_better_than_by_their_matrix_alone():
    p, recording, truth = datasets.units(5, 40, rng=4)
    found = follow_units(units_of(p, recording))
    assert f1(found.parts[0].labels, truth, [40] * 5) > 0.95
    assert found.parts[0].judgement.doubled == 0


def test_units_in_any_order_keep_their_names():
    p, recording, _ = datasets.units(3, 20, rng=4)
    shuffled = np.random.default_rng(0).permutation(60)
    names = np.array([f"u{n}" for n in range(60)])
    first = follow_units(units_of(p, recording, names)).table
    second = follow_units(units_of(p[np.ix_(shuffled, shuffled)], recording[shuffled], names[shuffled])).table

    def sets(table):
        return {frozenset(n for n in row if n is not None) for row in table.own.tolist()}

    assert sets(first) == sets(second)


@pytest.mark.parametrize(
    ("p", "session", "message"),
    [
        (np.ones((2, 3)), [0, 1], "square"),
        (np.ones((2, 2)), [0, 1, 2], "3 sessions do not fit"),
        (np.ones((2, 2)), [1, 1], "single session"),
        (np.full((2, 2), 1.5), [0, 1], "scores from 0 to 1.5 are no probabilities"),
        (np.full((2, 2), np.nan), [0, 1], "some scores are NaN; write 0"),
    ],
)
def test_bad_matrices_are_told(p, session, message):
    with pytest.raises(InputError, match=message):
        candidates_of_matrix(p, session)


def test_a_comparison_graph_is_read():
    networkx = pytest.importorskip("networkx")
    graph = networkx.Graph()
    graph.add_nodes_from([("b", "x"), ("a", 1), ("a", 2), ("c", "y")])
    graph.add_weighted_edges_from([(("a", 1), ("b", "x"), 0.9), (("b", "x"), ("c", "y"), 0.8)])
    found = follow_units(from_networkx(graph))
    row = dict(zip(found.table.names, found.table.own[0].tolist(), strict=True))
    assert row == {"a": 1, "b": "x", "c": "y"}
    with pytest.raises(InputError, match=r"no 'agreement' from 0 to 1"):
        from_networkx(graph, key="agreement")


def test_simulated_days_repeat():
    a, truth = datasets.sessions(2, 30, shape=(128, 128), rng=9)
    b, again = datasets.sessions(2, 30, shape=(128, 128), rng=9)
    assert (truth == again).all()
    assert all((x.footprints != y.footprints).nnz == 0 for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("bad", [{"days": 0}, {"shape": (10, 10)}, {"difficulty": "hardest"}])
def test_impossible_days_are_refused(bad):
    with pytest.raises(InputError):
        datasets.sessions(**({"days": 2, "cells": 5} | bad))
