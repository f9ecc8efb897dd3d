"""Matches that lead where maps by their neighbours say, and matches a few pixels aside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from stiefelsync import Matchings
from stiefelsync.errors import InputError
from stiefelsync.positions.neighbours import fitting_support, neighbour_support


def surface(rng, n=300, k=3):
    """Return k views of n points of a curved surface, all matched rightly."""
    place = rng.uniform(-1, 1, (n, 2))
    depth = 5 + np.cos(2 * place[:, 0]) * np.sin(3 * place[:, 1])
    shots = [place * (1 + 0.1 * i) + np.stack([0.3 * i / depth, 0.1 * i * place[:, 0]], axis=1) for i in range(k)]
    return Matchings.from_labels(np.tile(np.arange(n), k), [n] * k), 500 * np.concatenate(shots)


def with_positions(problem, at):
    return Matchings.from_endpoints(problem.endpoints, problem.sizes, coordinates=at)


def literal_misses(x, y, kept, q):
    """How far every match of a pair is from where its neighbours' map puts it, as the documentation states it."""
    missed = np.full(len(x), np.nan)
    for t in range(len(x)):
        order = sorted((s for s in range(len(x)) if s != t), key=lambda s: (((x[s] - x[t]) ** 2).sum(), s))[:q]
        reach = np.linalg.norm(x[order] - x[t], axis=1).max()
        near = [s for s in order if kept[s]]
        if len(near) < 4:
            continue
        offset, target, weight = (x[near] - x[t]) / (reach or 1), y[near] - y[t], np.ones(len(near))
        for fit in range(3):
            middle, aim = (np.average(part, axis=0, weights=weight) for part in (offset, target))
            u, v = offset - middle, target - aim
            A = np.linalg.solve((u * weight[:, None]).T @ u + 1e-3 * np.eye(2), (u * weight[:, None]).T @ v)
            residual = np.linalg.norm(v - u @ A, axis=1)
            usual = 2 * residual.mean()
            if fit < 2 and usual:
                weight = usual**2 / (usual**2 + residual**2)
        missed[t] = np.linalg.norm(aim - middle @ A)
    return missed


@pytest.mark.parametrize("seed", range(3))
def test_it_is_its_definition(seed):
    rng = np.random.default_rng(seed)
    problem, at = surface(rng, n=40)
    problem = with_positions(problem, at + rng.normal(scale=2.0, size=at.shape))
    kept, support = rng.random(problem.n_matches) < 0.9, neighbour_support(problem, 6)
    support[kept.argmin()] = 0  # neither kept nor supported: it has no say and no place among neighbours
    found = fitting_support(problem, kept, support, 6)
    asked, place = kept | (support > 0), problem.coordinates.astype(float)
    missed = np.full(len(kept), np.nan)
    for a, b in pairwise(problem.pair_start.tolist()):
        some = a + np.flatnonzero(asked[a:b])
        x, y = place[problem.endpoints[some]].transpose(1, 0, 2)
        both = literal_misses(x, y, kept[some], 6), literal_misses(y, x, kept[some], 6)
        missed[some] = np.fmin(*both)
    usual = np.nanmedian(missed[kept])
    expected = support * np.where(np.isfinite(missed), 1 / (1 + missed / usual), 0.5)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    assert np.isfinite(missed).sum() > 100


def test_matches_a_few_pixels_aside_stand_out_that_move_with_their_neighbours():
    rng = np.random.default_rng(0)
    problem, at = surface(rng)
    at += rng.normal(scale=0.3, size=at.shape)
    off = rng.choice(300, 20, replace=False)
    at[300 + off] += 5 * np.stack([np.cos(off), np.sin(off)], axis=1)  # in the second view, of 1000 pixels
    problem = with_positions(problem, at)
    wrong = np.isin(problem.indices[:, 0], off) & (problem.match_pairs == 0)
    support = neighbour_support(problem)
    fitting = fitting_support(problem, np.ones(problem.n_matches, dtype=bool), support)
    between = problem.match_pairs == 0

    def found(score):  # share of the wrong ones among the twenty worst of their pair
        return wrong[between][np.argsort(score[between])[:20]].mean()

    assert found(fitting) >= 0.9
    assert found(fitting) >= found(support) + 0.2


def test_turning_scaling_and_moving_change_nothing():
    rng = np.random.default_rng(1)
    problem, at = surface(rng)
    at += rng.normal(scale=1.0, size=at.shape)
    turn = rng.uniform(0.5, 2) * np.exp(1j * rng.uniform(0, 7)) * (at @ [1, 1j]) + 300
    other, kept = np.stack([turn.real, turn.imag], axis=1), np.ones(problem.n_matches, dtype=bool)
    # What an image is worth to the other depends on its scale: all are turned alike.
    plain, turned = (
        fitting_support(one, kept, neighbour_support(one))
        for one in (with_positions(problem, at), with_positions(problem, other))
    )
    np.testing.assert_allclose(turned, plain, rtol=1e-2)


def test_a_match_has_no_say_in_its_own_map():
    rng = np.random.default_rng(2)
    problem, at = surface(rng, k=2)
    everything = np.ones(300, dtype=bool)
    support = np.ones(300)
    far = at.copy()
    far[300 + 7] += 1e4
    # By way of the second object its neighbours change; from the first object's side only the target does.
    near, away = (fitting_support(with_positions(problem, place), everything, support) for place in (at, far))
    assert away[7] < 1e-3 < near[7]


def test_what_cannot_be_judged_keeps_half_and_unknown_stays_unknown():
    rng = np.random.default_rng(3)
    problem, at = surface(rng, n=8, k=2)
    at[3] = np.nan
    problem = with_positions(problem, at)
    support = np.append(np.full(7, 0.8), np.nan)
    found = fitting_support(problem, np.ones(8, dtype=bool), support)
    assert found[:7].tolist() == [0.4] * 7
    assert np.isnan(found[7])
    with pytest.raises(InputError, match="no coordinates"):
        fitting_support(Matchings.from_labels([0, 0], [1, 1]), np.ones(1, dtype=bool), np.ones(1))
