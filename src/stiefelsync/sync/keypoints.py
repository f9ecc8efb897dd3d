"""Keypoints from correspondences: matchers without a detector give positions per pair of images, and no identities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.special import gammaincinv

from stiefelsync.errors import InputError
from stiefelsync.matching._canonical import as_reals
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.tracks.clusters import mutual_best
from stiefelsync.sync.tracks.grow import grow_tracks

__all__ = ["Keypoints", "find_keypoints"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Median distance of two positions of one keypoint, in standard deviations of either coordinate.
_RAYLEIGH = 1.6651
# Distance of two positions of one keypoint that one in a hundred exceeds, in the same unit.
_REACH = 4.3
# Likewise for the four coordinates of one correspondence given twice; one in sixteen exceeds it.
_REPEATED = 4.2
_ACCEPT = 0.99  # share of twins that pass the test of being one
_TWIN_ROUNDS = 3  # each round may make one track of two
_MIN_WEIGHT = 1e-9  # of a candidate: weights are positive
_MIN_LOOPS = 30  # closed loops from which the noise of positions is estimated
_MEAN_ROUNDS = 5  # of the robust mean
_MIN_NOISE = 1e-3  # pixels; positions that agree exactly have no spread to measure others by


@dataclass(frozen=True)
class Keypoints:
    """Keypoints of images that were given by correspondences only.

    Attributes
    ----------
    matchings
        The correspondences as matches between keypoints, with the keypoints' positions as
        coordinates.
    of_ends : (C, 2) int64
        The keypoint, as a point of `matchings`, of both ends of every correspondence.
    noise
        Estimated standard deviation of a coordinate of a position, in pixels.
    """

    matchings: Matchings
    of_ends: Ints
    noise: float


@dataclass(frozen=True)
class _Ends:
    """Both ends of all correspondences, the first ends before the second ones; shape (2C,) each.

    A *side* is an image as seen in one of its pairs: side p is the first image of pair p, side P +
    p the second.
    """

    image: Ints
    side: Ints
    xy: Floats
    pairs: Ints

    def take(self, which: Ints) -> _Ends:
        """Return the ends of some of the correspondences."""
        both = np.concatenate([which, which + len(self.side) // 2])
        return _Ends(self.image[both], self.side[both], self.xy[both], self.pairs)

    @property
    def partner(self) -> Ints:
        """The other end of the same correspondence."""
        return np.roll(np.arange(len(self.side)), len(self.side) // 2)

    @property
    def images_of_sides(self) -> Ints:
        """Own image and other image of every side; shape (2P, 2)."""
        return np.concatenate([self.pairs, self.pairs[:, ::-1]])


def find_keypoints(
    correspondences: Mapping[tuple[int, int], ArrayLike],
    n_images: int,
    *,
    scores: Mapping[tuple[int, int], ArrayLike] | None = None,
    names: Sequence[str] | None = None,
) -> Keypoints:
    """Find which ends of correspondences are the same keypoint, and where these keypoints are.

    Between images i and j a keypoint has at most one correspondence. So positions in image i that
    come from the pairs (i, j) and (i, k) are put side by side: those that are each other's nearest,
    closer than the noise of positions allows, are candidates for one keypoint. A candidate counts
    for more the nearer its positions are, and if it closes a loop: over the images i → j → k → i,
    from one correspondence to the next, back to where it began. Keypoints grow along candidates,
    strongest evidence first, and never hold two ends of one pair
    (:func:`~stiefelsync.sync.tracks.grow.grow_tracks`), but for correspondences that are the same
    up to noise. The noise is estimated from the candidates that close loops, the reach of
    candidates follows from it. Nothing is rounded to a grid.

    Parameters
    ----------
    correspondences
        ``{(i, j): (K, 4)}``, rows ``x_i, y_i, x_j, y_j`` in pixels, or (K, 5) with a score.
    n_images
        Number of images.
    scores
        ``{(i, j): (K,)}``, positive: weights of the matches. Where not given: the fifth columns, if
        all have one.
    names
        Names of the images.

    Returns
    -------
    Keypoints
        Positions are robust means (Cauchy weights) of a keypoint's ends.

    Notes
    -----
    O(c log c) for the c candidates, which are few per end if the noise is below the distance of
    keypoints; memory O(c).

    Examples
    --------
    Three images of two points, whose positions differ a little from pair to pair.

    >>> found = find_keypoints(
    ...     {
    ...         (0, 1): [[10, 10, 20, 20], [50, 50, 60, 60]],
    ...         (0, 2): [[10.2, 10, 30, 30], [50, 50.1, 70, 70]],
    ...         (1, 2): [[20, 20.1, 30, 30.2]],
    ...     },
    ...     3,
    ... )
    >>> found.matchings.sizes.tolist(), found.matchings.coordinates[0].astype(float).round(2).tolist()
    ([2, 2, 2], [10.1, 10.0])
    """
    every, weights = _flat(correspondences, n_images, scores)
    noise = _noise(every)
    first = _repeated(every, noise)
    once = np.flatnonzero(first == np.arange(len(first)))
    ends = every.take(once)
    a, b, distance, closed = _candidates(ends, noise * _REACH)
    found = _grow(ends, a, b, np.exp(-((distance / (2 * noise)) ** 2)), closed)
    C = len(first)
    cluster = np.empty((2, C), dtype=np.int64)
    cluster[:, once] = found.reshape(2, -1)
    point = _by_image(cluster[:, first].ravel(), every.image)
    for _ in range(_TWIN_ROUNDS):
        twin = _twins(every, point, n_images, noise)
        if (twin == np.arange(len(twin))).all():
            break
        point = _by_image(twin[point], every.image)
    ends_of = point.reshape(2, C).T
    matchings = Matchings.from_endpoints(
        ends_of,
        _sizes(point, every.image, n_images),
        weights=weights,
        names=names,
        coordinates=_robust_means(every.xy, point, noise),
        one_to_many="repair",
    )
    return Keypoints(matchings, ends_of, noise)


def _by_image(cluster: Ints, image: Ints) -> Ints:
    """Number clusters of ends image by image, within an image by their names; shape (2C,)."""
    n = int(cluster.max(initial=-1)) + 1
    owner = np.full(n, -1)
    owner[cluster] = image
    used = np.flatnonzero(owner >= 0)
    number = np.empty(n, dtype=np.int64)
    number[used[np.argsort(owner[used], kind="stable")]] = np.arange(len(used))
    return number[cluster]


def _sizes(point: Ints, image: Ints, n_images: int) -> Ints:
    """Count the keypoints of every image; shape (n_images,)."""
    owner = np.zeros(int(point.max(initial=-1)) + 1, dtype=np.int64)
    owner[point] = image
    return np.bincount(owner, minlength=n_images)


def _twins(ends: _Ends, point: Ints, n_images: int, noise: float) -> Ints:
    """Return for every keypoint the one it is the same as: tracks that coincide wherever both are seen are one.

    Let two tracks have keypoints in the same s ≥ 2 images, d_t apart, found as means of n_t and
    n'_t positions. If they are the same point, ``Σ d_t² / (noise²·(1/n_t + 1/n'_t))`` is χ² of 2s
    degrees of freedom.
    """
    m, C = int(point.max(initial=-1)) + 1, len(point) // 2
    sizes, mean = _sizes(point, ends.image, n_images), _robust_means(ends.xy, point, noise)
    count = np.bincount(point, minlength=m)
    problem = Matchings.from_endpoints(point.reshape(2, C).T, sizes, one_to_many="repair")
    track = np.asarray(grow_tracks(problem).labels)
    close = [np.empty((0, 2), dtype=np.int64)]
    for first, last in pairwise(problem.offsets.tolist()):
        if last > first:
            close.append(first + cKDTree(mean[first:last]).query_pairs(_REACH * noise, output_type="ndarray"))
    a, b = np.concatenate(close).T
    known = (track[a] >= 0) & (track[b] >= 0) & (track[a] != track[b])
    a, b = a[known], b[known]
    apart = ((mean[a] - mean[b]) ** 2).sum(axis=1) / (noise**2 * (1 / count[a] + 1 / count[b]))
    key, pair = np.unique(np.minimum(track[a], track[b]) * m + np.maximum(track[a], track[b]), return_inverse=True)
    shared, total = np.bincount(pair, minlength=len(key)), np.bincount(pair, apart, len(key))
    # Of χ² with two degrees of freedom per shared image.
    quantile = 2 * gammaincinv(np.maximum(shared, 1), _ACCEPT)
    same = (shared >= 2) & (total <= quantile) & (shared == _both(track, problem, key))
    chosen = np.flatnonzero(same[pair])
    chosen = chosen[mutual_best(a[chosen], b[chosen], 1 / (1 + apart[chosen]), m)]
    twin = np.arange(m)
    twin[np.maximum(a[chosen], b[chosen])] = np.minimum(a[chosen], b[chosen])
    return twin


def _both(track: Ints, problem: Matchings, key: Ints) -> Ints:
    """Count the images in which both tracks of a pair, A·m + B, have a keypoint; shape of key."""
    m, k = problem.n_points, max(problem.n_objects, 1)
    matched = np.flatnonzero(track >= 0)
    seen = np.sort(track[matched] * k + problem.point_objects[matched])
    A, B = np.divmod(key, max(m, 1))
    start, stop = np.searchsorted(seen, A * k), np.searchsorted(seen, (A + 1) * k)
    which = np.repeat(np.arange(len(key)), stop - start)
    at = np.arange(len(which)) - np.repeat(np.cumsum(stop - start) - (stop - start), stop - start) + start[which]
    found = _look_up(seen, B[which] * k + seen[at] % k)[1]
    return np.bincount(which[found], minlength=len(key))


def _flat(
    correspondences: Mapping[tuple[int, int], ArrayLike],
    n_images: int,
    scores: Mapping[tuple[int, int], ArrayLike] | None,
) -> tuple[_Ends, Floats | None]:
    """Return all ends, and the weights of the correspondences if there are any."""
    pairs, rows, weights = [], [], []
    for (i, j), block in correspondences.items():
        found = as_reals(block, f"the correspondences of images {i} and {j}")
        found = found.reshape(-1, 4) if not found.size else found
        where = f"the correspondences of images {i} and {j}"
        if not (0 <= i < n_images and 0 <= j < n_images) or i == j:
            raise InputError(f"{where} are not of two of the {n_images} images")
        if found.ndim != 2 or found.shape[1] not in (4, 5):
            raise InputError(f"{where} have the shape {found.shape}; it must be (K, 4), rows x1, y1, x2, y2, or (K, 5)")
        if not np.isfinite(found).all():
            raise InputError(f"{where} hold a position that is not a number")
        given = found[:, 4] if found.shape[1] == 5 else None
        if scores is not None and (i, j) in scores:
            given = as_reals(scores[i, j], f"the scores of images {i} and {j}")
            if given.shape != (len(found),):
                raise InputError(f"{where} are {len(found)}, but there are {given.size} scores of them")
        pairs.append((i, j))
        rows.append(found[:, :4])
        weights.append(given)
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise InputError("a pair of images is given twice; join its correspondences")
    xy = np.concatenate([np.empty((0, 4)), *rows])
    of = np.repeat(np.arange(len(pairs)), [len(block) for block in rows])
    both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    image = np.concatenate([both[of, 0], both[of, 1]])
    ends = _Ends(image, np.concatenate([of, of + len(pairs)]), np.concatenate([xy[:, :2], xy[:, 2:]]), both)
    known = [given for given in weights if given is not None]
    if len(known) < len(weights) or not known:
        return ends, None
    return ends, np.concatenate(known)


def _noise(ends: _Ends) -> float:
    """Return the standard deviation of a coordinate, from the candidates that close a loop.

    At most what separates.
    """
    reach = _spacing(ends)
    _, _, distance, closed = _candidates(ends, reach)
    noise = reach / _REACH
    if np.count_nonzero(closed) >= _MIN_LOOPS:
        noise = min(noise, float(np.median(distance[closed])) / _RAYLEIGH)
    return max(noise, _MIN_NOISE)


def _repeated(ends: _Ends, noise: float) -> Ints:
    """Return for every correspondence the first one of its pair that is the same but for noise; shape (C,).

    Detectors give several keypoints in one place, one for each orientation, and matchers then
    several correspondences.
    """
    C = len(ends.side) // 2
    both = np.hstack([ends.xy[:C], ends.xy[C:]])
    first = np.arange(C)
    cuts = np.append(np.flatnonzero(np.diff(ends.side[:C], prepend=-1)), C)
    close = [np.empty((0, 2), dtype=np.int64)]
    for start, stop in pairwise(cuts.tolist()):
        close.append(start + cKDTree(both[start:stop]).query_pairs(_REPEATED * noise, output_type="ndarray"))
    pairs = np.concatenate(close)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    for a, b in pairs.tolist():
        if first[a] == a and first[b] == b:
            first[b] = a
    return first


def _spacing(ends: _Ends) -> float:
    """Return the median distance of a position to the nearest other one of its side, never of the same keypoint."""
    order = np.argsort(ends.side, kind="stable")
    cuts = np.append(np.flatnonzero(np.diff(ends.side[order], prepend=-1)), len(order))
    found = [np.empty(0)]
    for first, last in pairwise(cuts.tolist()):
        xy = ends.xy[order[first:last]]
        if len(xy) > 1:
            found.append(cKDTree(xy).query(xy, k=2)[0][:, 1])
    nearest = np.concatenate(found)
    return float(np.median(nearest)) if len(nearest) else 1.0


def _candidates(ends: _Ends, reach: float) -> tuple[Ints, Ints, Floats, Bools]:
    """Return ends a, b of different sides of an image that are each other's nearest, their distance, whether it closes.

    That is, for each two sides the mutually nearest ends no farther than `reach` apart.
    """
    order = np.argsort(ends.image, kind="stable")
    cuts = np.append(np.flatnonzero(np.diff(ends.image[order], prepend=-1)), len(order))
    close = [np.empty((0, 2), dtype=np.int64)]
    for first, last in pairwise(cuts.tolist()):
        own = order[first:last]
        close.append(own[cKDTree(ends.xy[own]).query_pairs(reach, output_type="ndarray")])
    a, b = np.concatenate(close).T
    apart = ends.side[a] != ends.side[b]
    a, b = a[apart], b[apart]
    distance = np.hypot(*(ends.xy[a] - ends.xy[b]).T)
    nearest = _nearest(a, ends.side[b], distance) & _nearest(b, ends.side[a], distance)
    a, b, distance = a[nearest], b[nearest], distance[nearest]
    return a, b, distance, _closes(ends, a, b)


def _nearest(end: Ints, side: Ints, distance: Floats) -> Bools:
    """Return which candidates are the nearest of an end into a side.

    The first of equally near ones.
    """
    order = np.lexsort((distance, side, end))
    first = np.append(True, (np.diff(end[order]) != 0) | (np.diff(side[order]) != 0))[: len(order)]
    nearest = np.zeros(len(end), dtype=bool)
    nearest[order[first]] = True
    return nearest


def _closes(ends: _Ends, a: Ints, b: Ints) -> Bools:
    """Return which candidates (a, b) of pairs (i, j) and (i, k) are confirmed by a correspondence of the pair (j, k).

    From the partner of a in image j a candidate must lead to an end of the pair (j, k), from that
    one's partner in image k another candidate to the partner of b.
    """
    n_sides, partner, sides = 2 * len(ends.pairs), ends.partner, ends.images_of_sides
    k = int(sides.max(initial=0)) + 1
    order = np.argsort(sides[:, 0] * k + sides[:, 1], kind="stable")
    named = (sides[:, 0] * k + sides[:, 1])[order]
    key = np.concatenate([a * n_sides + ends.side[b], b * n_sides + ends.side[a]])
    by_key = np.argsort(key, kind="stable")
    key, other = key[by_key], np.concatenate([b, a])[by_key]
    j, third = sides[ends.side[a], 1], sides[ends.side[b], 1]
    place, closed = _look_up(named, j * k + third)
    side = order[place]
    at, there = _look_up(key, partner[a] * n_sides + side)
    closed &= there
    over = partner[other[at]] if len(other) else at
    # The side of `over` is that of the pair (j, k) in image k; the partner of b must be its
    # candidate.
    back, there = _look_up(key, over * n_sides + ends.side[partner[b]])
    closed &= there
    return np.asarray(closed & (other[back] == partner[b])) if len(other) else closed


def _look_up(keys: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return where each number would stand among sorted ones, and whether it is there."""
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return place, keys[place] == wanted


def _grow(ends: _Ends, a: Ints, b: Ints, weights: Floats, closed: Bools) -> Ints:
    """Return the keypoint of every end, numbered from 0; shape (2C,)."""
    order = np.argsort(ends.side, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    sizes = np.bincount(ends.side, minlength=2 * len(ends.pairs))
    labels = np.full(len(order), -1, dtype=np.int64)
    for some in (closed, np.ones(len(a), dtype=bool)):
        # What closes loops is nearly always right, so that keypoints grow along it before anything
        # else.
        if some.any():
            between = np.stack([place[a[some]], place[b[some]]], axis=1)
            problem = Matchings.from_endpoints(between, sizes, weights=np.maximum(weights[some], _MIN_WEIGHT))
            labels = np.asarray(grow_tracks(problem, start=labels).labels)
    labels = labels[place]
    alone = labels < 0
    labels[alone] = labels.max(initial=-1) + 1 + np.arange(np.count_nonzero(alone))
    return labels


def _robust_means(xy: Floats, point: Ints, noise: float) -> Floats:
    """Return the mean position of every keypoint's ends, those far from it counting less; shape (m, 2)."""
    m = int(point.max(initial=-1)) + 1
    count = np.maximum(np.bincount(point, minlength=m), 1)
    mean = np.stack([np.bincount(point, column, m) for column in xy.T], axis=1) / count[:, None]
    for _ in range(_MEAN_ROUNDS):
        weight = 1 / (1 + ((xy - mean[point]) ** 2).sum(axis=1) / (2 * noise) ** 2)
        total = np.bincount(point, weight, m)
        mean = np.stack([np.bincount(point, weight * column, m) for column in xy.T], axis=1) / total[:, None]
    return mean
