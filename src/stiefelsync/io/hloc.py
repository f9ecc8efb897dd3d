"""hloc's HDF5 files of matches, with or without the file of features they belong to.

A pair is a group ``name0/name1`` (older: ``name0_name1``) whose names have ``/`` replaced by ``-``; its `matches0`
gives for every keypoint of image 0 its partner in image 1 or -1, its `matching_scores0` a score. Names are ambiguous
without the features file, and so are the numbers of keypoints of images that never come first.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io.base import Content, Format, Written, losses, names_of, register
from stiefelsync.io.hdf5 import Datasets, edited, is_hdf5, opened
from stiefelsync.io.provenance import MADE_BY, as_text
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings

__all__ = ["HLOC", "next_command"]

INT16_POINTS = 2**15  # keypoints an int16 index can tell apart
LEAST_SCORE = 1e-6  # a match of score 0 is still a match, and weights are positive


@dataclass(frozen=True)
class Pair:
    """One group: its path, its two images, its datasets; `dtype` is that of `matches` in the file."""

    group: str
    images: tuple[int, int]
    matches: NDArray[np.int64]
    scores: NDArray[Any] | None
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Contents:
    """All a file of matches says, with the help of its features file where there is one."""

    names: list[str]
    sizes: NDArray[np.int64]
    coordinates: NDArray[np.float32] | None
    pairs: list[Pair]


def _load(path: Path, features: str | Path | None, known: dict[str, NDArray[Any]] | None = None) -> Contents:
    """Read a file of matches; `known` are keypoints by image where there is no features file."""
    keypoints = known if features is None else _load_features(Path(features))
    with opened(path) as datasets:
        groups = datasets.having("matches0")
        if not groups:
            features_only = datasets.having("keypoints")
            hint = "it holds features, name the file of matches" if features_only else "it has no matches0"
            raise FormatError(f"{path} is not a file of matches by hloc: {hint}")
        escaped = None if keypoints is None else _escaped(list(keypoints))
        ends = {group: _split(group, escaped, path) for group in groups}
        names = list(keypoints) if keypoints is not None else sorted({name for pair in ends.values() for name in pair})
        number = {name: i for i, name in enumerate(names)}
        datasets.weigh("matches0", "matching_scores0")
        pairs = [_pair(datasets, group, (number[first], number[second])) for group, (first, second) in ends.items()]
    sizes = _sizes(names, pairs, keypoints, path)
    coordinates = None if keypoints is None else np.concatenate([np.empty((0, 2)), *keypoints.values()])
    return Contents(names, sizes, coordinates, pairs)


def _pair(datasets: Datasets, group: str, images: tuple[int, int]) -> Pair:
    """Read the datasets of one group; an unsigned type cannot hold -1, and has its largest number instead."""
    matches, scores = datasets.read(group, "matches0", "iu"), datasets.read(group, "matching_scores0", "fiu")
    if matches is None or matches.ndim != 1 or (scores is not None and scores.shape != matches.shape):
        raise FormatError(f"{datasets.path}: matches0 of {group!r} is not one whole number per keypoint")
    indices = matches.astype(np.int64)
    if matches.dtype.kind == "u":
        indices[matches == np.iinfo(matches.dtype).max] = -1
    return Pair(group, images, indices, scores, matches.dtype)


def _load_features(path: Path) -> dict[str, NDArray[Any]]:
    if not path.exists():
        raise InputError(f"{path} does not exist")
    with opened(path) as datasets:
        datasets.weigh("keypoints")
        read = {name: datasets.read(name, "keypoints", "fiu") for name in datasets.having("keypoints")}
    found = {name: keypoints for name, keypoints in read.items() if keypoints is not None}
    for name, keypoints in found.items():
        if keypoints.ndim != 2 or (len(keypoints) and keypoints.shape[1] < 2):
            raise FormatError(f"{path}: the keypoints of {name!r} do not have the shape (N, 2)")
    if not found:
        raise FormatError(f"{path} is not a file of features by hloc: it has no keypoints")
    return {name: found[name][:, :2].reshape(-1, 2) for name in sorted(found)}


def _escape(name: str) -> str:
    return name.replace("/", "-")


def _escaped(names: list[str]) -> dict[str, str]:
    """Return the names by how they stand in pairs."""
    table: dict[str, str] = {}
    for name in names:
        other = table.setdefault(_escape(name), name)
        if other != name:
            raise InputError(f"hloc writes both {other!r} and {name!r} as {_escape(name)!r}; rename one image")
    return table


def _split(group: str, escaped: dict[str, str] | None, path: Path) -> tuple[str, str]:
    """Return the two image names of a group, of the new convention (``/``) or the old one (``_``)."""
    splits = [
        (group[:at], group[at + 1 :])
        for separator in "/_"
        for at in range(1, len(group) - 1)
        if group[at] == separator and (separator == "/" or "/" not in group)
    ]
    if escaped is not None:
        known = [(escaped.get(_escape(a)), escaped.get(_escape(b))) for a, b in splits]
        fitting = list(dict.fromkeys((a, b) for a, b in known if a is not None and b is not None and a != b))
        if not fitting:
            raise FormatError(f"{path}: pair {group!r} is not of two images in the features file")
    else:
        fitting = splits
    if len(fitting) != 1:
        raise FormatError(f"{path}: pair {group!r} cannot be split into two names for sure; pass features=")
    return fitting[0]


def _sizes(names: list[str], pairs: list[Pair], keypoints: dict[str, Any] | None, path: Path) -> NDArray[np.int64]:
    """Return the number of keypoints of every image, and refuse indices that have wrapped or do not exist."""
    sizes = np.zeros(len(names), dtype=np.int64)
    exact = np.zeros(len(names), dtype=bool)
    if keypoints is not None:
        sizes[:], exact[:] = [len(block) for block in keypoints.values()], True
    for pair in pairs:
        i = pair.images[0]
        if exact[i] and sizes[i] != len(pair.matches):
            raise FormatError(
                f"{path}: {pair.group!r} has {len(pair.matches)} entries but {names[i]!r} has {sizes[i]} keypoints"
            )
        sizes[i], exact[i] = len(pair.matches), True
    for pair in pairs:
        j, top = pair.images[1], int(pair.matches.max(initial=-1))
        if not exact[j]:
            sizes[j] = max(sizes[j], top + 1)
        wrapped = pair.dtype == np.int16 and sizes[j] > INT16_POINTS
        if wrapped or int(pair.matches.min(initial=-1)) < -1:
            raise FormatError(
                f"{path}: {pair.group!r} holds 16-bit indices that have wrapped, as {names[j]!r} has more than"
                f" {INT16_POINTS:,} keypoints; match again and save matches0 as int32"
            )
        if top >= sizes[j]:
            raise FormatError(f"{path}: {pair.group!r} names keypoint {top} of {names[j]!r}, which has {sizes[j]}")
    return sizes


def read(
    path: Path, *, one_to_many: OneToMany = "repair", features: str | Path | None = None, scores: bool = True
) -> Matchings:
    """Read a file of matches.

    Parameters
    ----------
    one_to_many
        Matchers without a mutual check give one keypoint to several; the best is kept, or with "error" refused.
    features
        The file of features: gives the names with their slashes, the numbers of keypoints, and their positions.
    scores
        Whether matching scores become weights.
    """
    contents = _load(path, features)
    objects, points = [np.empty((0, 2), dtype=np.int64)], [np.empty((0, 2), dtype=np.int64)]
    weights = [np.empty(0)]
    for pair in contents.pairs:
        own = np.flatnonzero(pair.matches >= 0)
        objects.append(np.tile(np.array(pair.images, dtype=np.int64), (len(own), 1)))
        points.append(np.stack([own, pair.matches[own].astype(np.int64)], axis=1))
        weights.append(np.ones(len(own)) if pair.scores is None else pair.scores[own].astype(np.float64))
    use = scores and any(pair.scores is not None for pair in contents.pairs)
    return Matchings.from_arrays(
        np.concatenate(objects),
        np.concatenate(points),
        contents.sizes,
        weights=np.maximum(np.concatenate(weights), LEAST_SCORE) if use else None,
        names=contents.names,
        coordinates=contents.coordinates,
        one_to_many=one_to_many,
    )


def write(content: Content, path: Path, *, like: Path | None, features: str | Path | None = None) -> Written | None:
    """Write a file of matches: a filtered copy of `like` if that is one, else a new file.

    Parameters
    ----------
    features
        The file of features the matches were read with, if they were. What the matches know of their images, names and
        numbers of keypoints, is as good.

    Notes
    -----
    Every pair of `like` stays, if need be without matches, because hloc expects each pair of its list. Indices are
    int16 as in hloc itself where that holds them, else int32, which hloc reads as well.
    """
    if like is not None and is_hdf5(like):
        contents = _load(like, features, _known(content.matchings))
        if not np.array_equal(contents.sizes, content.matchings.sizes):
            raise InputError(f"these matches are not about the keypoints of {like}; pass the same features= as before")
        with edited(path, like) as file:
            _sign(file, content)
            return _filter(file, contents, content)
    with edited(path) as file:
        _sign(file, content)
        names = _escaped(names_of(content.matchings, numbered="{:06}"))
        _create(file, list(names), content.matchings, set())
    return None


def _sign(file: Any, content: Content) -> None:
    """Say in an attribute of the file what made it."""
    if content.provenance is not None:
        file.attrs[MADE_BY] = as_text(content.provenance)


def _known(matchings: Matchings) -> dict[str, NDArray[Any]] | None:
    """Return an array for every image as long as it has keypoints; None if its images have no names of their own."""
    if matchings.names is None or matchings.coordinates is None:  # without features names have lost their slashes
        return None
    sizes = zip(names_of(matchings), matchings.sizes.tolist(), strict=True)
    return {name: np.broadcast_to(np.float32(0), (size, 2)) for name, size in sizes}


def next_command(
    path: str | Path, *, features: str | Path = "features.h5", pairs: str = "pairs.txt", images: str | Path = "images"
) -> str:
    """Return what to type next to reconstruct with hloc from a file of matches.

    Examples
    --------
    >>> print(next_command("clean.h5"))  # doctest: +NORMALIZE_WHITESPACE
    python -m hloc.reconstruction --sfm_dir sfm --image_dir images --pairs pairs.txt --features features.h5
    --matches clean.h5
    """
    given = {"sfm_dir": "sfm", "image_dir": images, "pairs": pairs, "features": features, "matches": path}
    return "python -m hloc.reconstruction " + " ".join(
        f"--{name} {shlex.quote(str(value))}" for name, value in given.items()
    )


def _filter(file: Any, contents: Contents, content: Content) -> Written:
    matchings, offsets = content.matchings, content.matchings.offsets
    blocks, written = matchings.pairs(), set[tuple[int, int]]()
    before, added, kept = 0, 0, [np.empty((0, 2), dtype=np.int64)]
    for pair in contents.pairs:
        i, j = pair.images
        matches = pair.matches.copy()
        own = np.flatnonzero(matches >= 0)
        ends = np.sort(np.stack([own + offsets[i], matches[own] + offsets[j]], axis=1), axis=1)
        keep = content.holds(ends)
        drop = own[~keep]
        before += len(own)
        kept.append(ends[keep])
        matches[drop] = -1
        new = np.empty(0, dtype=np.int64)
        if content.add:
            wanted = blocks.get((min(i, j), max(i, j)), matchings.indices[:0])[:, :: 1 if i < j else -1]
            new = wanted[matches[wanted[:, 0]] != wanted[:, 1], 0]
            matches[new] = wanted[np.isin(wanted[:, 0], new), 1]
        written.add((min(i, j), max(i, j)))
        added += len(new)
        if not len(drop) and not len(new):
            continue
        _replace(file[pair.group], "matches0", matches.astype(_index_type(int(contents.sizes[j]), pair.dtype)))
        if pair.scores is not None:
            scores = pair.scores.copy()
            scores[drop] = 0
            scores[new] = 1
            _replace(file[pair.group], "matching_scores0", scores)
    if content.add:
        _create(file, [_escape(name) for name in contents.names], matchings, written)
        added += sum(len(block) for pair, block in blocks.items() if pair not in written)
    held = np.concatenate(kept)
    return Written(before, len(held), len(np.unique(held, axis=0)), added)


def _create(file: Any, names: list[str], matchings: Matchings, skip: set[tuple[int, int]]) -> None:
    for name in names:
        if name in (".", ""):
            raise InputError(f"an HDF5 file cannot hold an object named {name!r}; rename it")
    start = matchings.pair_start
    for number, ((i, j), block) in enumerate(matchings.pairs().items()):
        if (i, j) in skip:
            continue
        matches = np.full(matchings.sizes[i], -1, dtype=_index_type(int(matchings.sizes[j]), np.dtype(np.int16)))
        matches[block[:, 0]] = block[:, 1]
        group = file.create_group(f"{names[i]}/{names[j]}")
        group.create_dataset("matches0", data=matches)
        if matchings.weights is not None:
            scores = np.zeros(len(matches))
            scores[block[:, 0]] = matchings.weights[start[number] : start[number + 1]]
            group.create_dataset("matching_scores0", data=scores)


def _index_type(size: int, least: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type for indices below `size` and for -1: that of the original, if it can hold them."""
    room = int(np.iinfo(least).max) + (least.kind == "i")
    return np.dtype(np.int32) if size > room else least


def _replace(group: Any, name: str, values: NDArray[Any]) -> None:
    """Overwrite a dataset in place where its type allows, so that no dead space is left."""
    if group[name].dtype == values.dtype:
        group[name][...] = values
    else:
        del group[name]
        group.create_dataset(name, data=values)


def loses(matchings: Matchings) -> list[str]:
    """A file of matches has no coordinates, nor images and keypoints that no pair tells of."""
    lost = losses(matchings, "An hloc file of matches", coordinates=False)
    alone = np.setdiff1d(np.arange(matchings.n_objects), matchings.pair_objects[:, 0])
    if len(alone):
        lost.append(
            f"An hloc file of matches tells the number of keypoints only of images that come first in a pair: "
            f"that of {counted(len(alone), 'image')} needs the features file."
        )
    return lost


def _advice(_: Path, options: Mapping[str, Any]) -> list[str]:
    """Say what is missed without the file of features."""
    if options.get("features") is not None:
        return []
    return ["Without the file of features positions are unknown: no match is judged by its neighbours."]


HLOC = register(
    Format(
        "hloc",
        "hloc HDF5 file of matches",
        (".h5", ".hdf5"),
        is_hdf5,
        read,
        write,
        loses,
        adds=False,
        copies=True,
        photographs=True,
        half_pixel=lambda _: True,
        files=("features",),
        advice=_advice,
        next_command=lambda path, written, images: next_command(path, images="IMAGES" if images is None else images),
    )
)
