"""Sorted units of several recordings with known neurons, as one matrix of match probabilities like UnitMatch's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.stiefel.checks import generator

__all__ = ["UNIT_DIFFICULTIES", "units"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Noise of a feature within a recording, noise between recordings, step of its drift from one to the next.
UNIT_DIFFICULTIES = {"easy": (0.026, 0.01, 0.0), "noisy": (0.05, 0.02, 0.0), "drift": (0.03, 0.01, 0.02)}
FEATURES = 5
ALIKE, APART = 0.6, 0.08  # share of the neurons that resemble another one, and how far these are apart


@drawn
def units(
    recordings: int = 6,
    count: int = 80,
    *,
    neurons: int | None = None,
    difficulty: str = "easy",
    rng: np.random.Generator | int | None = None,
) -> tuple[Floats, Ints, Ints]:
    """Draw units of several recordings and the probability of every pair to be one neuron.

    Every neuron has features, of which a recording shows two noisy versions, one in each half. Entry (i, j) compares
    the first half of unit i with the second half of unit j, so the matrix is not symmetric. Probabilities follow from
    the noise within recordings, which is all that such programs know; what changes between recordings makes them wrong.

    Parameters
    ----------
    recordings, count
        Number of recordings and of units in each.
    neurons
        Number of neurons, of which every recording shows `count`; 11 for every 8 by default.
    difficulty : {"easy", "noisy", "drift"}
        How much the features differ from recording to recording.

    Returns
    -------
    p : (m, m)
        Probabilities, all recordings one after another.
    recording : (m,) int
        Recording of every unit, from 0.
    truth : (m,) int
        Its neuron.

    Examples
    --------
    >>> p, recording, truth = units(3, 10, rng=0)
    >>> p.shape, recording.tolist()[:12], bool((p.diagonal() > 0.5).mean() > 0.9)
    ((30, 30), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1], True)
    """
    if difficulty not in UNIT_DIFFICULTIES:
        raise unknown_name("difficulty", difficulty, UNIT_DIFFICULTIES)
    neurons = -(-count * 11 // 8) if neurons is None else neurons
    if not 1 <= count <= neurons or recordings < 1:
        raise InputError(f"{count} units of {neurons} neurons in {recordings} recordings: none may be fewer than one")
    draw = generator(rng)
    noise, between, drift = UNIT_DIFFICULTIES[difficulty]
    features = draw.random((neurons, FEATURES))
    alike = draw.permutation(neurons)[: 2 * round(ALIKE * neurons / 2)].reshape(2, -1)
    features[alike[0]] = features[alike[1]] + draw.normal(scale=APART, size=(alike.shape[1], FEATURES))
    truth = list[Ints]()
    halves = list[Floats](), list[Floats]()
    moving = np.zeros((neurons, FEATURES))
    for _ in range(recordings):
        moving = moving + draw.normal(scale=drift, size=moving.shape)
        shown = draw.permutation(neurons)[:count]
        here = features[shown] + moving[shown] + draw.normal(scale=between, size=(count, FEATURES))
        for half in halves:
            half.append(here + draw.normal(scale=noise, size=here.shape))
        truth.append(shown)
    first, second = (np.concatenate(half) for half in halves)
    squared = ((first[:, None] - second[None]) ** 2).sum(axis=2)
    # Of two halves of one unit the difference is normal; of two units it is about even in the unit cube.
    variance = 2 * noise**2
    same = np.exp(-squared / (2 * variance)) / (2 * np.pi * variance) ** (FEATURES / 2)
    prior = 1 / count
    p = prior * same / (prior * same + (1 - prior))
    return p, np.repeat(np.arange(recordings), count), np.concatenate(truth)
