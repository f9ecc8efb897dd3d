"""Matches that move with their neighbours, and matches that do not."""

from __future__ import annotations

import cmath
import math
from collections import Counter
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

from stiefelsync import Matchings, synchronise
from stiefelsync.errors import InputError
from stiefelsync.positions import neighbours as module
from stiefelsync.positions.neighbours import neighbour_support, weighed

EVERY, ROUNDS = 4, 5  # every fourth ratio decides on the commonest, five means are taken around it


def views(rng, n=400, k=4, wrong=40):
    """Return k views of n points of a curved surface, with `wrong` wrong matches per pair, and which are wrong."""
    place = rng.uniform(-1, 1, (n, 2))
    depth = 5 + np.cos(2 * place[:, 0]) * np.sin(3 * place[:, 1])
    shots = [place * (1 + 0.1 * i) + np.stack([0.3 * i / depth, 0.1 * i * place[:, 0]], axis=1) for i in range(k)]
    objects, points, bad = [], [], []
    for i in range(k):
        for j in range(i + 1, k):
            partner, some = np.arange(n), rng.choice(n, wrong, replace=False)
            partner[some] = np.roll(some, 1)
            objects.append(np.tile([i, j], (n, 1)))
            points.append(np.stack([np.arange(n), partner], axis=1))
            bad.append(partner != np.arange(n))
    problem = Matchings.from_arrays(
        np.concatenate(objects), np.concatenate(points), np.full(k, n), coordinates=1000 * np.concatenate(shots)
    )
    return problem, np.concatenate(bad)


def moved(problem, rng):
    """Return the problem with every object turned, scaled and shifted."""
    turn = rng.uniform(0.3, 3, problem.n_objects) * np.exp(1j * rng.uniform(0, 7, problem.n_objects))
    place = problem.coordinates @ np.array([1, 1j]) * turn[problem.point_objects] + 1e4
    return Matchings.from_arrays(
        problem.pair_objects[problem.match_pairs],
        problem.indices,
        problem.sizes,
        coordinates=np.stack([place.real, place.imag], axis=1),
    )


def literal_support(x, y, neighbours, tolerance, grid=(0, 0)):
    """The support of the matches of one pair, between positions x and y, as the documentation states it.

    Two positions rounded to cells of one are off by √⅓ of each other, root mean square.
    """
    n = len(x)

    def nearest(z, t):
        # Equally near ones are told apart by their order.
        return sorted(
            (s for s in range(n) if s != t), key=lambda s: ((z[s] - z[t]).real ** 2 + (z[s] - z[t]).imag ** 2, s)
        )[:neighbours]

    near = [nearest(x, t) + nearest(y, t) for t in range(n)]
    ratios = [(y[s] - y[t]) / (x[s] - x[t]) for t in range(n) for s in near[t][::EVERY] if x[s] != x[t]]
    ratios = [ratio for ratio in ratios if ratio]
    cells = Counter()
    for ratio in ratios:
        scale = min(max(round(2 * math.log2(abs(ratio))) + 8, 0), 15)
        cells[scale, round(cmath.phase(ratio) / (2 * math.pi) * 16) % 16] += 1
    scale, angle = max(sorted(cells), key=lambda cell: cells[cell], default=(0, 0))
    z = 2 ** ((scale - 8) / 2) * cmath.exp(2j * math.pi * angle / 16)
    for _ in range(ROUNDS):
        around = [ratio for ratio in ratios if abs(ratio - z) <= tolerance * abs(z)]
        z = sum(around) / len(around) if around else z
    support = []
    for t in range(n):
        agreement = []
        for s in near[t]:
            dx, dy = z * (x[s] - x[t]), y[s] - y[t]
            longer = max(abs(dx), abs(dy))
            rounding = math.sqrt((grid[1] ** 2 + (abs(z) * grid[0]) ** 2) / 3)
            error = max(abs(dy - dx) - rounding, 0) / longer if longer else 1.0
            agreement.append(max(0.0, 1 - error / tolerance))
        support.append(sum(agreement) / len(agreement))
    return support


def rounding(tolerance):
    """What single precision may do to a support."""
    return 4 * np.finfo(np.float32).eps / tolerance


@pytest.mark.parametrize("tolerance", [0.5, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_support_is_its_definition(seed, tolerance):
    rng = np.random.default_rng(seed)
    problem, _ = views(rng, n=25, k=3, wrong=6)
    problem = moved(problem, rng)
    found = neighbour_support(problem, 5, tolerance=tolerance)
    place = problem.coordinates.astype(float) @ np.array([1, 1j])
    for s, (a, b) in enumerate(pairwise(problem.pair_start.tolist())):
        x, y = place[problem.endpoints[a:b]].T
        expected = literal_support(x, y, 5, tolerance)
        np.testing.assert_allclose(found[a:b], expected, rtol=0, atol=rounding(tolerance), err_msg=f"pair {s}")


def test_what_rounding_does_is_taken_off():
    rng = np.random.default_rng(4)
    problem, _ = views(rng, n=25, k=3, wrong=6)
    problem = moved(problem, rng)
    size = [60.0, 0.0, 130.0]
    found, plain = neighbour_support(problem, 5, cell=np.array(size)), neighbour_support(problem, 5)
    place = problem.coordinates.astype(float) @ np.array([1, 1j])
    for (i, j), (a, b) in zip(problem.pair_objects.tolist(), pairwise(problem.pair_start.tolist()), strict=True):
        x, y = place[problem.endpoints[a:b]].T
        expected = literal_support(x, y, 5, 0.5, (size[i], size[j]))
        np.testing.assert_allclose(found[a:b], expected, rtol=0, atol=rounding(0.5))
    assert (found >= plain).all()
    assert np.median(found - plain) > 0.05


def test_of_equally_near_matches_the_first_are_asked():
    # On a grid, three of four that are equally near: a literal search by distance and number.
    at = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    there = np.random.default_rng(1).permutation(at)
    problem = Matchings.from_pairs({(0, 1): np.tile(np.arange(36)[:, None], 2)}, [36, 36], coordinates=[*at, *there])
    x, y = at @ [1, 1j], there @ [1, 1j]
    found = neighbour_support(problem, 3, cell=np.zeros(2))
    np.testing.assert_allclose(found, literal_support(x, y, 3, 0.5), atol=1e-9)


def test_points_in_the_same_place_are_each_others_neighbours_not_their_own():
    # Points 0, 1, 2 lie in one place in both objects: as near as can be, but without an offset they say nothing.
    rng = np.random.default_rng(0)
    at = rng.uniform(0, 100, (12, 2))
    at[1] = at[2] = at[0]
    pairs = {(0, 1): np.tile(np.arange(12)[:, None], 2)}
    problem = Matchings.from_pairs(pairs, [12, 12], coordinates=np.vstack([at, 2 * at]))
    support = neighbour_support(problem, 4)
    assert support[:3].tolist() == [0.5] * 3  # two of four neighbours are in the same place, the others agree
    np.testing.assert_allclose(support[3:][support[3:] > 0.9], 1)


def test_wrong_matches_move_alone():
    problem, wrong = views(np.random.default_rng(0))
    support = neighbour_support(problem)
    assert (support[wrong] == 0).mean() > 0.8
    assert (support[~wrong] == 0).mean() < 0.001
    assert np.median(support[~wrong]) > 0.5


def test_turning_and_scaling_objects_changes_next_to_nothing():
    rng = np.random.default_rng(1)
    problem, _ = views(rng)
    support, again = neighbour_support(problem), neighbour_support(moved(problem, rng))
    np.testing.assert_allclose(again, support, atol=0.05)
    assert ((again == 0) != (support == 0)).mean() < 0.002


def test_chunks_do_not_matter(monkeypatch):
    problem, _ = views(np.random.default_rng(2))
    whole = neighbour_support(problem)
    monkeypatch.setattr(module, "_MATCHES_PER_CHUNK", 500)
    np.testing.assert_allclose(neighbour_support(problem), whole, rtol=1e-9)


def test_nothing_is_known_of_few_matches_and_of_unknown_places():
    problem, _ = views(np.random.default_rng(3), n=8, wrong=2)
    assert np.isnan(neighbour_support(problem)).all()
    problem, _ = views(np.random.default_rng(3), n=50, k=2, wrong=5)
    places = problem.coordinates.astype(float)
    places[7] = np.nan
    blind = Matchings.from_arrays(np.tile([0, 1], (50, 1)), problem.indices, problem.sizes, coordinates=places)
    support = neighbour_support(blind)
    np.testing.assert_array_equal(np.isnan(support), blind.endpoints[:, 0] == 7)


def test_nothing_is_known_of_points_all_in_one_place():
    pairs = {(0, 1): np.tile(np.arange(20)[:, None], 2), (0, 2): np.tile(np.arange(20)[:, None], 2)}
    places = np.vstack([np.zeros((20, 2)), np.random.default_rng(0).random((40, 2))])
    assert np.isnan(neighbour_support(Matchings.from_pairs(pairs, [20, 20, 20], coordinates=places))).all()
    places[19] = 1  # one of them elsewhere is enough to say something
    assert np.isfinite(neighbour_support(Matchings.from_pairs(pairs, [20, 20, 20], coordinates=places))).all()


def test_bad_input():
    with pytest.raises(InputError, match="no coordinates"):
        neighbour_support(Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1]))
    problem, _ = views(np.random.default_rng(4), n=20, wrong=2)
    with pytest.raises(InputError, match="number of neighbours is 0"):
        neighbour_support(problem, 0)
    with pytest.raises(InputError, match="number of neighbours is -1"):
        synchronise(problem, method="tracks", neighbours=-1)


def test_tracks_drop_what_moves_alone_and_only_where_motion_is_smooth():
    rng = np.random.default_rng(5)
    problem, wrong = views(rng)
    with_places, without = (synchronise(problem, method="tracks", neighbours=n) for n in (8, 0))

    def kept(answer):
        a, b = answer.labels[problem.endpoints].T
        return (a == b) & (a >= 0)

    alone = neighbour_support(problem) == 0
    assert alone.sum() > 100
    for answer, count in ((with_places, (alone & ~kept(with_places)).sum()), (without, 0)):
        matches = answer.outcome.details.matches_by_rule
        assert matches.unsupported == count
        assert matches.consistent + matches.kept == kept(answer).sum()
        assert sum(asdict(matches).values()) == problem.n_matches
        assert answer.outcome.details.wrong == (~kept(answer)).mean()
    assert kept(with_places)[wrong].sum() < kept(without)[wrong].sum()
    assert kept(with_places)[~wrong].mean() > 0.99
    scattered = Matchings.from_arrays(
        problem.pair_objects[problem.match_pairs], problem.indices, problem.sizes,
        coordinates=rng.uniform(size=problem.coordinates.shape),
    )  # fmt: skip
    aimless = synchronise(scattered, method="tracks")
    assert aimless.outcome.details.matches_by_rule.unsupported == 0
    np.testing.assert_array_equal(aimless.labels, without.labels)


def found_twice(distance, scale=1.0):
    """Six objects see one point, object 2 twice: objects 0 and 1 know the one, the others know the other.

    Five more points, all matched, give every object an extent of 100.
    """
    sizes, owner = [6, 6, 7, 6, 6, 6], np.repeat(np.arange(6), [6, 6, 7, 6, 6, 6])
    places = np.array([[50.0, 50.0], [0, 0], [100, 0], [0, 100], [100, 100], [20, 70], [50 + distance, 50]]) * scale
    local = np.concatenate([np.arange(size) for size in sizes])
    truth = np.where(local == 6, 0, local)
    pairs = {}
    for i in range(6):
        for j in range(i + 1, 6):
            rows = [[p, p] for p in range(1, 6)]
            if j < 3 or (i < 2 and j == 3):
                rows.append([0, 0])
            elif i > 1:
                rows.append([6 if i == 2 else 0, 0])
            pairs[i, j] = rows
    return Matchings.from_pairs(pairs, sizes, coordinates=places[local]), owner, truth


@pytest.mark.parametrize("scale", [0.001, 1.0, 1e6])
def test_a_point_found_twice_is_one_track(scale):
    for distance, option, whole in (
        (0.05, {}, True),
        (5.0, {}, False),
        (0.05, {"copies": 0}, False),
        (5.0, {"copies": 0.06}, True),
    ):
        problem, owner, truth = found_twice(distance, scale)
        labels = synchronise(problem, method="tracks", neighbours=0, **option).labels
        track = labels[(truth == 0) & (owner != 2)]
        assert (len(set(track.tolist())) == 1) == whole


def test_places_that_say_nothing_are_no_copies():
    problem, _, _ = found_twice(0.05)
    plain = synchronise(problem, method="tracks", neighbours=0, copies=0).labels
    for nowhere in (np.zeros((problem.n_points, 2)), np.full((problem.n_points, 2), np.nan)):
        blind = Matchings.from_pairs(problem.pairs(), problem.sizes, coordinates=nowhere)
        np.testing.assert_array_equal(synchronise(blind, method="tracks", neighbours=0).labels, plain)
    for wrong in (-1.0, float("inf"), float("nan"), 1e-300):
        with pytest.raises(InputError, match="the distance of copies is"):
            synchronise(problem, method="tracks", copies=wrong)


def test_unknown_places_are_no_proof_of_smooth_motion():
    rng = np.random.default_rng(6)
    places = rng.random((6 * 200, 2))
    problem = Matchings.from_labels(np.tile(np.arange(200), 6), [200] * 6, coordinates=places)
    assert synchronise(problem, method="tracks").outcome.details.matches_by_rule.unsupported == 0
    places[rng.random(len(places)) < 0.4] = np.nan
    problem = Matchings.from_labels(np.tile(np.arange(200), 6), [200] * 6, coordinates=places)
    assert synchronise(problem, method="tracks").outcome.details.matches_by_rule.unsupported == 0


def test_a_stop_while_neighbours_are_asked_is_a_stop():
    problem, _ = views(np.random.default_rng(7), wrong=20)
    stages = []

    def callback(progress):
        stages.append(progress.stage)
        return progress.stage == "neighbours"

    result = synchronise(problem, method="tracks", callback=callback)
    assert stages == ["neighbours"]
    assert result.status == "stopped by the callback"


def test_weights_are_multiplied_by_support_and_none_becomes_nothing() -> None:
    problem = Matchings.from_labels([0, 1, 2, 3, 0, 1, 2, 3], [4, 4]).with_weights(np.array([4.0, 2.0, 1e-300, 8.0]))
    found = weighed(problem, np.array([0.5, 0.0, 1e-30, np.nan]))
    assert found is not None
    assert found.indices[:, 0].tolist() == [0, 2, 3]
    tiny = np.finfo(np.float64).tiny
    np.testing.assert_allclose(found.weights, [2.0, tiny, 8.0 * (0.5 + 0.0 + 1e-30) / 3])
    assert weighed(problem, np.array([0.4, 0.0, 0.3, np.nan])) is None
