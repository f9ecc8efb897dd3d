"""Where the cells of one session lie in another: a search of rotations and shifts, then an affine map.

No smooth warp is fitted on the cells themselves: it would make every score that is computed from the same cells look
better and move the cells it was not fitted on away from their partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special
from scipy.spatial import cKDTree

from stiefelsync.registration.session import Session

__all__ = ["Alignment", "Views", "align", "chained"]

Floats = NDArray[np.float64]

ANGLES = 12.0  # degrees to either side that are searched
STEP = 1.0
FAR_STEP = 3.0  # of all other directions, which are searched where these lead nowhere
SIDE = 128  # pixels that the longer side of an image is reduced to
ROUNDS = 4  # of mutual neighbours and fits
LUCK = 1e-5  # maps that would do as well by chance; with more the map that was found means nothing
BELIEVED = 0.001  # a map that other sessions lead to needs so much less luck to be wrong
PARTS = (1.0, 0.5, 0.25)  # of half a diameter, within which cells are counted for that
STRETCH = np.log(1.25)  # an affine map that stretches or shrinks more is none of one field of view
MORE_ROUNDS, GROWTH = 20, 1.03  # as long as so many times as many cells meet
FEWEST = 6  # mutual neighbours that an affine map is fitted on; 3 for a rigid one


@dataclass(frozen=True)
class Alignment:
    """How a session is laid over another one.

    Attributes
    ----------
    matrix : (2, 3)
        Takes (x, y, 1) in the second session to (x, y) in the first.
    shift
        How far the centre of the image moves, in pixels.
    angle
        By how much it is turned, in degrees.
    near
        Share of the cells of the smaller session that have a mutually nearest cell within half a diameter; NaN where
        one of the two has no cells.
    chance
        That share for cells strewn at random.
    residual
        Median distance of these cells, in pixels.
    luck
        How many maps that shift and turn no more than this one would let cells meet as well by chance.
    """

    matrix: Floats
    shift: float
    angle: float
    near: float
    chance: float
    residual: float
    luck: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether hardly more cells meet than would by chance; not where there are none to meet."""
        return bool(self.near < 1.5 * self.chance + 0.05 or self.luck > LUCK)

    @property
    def empty(self) -> bool:
        """Whether one of the two sessions has no cells."""
        return bool(np.isnan(self.near))

    def __call__(self, points: Floats) -> Floats:
        """Return where points, (n, 2), of the second session lie in the first."""
        return np.asarray(points @ self.matrix[:, :2].T + self.matrix[:, 2])


class Views:
    """Images of cells as spots, reduced, in all directions, as their Fourier transforms: made once per session."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        height = max(s.shape[0] for s in sessions)
        width = max(s.shape[1] for s in sessions)
        self.centre = np.array([width - 1, height - 1]) / 2
        self.scale = max(max(height, width) / SIDE, 1.0)
        # Twice the size, so that what leaves the image on one side does not come in again on the other.
        self.size = tuple(fft.next_fast_len(int(2 * np.ceil(n / self.scale)), real=True) for n in (height, width))
        spread = max(np.median([s.diameter for s in sessions]) / 2, 1.0) / self.scale
        fy, fx = fft.fftfreq(self.size[0])[:, None], fft.rfftfreq(self.size[1])[None, :]
        self.blur = np.exp(-2 * (np.pi * spread) ** 2 * (fx**2 + fy**2)).astype(np.float32)
        self.blur[0, 0] = 0.0  # the mean says nothing
        self.angles = np.arange(-ANGLES, ANGLES + STEP / 2, STEP)
        self.far_angles = np.arange(ANGLES + FAR_STEP, 360 - ANGLES - FAR_STEP / 2, FAR_STEP)

    def still(self, session: Session) -> NDArray[np.complex64]:
        """Return the transform of the session as it is."""
        return self._spots(session.centroids, 0.0)

    def turned(self, session: Session, *, far: bool = False) -> NDArray[np.complex64]:
        """Return the transforms of the session turned by every angle, (angles, …), by the far ones if asked."""
        return np.stack([self._spots(session.centroids, angle) for angle in self._all(far)])

    def _all(self, far: bool) -> Floats:
        return self.far_angles if far else self.angles

    def _spots(self, centroids: Floats, angle: float) -> NDArray[np.complex64]:
        at = ((centroids - self.centre) @ turn(angle).T + self.centre) / self.scale
        at = at[np.isfinite(at).all(axis=1)] + np.array(self.size[::-1]) / 4
        image = np.zeros(self.size, dtype=np.float32)
        low = np.floor(at).astype(np.int64)
        part = at - low
        # A spot between pixels is shared out among the four around it.
        for dy in (0, 1):
            for dx in (0, 1):
                weight = np.abs(1 - dx - part[:, 0]) * np.abs(1 - dy - part[:, 1])
                y, x = low[:, 1] + dy, low[:, 0] + dx
                inside = (y >= 0) & (x >= 0) & (y < self.size[0]) & (x < self.size[1])
                np.add.at(image, (y[inside], x[inside]), weight[inside])
        return np.asarray(fft.rfft2(image) * self.blur, dtype=np.complex64)

    def search(self, still: NDArray[np.complex64], turned: NDArray[np.complex64], *, far: bool = False) -> Floats:
        """Return the map, (2, 3), of the angle and the shift at which the two images agree best."""
        best, where = -np.inf, (0, 0, 0)
        surfaces = {}
        for a, other in enumerate(turned):
            # Plain, not phase, correlation: whitening smooth images leaves noise.
            surface = fft.irfft2(still * other.conj(), s=self.size)
            at = np.unravel_index(np.argmax(surface), surface.shape)
            surfaces[a] = float(surface[at])
            if surface[at] > best:
                best, where, peak = float(surface[at]), (a, int(at[0]), int(at[1])), surface
        a, y, x = where
        dy = y + _vertex(peak[(y - 1) % self.size[0], x], best, peak[(y + 1) % self.size[0], x])
        dx = x + _vertex(peak[y, (x - 1) % self.size[1]], best, peak[y, (x + 1) % self.size[1]])
        dy, dx = ((d + n / 2) % n - n / 2 for d, n in zip((dy, dx), self.size, strict=True))
        angles = self._all(far)
        angle = angles[a]
        if 0 < a < len(angles) - 1:
            angle += (angles[1] - angles[0]) * _vertex(surfaces[a - 1], best, surfaces[a + 1])
        rotation = turn(angle)
        shift = self.centre - rotation @ self.centre + np.array([dx, dy]) * self.scale
        return np.column_stack([rotation, shift])


def _vertex(before: float, top: float, after: float) -> float:
    """Return where the parabola through three neighbouring values has its top, from −½ to ½."""
    bend = before - 2 * top + after
    return 0.0 if bend >= 0 else float(np.clip(0.5 * (before - after) / bend, -0.5, 0.5))


def turn(angle: float) -> Floats:
    """Return the matrix that turns by an angle in degrees."""
    c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    return np.array([[c, -s], [s, c]])


def align(first: Session, second: Session, begin: Floats, *, expected: Floats | None = None) -> Alignment:
    """Refine a map by mutually nearest centroids: rigid, then affine.

    Parameters
    ----------
    begin : (2, 3)
        The map to begin with, from the second session to the first.
    expected : (2, 3), optional
        The map that is expected before anything is known of these two sessions, from which `luck` counts; none by
        default.

    Examples
    --------
    >>> at = np.random.default_rng(0).integers(5, 95, (60, 2))
    >>> days = [
    ...     Session.from_pixels(n, (110, 110), np.arange(60), (at[:, 1] + d) * 110 + at[:, 0], numbers=np.arange(60))
    ...     for n, d in (("a", 0), ("b", 3))
    ... ]
    >>> views = Views(days)
    >>> found = align(*days, views.search(views.still(days[0]), views.turned(days[1])))
    >>> (found.matrix.round(1) + 0.0).tolist(), found.failed
    ([[1.0, 0.0, 0.0], [0.0, 1.0, -3.0]], False)
    """
    a, b = (s.centroids[np.isfinite(s.centroids).all(axis=1)] for s in (first, second))
    matrix = np.array(begin, dtype=np.float64)
    radius = 0.5 * (first.diameter + second.diameter) / 2
    if not len(a) or not len(b):
        return Alignment(np.eye(2, 3), 0.0, 0.0, np.nan, np.nan, np.nan)
    tree = cKDTree(a)
    # The first rounds reach far, to mend what the search left; the last only across half a cell.
    for done, reach in enumerate(np.linspace(3.0, 1.0, ROUNDS) * radius):
        i, j, _ = _mutual(tree, a, b @ matrix[:, :2].T + matrix[:, 2], reach)
        affine = done >= ROUNDS // 2
        if len(i) < (FEWEST if affine else 3):
            continue
        matrix = _mapped(b[j], a[i]) if affine else _rigid(b[j], a[i])
    i, j, distance = _mutual(tree, a, b @ matrix[:, :2].T + matrix[:, 2], radius)
    # Where the scale differs cells meet around a centre first, from which the map spreads.
    for _ in range(MORE_ROUNDS):
        if len(i) < FEWEST:
            break
        wider = _mapped(b[j], a[i])
        more = _mutual(tree, a, b @ wider[:, :2].T + wider[:, 2], radius)
        if len(more[0]) < GROWTH * len(i):
            break
        matrix, (i, j, distance) = wider, more
    few = min(len(a), len(b))
    centre = np.array([first.shape[1] - 1, first.shape[0] - 1]) / 2
    shift = float(np.linalg.norm(matrix[:, :2] @ centre + matrix[:, 2] - centre))
    angle = _angle(matrix)
    field = _field(a, b, first.shape, radius)
    # Maps that differ by less than half a cell, or a degree, let the same cells meet.
    other = np.eye(2, 3) if expected is None else expected
    apart = float(np.linalg.norm((matrix[:, :2] - other[:, :2]) @ centre + matrix[:, 2] - other[:, 2]))
    turned = abs((angle - _angle(other) + 180) % 360 - 180)
    maps = (1 + (apart / radius) ** 2) * (1 + turned / STEP)
    if expected is not None:
        maps *= BELIEVED
    lucks = [
        special.bdtrc(np.count_nonzero(distance <= part * radius) - 1, few, _chance(a, b, part * radius, few, field))
        for part in PARTS
    ]
    return Alignment(
        matrix, shift, angle, len(i) / few, _chance(a, b, radius, few, field),
        float(np.median(distance)) if len(i) else np.nan, float(min(lucks)) * len(PARTS) * maps,
    )  # fmt: skip


def chained(alignments: Mapping[tuple[int, int], Alignment], start: int) -> dict[int, Floats]:
    """Return the map, (2, 3), into the frame of one session, of every session that good alignments lead there from.

    Examples
    --------
    >>> right = Alignment(np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]]), 3.0, 0.0, 0.9, 0.1, 0.2)
    >>> maps = chained({(0, 1): right, (1, 2): right}, 0)
    >>> {session: float(found[0, 2]) for session, found in maps.items()}
    {0: 0.0, 1: 3.0, 2: 6.0}
    """
    steps = dict[int, dict[int, Floats]]()  # from the second session into the first
    for (i, j), found in alignments.items():
        if not (found.failed or found.empty):
            steps.setdefault(i, {})[j] = found.matrix
            back = np.linalg.inv(found.matrix[:, :2])
            steps.setdefault(j, {})[i] = np.column_stack([back, -back @ found.matrix[:, 2]])
    maps: dict[int, Floats] = {start: np.eye(2, 3)}
    reached = [start]
    for near in reached:  # which grows on the way, so that the fewest steps are taken
        for far, step in sorted(steps.get(near, {}).items()):
            if far not in maps:
                linear = maps[near][:, :2]
                maps[far] = np.column_stack([linear @ step[:, :2], linear @ step[:, 2] + maps[near][:, 2]])
                reached.append(far)
    return maps


def _angle(matrix: Floats) -> float:
    """Return by how many degrees a map turns."""
    return float(np.degrees(np.arctan2(matrix[1, 0] - matrix[0, 1], matrix[0, 0] + matrix[1, 1])))


def _mutual(tree: cKDTree, a: Floats, b: Floats, reach: float) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the points of a and of b that are each other's nearest within reach, and their distances."""
    distance, nearest = tree.query(b, distance_upper_bound=reach)
    j = np.flatnonzero(np.isfinite(distance))
    _, back = cKDTree(b).query(a[nearest[j]])
    j = j[back == j]
    return nearest[j], j, distance[j]


def _field(a: Floats, b: Floats, shape: tuple[int, int], radius: float) -> Floats:
    """Return the sides of the area that cells fill: as far as they reach, and a little more where they are few."""
    both = np.concatenate([a, b])
    # Of n places at random in a side, the outermost two are (n - 1) / (n + 1) of it apart on average.
    sides = np.ptp(both, axis=0) * (len(both) + 1) / max(len(both) - 1, 1)
    few = len(both) < 2 * FEWEST
    sides = np.maximum(sides, shape[::-1]) if few else np.minimum(sides, shape[::-1])
    return np.asarray(np.maximum(sides, 2 * radius), dtype=np.float64)


def _chance(a: Floats, b: Floats, radius: float, few: int, extent: Floats) -> float:
    """Return the share of cells that a mutual neighbour would be met by at random, in the area that they fill."""
    many = max(len(a), len(b))
    return float(1 - np.exp(-np.pi * radius**2 * many / np.prod(extent))) * min(1.0, many / few)


def _rigid(source: Floats, target: Floats) -> Floats:
    """Return the rotation and shift, (2, 3), with the least squared distances (Kabsch)."""
    from_, to = source.mean(axis=0), target.mean(axis=0)
    u, _, vt = np.linalg.svd((target - to).T @ (source - from_))
    rotation = u @ np.diag([1.0, np.linalg.det(u @ vt)]) @ vt
    return np.column_stack([rotation, to - rotation @ from_])


def _mapped(source: Floats, target: Floats) -> Floats:
    """Return the best affine map, or the best rigid one where few or aligned points would stretch the session."""
    found = _affine(source, target)
    stretch = np.linalg.svd(found[:, :2], compute_uv=False)
    return found if (abs(np.log(np.maximum(stretch, 1e-9))) < STRETCH).all() else _rigid(source, target)


def _affine(source: Floats, target: Floats) -> Floats:
    """Return the affine map, (2, 3), with the least squared distances."""
    design = np.column_stack([source, np.ones(len(source))])
    return np.asarray(np.linalg.lstsq(design, target, rcond=None)[0].T)
