"""The castle of the demo: a hall between two towers, as convex parts with windows on their walls."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Face", "Part", "castle"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Face:
    """A convex polygon, its outward normal, and the smaller polygons painted on it.

    Attributes
    ----------
    polygon : (n, 3)
    kind
        What it is: "wall", "roof", "window" or "door".
    """

    polygon: Floats
    kind: str
    normal: Floats
    painted: tuple[Face, ...] = ()


@dataclass(frozen=True)
class Part:
    """A convex body; parts lie side by side along x, so the nearer in x hides the farther."""

    name: str
    faces: tuple[Face, ...]
    span: tuple[float, float] = field(default=(0.0, 0.0))


def castle() -> tuple[Part, ...]:
    """Return the left tower, the hall and the right tower.

    Examples
    --------
    >>> [part.name for part in castle()]
    ['tower', 'hall', 'tower']
    """
    return _tower(-3.2, -2.0), _hall(), _tower(2.0, 3.2)


def _hall() -> Part:
    x, y, eaves, ridge = 2.0, 1.2, 1.9, 3.0
    front = [*_windows(4, -x, x, 1.15, 1.6, 0.36), *_windows(4, -x, x, 0.35, 0.8, 0.36, skip=(1, 2))]
    front.append(("door", (-0.35, 0.35, 0.0, 0.85)))
    back = [*_windows(4, -x, x, 1.15, 1.6, 0.36), *_windows(4, -x, x, 0.35, 0.8, 0.36)]
    return Part(
        "hall",
        (
            _wall([-x, -y], [x, -y], 0.0, eaves, front),
            _wall([x, y], [-x, y], 0.0, eaves, back),
            _face([[-x, -y, eaves], [x, -y, eaves], [x, 0, ridge], [-x, 0, ridge]], "roof"),
            _face([[x, y, eaves], [-x, y, eaves], [-x, 0, ridge], [x, 0, ridge]], "roof"),
            _face([[x, -y, 0], [x, y, 0], [x, y, eaves], [x, 0, ridge], [x, -y, eaves]], "wall"),
            _face([[-x, y, 0], [-x, -y, 0], [-x, -y, eaves], [-x, 0, ridge], [-x, y, eaves]], "wall"),
        ),
        (-x, x),
    )


def _tower(left: float, right: float) -> Part:
    y, top, apex = 0.75, 3.2, 4.3
    corners = [[left, -y], [right, -y], [right, y], [left, y]]
    faces = []
    for n, a in enumerate(corners):
        b = corners[(n + 1) % 4]
        inner = a[0] == b[0] and abs(a[0]) == 2.0
        length = float(np.hypot(b[0] - a[0], b[1] - a[1]))
        openings = (
            [] if inner else [w for z in (1.0, 2.2) for w in _windows(1, -length / 2, length / 2, z, z + 0.6, 0.3)]
        )
        faces.append(_wall(a, b, 0.0, top, openings))
        faces.append(_face([[*a, top], [*b, top], [(left + right) / 2, 0.0, apex]], "roof"))
    return Part("tower", tuple(faces), (left, right))


def _windows(
    n: int, left: float, right: float, low: float, high: float, width: float, skip: tuple[int, ...] = ()
) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Return n equally spaced windows in wall coordinates (left, right, low, high), without those in `skip`."""
    centres = left + (right - left) * (np.arange(n) + 0.5) / n
    return [
        ("window", (c - width / 2, c + width / 2, low, high)) for i, c in enumerate(centres.tolist()) if i not in skip
    ]


def _wall(
    a: list[float],
    b: list[float],
    low: float,
    high: float,
    openings: list[tuple[str, tuple[float, float, float, float]]],
) -> Face:
    """Return the upright rectangle from a to b (x, y on the ground, counter-clockwise from above) with its openings."""
    A, B = np.array([*a, 0.0]), np.array([*b, 0.0])
    middle, along, up = (A + B) / 2, (B - A) / np.linalg.norm(B - A), np.array([0.0, 0.0, 1.0])
    painted = [
        _face([middle + s * along + z * up for s, z in ((l, lo), (r, lo), (r, hi), (l, hi))], kind)
        for kind, (l, r, lo, hi) in openings
    ]
    return _face([A + low * up, B + low * up, B + high * up, A + high * up], "wall", tuple(painted))


def _face(polygon: object, kind: str, painted: tuple[Face, ...] = ()) -> Face:
    corners = np.asarray(polygon, dtype=np.float64)
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[1])
    return Face(corners, kind, normal / np.linalg.norm(normal), painted)
