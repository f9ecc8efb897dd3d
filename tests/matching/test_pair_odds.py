"""What is believed of pairs, given what others think of them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import logit

from stiefelsync import Matchings, datasets, score, synchronise
from stiefelsync.errors import InputError
from stiefelsync.matching.metrics import cycle_error, triplet_cycles
from stiefelsync.matching.pair_odds import pair_odds


def instances(seen: list[set[int]], n: int = 30) -> tuple[Matchings, np.ndarray]:
    """Return views of things that look alike, each of one or two of them, and which pairs have one in common.

    A view of two has its points twice, and a match leads to the thing that both see, if there is one.
    """
    labels = [{thing: at * n + np.arange(n) for at, thing in enumerate(sorted(things))} for things in seen]
    pairs, good = {}, []
    for i, j in combinations(range(len(seen)), 2):
        both = seen[i] & seen[j]
        one, two = (min(both), min(both)) if both else (min(seen[i]), min(seen[j]))
        pairs[i, j] = np.stack([labels[i][one], labels[j][two]], axis=1)
        good.append(bool(both))
    return Matchings.from_pairs(pairs, [2 * n] * len(seen)), np.array(good)


def opinions(good: np.ndarray, auc: float, seed: int) -> np.ndarray:
    distance = 2**0.5 * {0.9: 1.2816, 0.8: 0.8416}[auc]
    return distance * (np.random.default_rng(seed).standard_normal(len(good)) + distance * (good - 0.5))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("seen", [
    [{0}] * 10 + [{1}] * 10,
    [{0}] * 10 + [{1}] * 10 + [{0, 1}] * 3,
    [{0}] * 9 + [{1}] * 9 + [{2}] * 9,
    [{0}] * 15,
])  # fmt: skip
def test_weak_opinions_on_many_pairs_tell_things_apart(seen: list[set[int]], seed: int) -> None:
    problem, good = instances(seen)
    prior = opinions(good, 0.9, seed)
    assert ((prior > 0) == good).mean() < 0.95
    assert ((pair_odds(problem, prior) > 0) == good).mean() >= 0.97


def test_opinions_too_sure_or_too_unsure_are_corrected() -> None:
    problem, good = instances([{0}] * 12 + [{1}] * 12)
    prior = opinions(good, 0.9, 0)
    for scale, shift in ((3.0, 0.0), (0.5, 0.0), (1.0, -1.0)):
        assert ((pair_odds(problem, scale * prior + shift) > 0) == good).mean() >= 0.97


def test_without_an_opinion_look_alikes_are_one() -> None:
    problem, _ = instances([{0}] * 4 + [{1}] * 4)
    assert (pair_odds(problem, np.zeros(28)) > 0).all()


def test_where_no_three_objects_are_compared_the_prior_stays() -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    assert pair_odds(problem, [0.5, -2]).tolist() == [0.5, -2]


def test_broken_cycles_say_that_a_pair_is_bad() -> None:
    n = 20
    every, turned = (np.stack([np.arange(n), np.roll(np.arange(n), by)], axis=1) for by in (0, 1))
    pairs = {pair: turned if pair == (0, 1) else every for pair in combinations(range(6), 2)}
    problem = Matchings.from_pairs(pairs, [n] * 6)
    for opinion in (0.0, 0.5):
        believed = pair_odds(problem, np.full(15, opinion))
        assert (believed < 0).nonzero()[0].tolist() == [0]


@pytest.mark.parametrize("prior", [[0.0], [0.0, np.nan], [[0.0, 0.0]]])
def test_a_prior_of_another_shape_is_refused(prior: list[float]) -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    with pytest.raises(InputError, match=r"one finite number per pair, shape \(2,\)"):
        pair_odds(problem, prior)


@pytest.mark.parametrize("cameras", [10, 20])
@pytest.mark.parametrize("seed", range(3))
def test_castles_that_look_alike_are_told_apart(cameras: int, seed: int) -> None:
    scene = datasets.twins(cameras, rng=seed)
    problem = scene.matchings
    good = np.equal(*scene.castle[problem.pair_objects].T)
    believed = pair_odds(problem, logit(scene.scores))
    assert ((believed > 0) == good).mean() >= 0.99
    assert score(synchronise(problem, method="tracks").labels, scene.truth).fscore < 0.8


def test_cycles_of_triplets_add_up_to_the_cycle_error() -> None:
    problem = datasets.camera_scene(cameras=8, rng=0).matchings
    _, confirmed, contradicted = triplet_cycles(problem, 10**6)
    found = cycle_error(problem)
    assert confirmed.sum() + contradicted.sum() == found.judged
    assert contradicted.sum() / found.judged == found.value
