"""Imaging sessions with known cells: drift, rotation, births, deaths, silent days, false detections, neighbours."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.datasets._drawn import drawn
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.registration.session import Session
from stiefelsync.stiefel.checks import generator, is_count

__all__ = ["DIFFICULTIES", "Difficulty", "sessions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Difficulty:
    """How days differ.

    Attributes
    ----------
    shift
        Step of the field's random walk, pixels a day (standard deviation).
    rotation
        Rotation of every day, degrees.
    warp
        Smooth deformation of every day, pixels.
    jitter
        Error of every position, pixels.
    detection
        Share of the living cells that are detected on a day.
    false
        False detections, as a share of the cells; a third passes for cells.
    """

    shift: float
    rotation: float
    warp: float
    jitter: float
    detection: float
    false: float


DIFFICULTIES = {
    "easy": Difficulty(3.0, 0.7, 0.8, 0.5, 0.93, 0.1),
    "default": Difficulty(4.0, 0.7, 1.2, 0.5, 0.8, 0.2),
    "hard": Difficulty(8.0, 1.5, 2.2, 0.8, 0.75, 0.4),
}
TURNOVER = 0.02  # of the cells die every day, and as many are born
REJECTED = 0.07  # of the detected cells do not pass for cells
PASSING = 0.35  # of the false detections do
SPLIT = 0.02  # of the detected cells are found in two pieces
RADIUS = 5.5
NEIGHBOURS = 0.25  # of the cells touch another one


@drawn
def sessions(
    days: int = 12,
    cells: int = 280,
    *,
    difficulty: str | Difficulty = "default",
    shape: tuple[int, int] = (512, 512),
    folder: str | os.PathLike[str] | None = None,
    rng: np.random.Generator | int | None = None,
) -> tuple[list[Session], Ints]:
    """Draw imaging sessions of one field of view, as suite2p finds their cells.

    Parameters
    ----------
    days
        Number of sessions.
    cells
        Cells alive at any time.
    difficulty : {"easy", "default", "hard"} or Difficulty
        How days differ.
    shape : (height, width)
        Size of the images in pixels.
    folder
        A folder, new or empty, to write all of it to as suite2p does: ``day01/suite2p/plane0/stat.npy`` and so on.
    rng
        Seed or generator; None means seed 0.

    Returns
    -------
    sessions : list of Session
        What passes for cells (`iscell`), in the order of `stat.npy`.
    truth : (m,) int
        Which cell every one of them is, sessions one after another; -1 where it is none.

    Examples
    --------
    >>> days, truth = sessions(3, 40, difficulty="easy", shape=(160, 160), rng=0)
    >>> len(days), len(truth) == sum(map(len, days))
    (3, True)
    """
    if isinstance(difficulty, str):
        if difficulty not in DIFFICULTIES:
            raise unknown_name("difficulty", difficulty, DIFFICULTIES)
        difficulty = DIFFICULTIES[difficulty]
    if days < 1 or cells < 1 or not all(map(is_count, shape)) or min(shape) < 64:
        raise InputError(f"at least one day, one cell and 64 × 64 pixels, got {days}, {cells} and {shape}")
    target = None if folder is None else Path(folder)
    if target is not None and target.exists() and any(target.iterdir()):
        raise InputError(f"{target} is not empty; choose a new folder")
    draw = generator(rng)
    field = _Field(days, cells, shape, draw)
    centre = np.array([shape[1] - 1, shape[0] - 1]) / 2
    walk = np.cumsum(draw.normal(scale=difficulty.shift, size=(days, 2)), axis=0)
    walk -= walk.mean(axis=0)  # the field of view is chosen to be about the same
    made, truth = [], []
    for day in range(days):
        rois, which, passing = _detections(field, day, difficulty, draw)
        at = _drifted(rois[0], centre, walk[day], difficulty, shape, draw)
        session, kept = _session(day, at, rois, which, passing, shape, draw, target)
        made.append(session)
        truth.append(which[kept])
    return made, np.concatenate(truth)


class _Field:
    """Cells that live for some days, with their places and outlines."""

    def __init__(self, days: int, cells: int, shape: tuple[int, int], draw: np.random.Generator) -> None:
        born = [0] * cells
        for day in range(1, days):
            born += [day] * draw.poisson(TURNOVER * cells)
        n = len(born)
        self.born = np.array(born)
        # Lives are geometric, so that as many die every day as are born.
        self.last = self.born + draw.geometric(TURNOVER, size=n) - 1
        self.at = _places(n, shape, draw)
        self.radius = np.clip(draw.normal(RADIUS, 0.7, n), 3.5, 8.0)
        self.waves = draw.normal(scale=[0.14, 0.08, 0.05], size=(n, 3))
        self.phases = draw.uniform(0, 2 * np.pi, (n, 3))

    def alive(self, day: int) -> Ints:
        return np.flatnonzero((self.born <= day) & (day <= self.last))


def _places(n: int, shape: tuple[int, int], draw: np.random.Generator) -> Floats:
    """Return places that keep some distance, of which a quarter are next to another one."""
    extent = np.array([shape[1], shape[0]], dtype=float)
    at = np.empty((n, 2))
    least = min(9.0, 0.6 * np.sqrt(extent.prod() / n))
    for i in range(n):
        for _ in range(100):
            if i and draw.random() < NEIGHBOURS:
                angle, far = draw.uniform(0, 2 * np.pi), draw.uniform(1.0, 1.5) * least
                spot = at[draw.integers(i)] + far * np.array([np.cos(angle), np.sin(angle)])
            else:
                spot = draw.uniform(0, 1, 2) * (extent + 20) - 10  # some lie half outside
            if not i or (((at[:i] - spot) ** 2).sum(axis=1) >= least**2).all():
                break
        at[i] = spot
    return at


def _detections(
    field: _Field, day: int, difficulty: Difficulty, draw: np.random.Generator
) -> tuple[tuple[Floats, Floats, Floats, Floats], Ints, NDArray[np.bool_]]:
    """Return places and outlines of what is detected on a day, which cell each is, and which pass for cells."""
    alive = field.alive(day)
    seen = alive[draw.random(len(alive)) < difficulty.detection]
    at, radius = field.at[seen], field.radius[seen] * draw.normal(1.0, 0.07, len(seen))
    waves, phases = field.waves[seen] + draw.normal(scale=0.03, size=(len(seen), 3)), field.phases[seen]
    passing = draw.random(len(seen)) >= REJECTED
    # A cell in two pieces: the larger one counts as the cell, the other one as nothing.
    split = np.flatnonzero(draw.random(len(seen)) < SPLIT)
    angle = draw.uniform(0, 2 * np.pi, len(split))
    aside = np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius[split, None]
    pieces = at[split] + 0.7 * aside, radius[split] * 0.55
    at[split] -= 0.25 * aside
    radius[split] *= 0.8
    n = draw.poisson(difficulty.false * len(seen))
    low, high = field.at.min(axis=0), field.at.max(axis=0)
    false = draw.uniform(low, high, (n, 2)), np.clip(draw.normal(RADIUS, 1.5, n), 2.5, 9.0)
    more = len(split) + n
    places = np.concatenate([at, pieces[0], false[0]])
    sizes = np.concatenate([radius, pieces[1], false[1]])
    waves = np.concatenate([waves, draw.normal(scale=[0.2, 0.12, 0.08], size=(more, 3))])
    phases = np.concatenate([phases, draw.uniform(0, 2 * np.pi, (more, 3))])
    passes = [passing, passing[split], draw.random(n) < PASSING]
    which = np.concatenate([seen, np.full(more, -1)])
    order = draw.permutation(len(which))
    rois = places[order], sizes[order], waves[order], phases[order]
    return rois, which[order], np.concatenate(passes)[order]


def _drifted(
    at: Floats, centre: Floats, shift: Floats, difficulty: Difficulty, shape: tuple[int, int], draw: np.random.Generator
) -> Floats:
    """Return where places lie on a day: turned, shifted, smoothly deformed, and with errors."""
    angle = np.radians(draw.normal(scale=difficulty.rotation))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    x, y = (at / np.array([shape[1], shape[0]]) * 2 * np.pi).T
    # Waves as long as the image: an affine map follows them hardly.
    modes = np.stack([np.sin(x), np.cos(x), np.sin(y), np.cos(y)], axis=1)
    warp = modes @ draw.normal(scale=difficulty.warp / np.sqrt(2), size=(4, 2))
    warp -= warp.mean(axis=0)
    jitter = draw.normal(scale=difficulty.jitter, size=at.shape)
    return np.asarray((at - centre) @ turn.T + centre + shift + warp + jitter)


def _session(
    day: int,
    at: Floats,
    rois: tuple[Floats, Floats, Floats, Floats],
    which: Ints,
    passing: NDArray[np.bool_],
    shape: tuple[int, int],
    draw: np.random.Generator,
    folder: Path | None,
) -> tuple[Session, Ints]:
    """Return a day's session and which of its detections are in it; write it all, if there is a folder."""
    _, radius, waves, phases = rois
    drawn = [_pixels(at[i], float(radius[i]), waves[i], phases[i], shape, draw) for i in range(len(at))]
    rows = np.flatnonzero([len(lam) > 5 for _, _, lam in drawn])  # the others lie outside
    passes = passing[rows]
    number = np.flatnonzero(passes)
    image = _image([drawn[i] for i in rows], shape, draw)
    kept = [drawn[rows[i]] for i in number]
    cells = np.repeat(np.arange(len(kept)), [len(lam) for _, _, lam in kept])
    none = np.empty(0, dtype=np.int64)
    pixels = np.concatenate([none, *(y * shape[1] + x for y, x, _ in kept)])
    lam = np.concatenate([none.astype(np.float32), *(lam for _, _, lam in kept)])
    name = f"day{day + 1:02d}"
    made = Session.from_pixels(
        name, shape, cells, pixels, lam, numbers=number, total=len(rows), image=image, source="suite2p"
    )
    if folder is not None:
        _write(folder / name / "suite2p" / "plane0", [drawn[i] for i in rows], passes, image, draw)
    return made, rows[passes]


def _pixels(
    at: Floats, radius: float, waves: Floats, phases: Floats, shape: tuple[int, int], draw: np.random.Generator
) -> tuple[Ints, Ints, NDArray[np.float32]]:
    """Return rows, columns and weights of the pixels of a cell that lie in the image."""
    reach = int(np.ceil(1.7 * radius)) + 1
    x0, y0 = np.round(at).astype(int)
    y, x = np.mgrid[y0 - reach : y0 + reach + 1, x0 - reach : x0 + reach + 1]
    dx, dy = x - at[0], y - at[1]
    angle = np.arctan2(dy, dx)
    outline = radius * (1 + sum(w * np.cos(k * angle + p) for k, w, p in zip((2, 3, 4), waves, phases, strict=True)))
    weight = np.exp(-0.7 * (np.hypot(dx, dy) / np.maximum(outline, 1.0)) ** 4)
    weight = weight * draw.lognormal(sigma=0.15, size=weight.shape)
    kept = (weight > 0.4) & (x >= 0) & (y >= 0) & (x < shape[1]) & (y < shape[0])
    return y[kept], x[kept], (5 * weight[kept]).astype(np.float32)


def _image(drawn: list[Any], shape: tuple[int, int], draw: np.random.Generator) -> NDArray[np.float32]:
    """Return a mean image: background, cells and noise."""
    image = 20 + draw.normal(scale=1.5, size=shape)
    for y, x, lam in drawn:
        image[y, x] += 4 * lam
    return image.astype(np.float32)


def _write(
    plane: Path, drawn: list[Any], passing: NDArray[np.bool_], image: NDArray[np.float32], draw: np.random.Generator
) -> None:
    """Write `stat.npy`, `iscell.npy` and `ops.npy` as suite2p does."""
    plane.mkdir(parents=True)
    stat = np.empty(len(drawn), dtype=object)
    for i, (y, x, lam) in enumerate(drawn):
        stat[i] = {
            "ypix": y, "xpix": x, "lam": lam, "med": [int(np.median(y)), int(np.median(x))], "npix": len(y),
            "radius": float(np.sqrt(len(y) / np.pi)), "overlap": np.zeros(len(y), dtype=bool),
        }  # fmt: skip
    chance = np.where(passing, draw.uniform(0.5, 1, len(drawn)), draw.uniform(0, 0.5, len(drawn)))
    np.save(plane / "stat.npy", stat, allow_pickle=True)
    np.save(plane / "iscell.npy", np.stack([passing.astype(float), chance], axis=1))
    ops = {"Ly": image.shape[0], "Lx": image.shape[1], "meanImg": image, "nplanes": 1, "fs": 30.0}
    with (plane / "ops.npy").open("wb") as file:
        np.save(file, np.array(ops, dtype=object), allow_pickle=True)
