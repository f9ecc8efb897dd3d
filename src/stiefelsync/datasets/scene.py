"""A problem the size and shape of structure from motion: many cameras, each seeing a small part of a large universe."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.datasets.synthetic import permute_selected
from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import generator

__all__ = ["scene"]

_FEWEST = 15  # pairs with fewer matches are dropped, as structure-from-motion programs do
_OVERLAP = 0.8  # cameras whose windows start at most this share of a window apart are matched


@drawn
def scene(
    points: int = 20_000,
    cameras: int = 200,
    seen: int = 1_000,
    window: int = 2_000,
    wrong: float = 0.3,
    missing: float = 0.3,
    *,
    rng: np.random.Generator | int | None = 0,
) -> tuple[Matchings, NDArray[np.int64]]:
    """Draw a scene: universe points on a ring, cameras around it, pairwise matches between neighbouring cameras.

    Camera i of k looks at `window` consecutive points starting at i/k of the ring and sees `seen`
    of them at random, in random order. Cameras whose windows start at most 0.8·window apart are
    matched: a common point is matched with probability 1 - `missing`, pairs with fewer than 15
    matches are dropped, and a share `wrong` of each pair's matches have their targets permuted
    among themselves.

    Parameters
    ----------
    points
        Universe size d.
    cameras
        Number of objects k.
    seen
        Keypoints per camera.
    window
        Consecutive universe points a camera looks at, seen ≤ window ≤ points.
    wrong, missing
        Rates in [0, 1].
    rng
        Generator or seed; the same seed gives the same scene.

    Returns
    -------
    matchings : Matchings
        ``cameras * seen`` points; the defaults make 200,000 with 640,000 matches (1.3 million
        entries of W).
    truth : (m,) int64
        True universe point of every point.

    Notes
    -----
    O(k · window) memory for the inverse of the truth, O(M log M) time, one vectorised pass per
    camera offset.

    Examples
    --------
    >>> matchings, truth = scene(500, 10, 60, 120, 0.1, 0.2, rng=0)
    >>> matchings.n_points, int(truth.max()) < 500
    (600, True)
    """
    if not 1 <= seen <= window <= points or cameras < 1:
        raise InputError(
            f"a scene needs 1 ≤ seen ≤ window ≤ points and a camera, got seen={seen}, window={window},"
            f" points={points}, cameras={cameras}"
        )
    for name, rate in (("wrong", wrong), ("missing", missing)):
        if not 0 <= rate <= 1:
            raise InputError(f"{name} must be between 0 and 1, got {rate}")
    rng = generator(rng)
    start = np.arange(cameras) * points // cameras
    # Places in the window, not universe points: `at` in random order, `place` its inverse (-1 where
    # nothing is seen).
    at = np.stack([rng.permutation(window)[:seen] for _ in range(cameras)])
    place = np.full((cameras, window), -1, dtype=np.int32)
    place[np.arange(cameras)[:, None], at] = np.arange(seen, dtype=np.int32)
    truth = (start[:, None] + at) % points
    objects, matches = [np.empty((0, 2), dtype=np.int32)], [np.empty((0, 2), dtype=np.int32)]
    for offset in range(1, cameras // 2 + 1):
        first = np.arange(cameras if 2 * offset < cameras else offset)
        second = (first + offset) % cameras
        apart = (start[second] - start[first]) % points
        near = np.minimum(apart, points - apart) <= _OVERLAP * window
        first, second = first[near], second[near]
        if not len(first):
            continue
        targets = _match(truth[first] - start[second][:, None], place[second], points, missing, rng)
        targets = permute_selected(targets, _share(targets >= 0, wrong, rng), rng)
        row, a = np.nonzero(targets >= 0)
        objects.append(np.stack([first[row], second[row]], axis=1).astype(np.int32))
        matches.append(np.stack([a, targets[row, a]], axis=1).astype(np.int32))
    flat = np.concatenate(objects), np.concatenate(matches)
    return Matchings.from_arrays(*flat, np.full(cameras, seen)), truth.ravel()


def _match(
    ahead: NDArray[np.int64], place: NDArray[np.int32], points: int, missing: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the point of the second camera for each of the first's, shape (number of pairs, seen), -1 = no match.

    `ahead` is how far each point lies ahead of the second window's start, `place` the second
    camera's inverse truth.
    """
    ahead = ahead % points
    common = ahead < place.shape[1]
    targets = np.take_along_axis(place, np.where(common, ahead, 0), axis=1).astype(np.int64)
    targets[~common | (rng.random(targets.shape) < missing)] = -1
    targets[(targets >= 0).sum(axis=1) < _FEWEST] = -1
    return targets


def _share(matched: NDArray[np.bool_], share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Select round(share · n) of the n matched entries of every row at random."""
    rank = np.argsort(np.argsort(np.where(matched, rng.random(matched.shape), 2.0), axis=1), axis=1)
    selected: NDArray[np.bool_] = rank < np.rint(share * matched.sum(axis=1))[:, None]
    return selected
