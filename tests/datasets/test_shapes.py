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
