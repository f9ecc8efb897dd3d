"""Correspondences of matchers without keypoints (LoFTR, RoMa, MASt3R …): positions per pair of images.

One of these, told from the content:

* a CSV file with the header ``image_a,image_b,x_a,y_a,x_b,y_b`` and perhaps ``score``;
* an NPZ file with one array (K, 4) or (K, 5) per pair, named ``image_a|image_b``; columns x_a, y_a, x_b, y_b, score;
* an HDF5 file with a group ``image_a/image_b`` per pair that holds `keypoints0`, `keypoints1`, both (K, 2), and perhaps
  `scores` (K,), as hloc's ``match_dense`` writes them; slashes inside names are written as ``-``;
* a folder of NPZ or CSV files, one per pair, named ``image_a__image_b.npz`` (arrays `keypoints0`, `keypoints1`,
  `scores`, or `mkpts0`, `mkpts1`, `mconf`) or ``image_a__image_b.csv`` (header ``x_a,y_a,x_b,y_b``, perhaps ``score``).

In Python there is :func:`from_correspondences`.
"""

from __future__ import annotations

import csv as csv_module
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io.base import Content, Format, head, losses, names_of, register
from stiefelsync.io.hdf5 import Datasets, is_hdf5, opened
from stiefelsync.io.limits import regular
from stiefelsync.io.npz_arrays import load
from stiefelsync.io.photographs import with_folders
from stiefelsync.matching._canonical import as_reals
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.keypoints import find_keypoints

__all__ = ["CORRESPONDENCES", "from_correspondences"]

Pairs = dict[tuple[str, str], NDArray[np.float64]]

HEADER = "image_a,image_b,x_a,y_a,x_b,y_b"
PAIR_HEADER = "x_a,y_a,x_b,y_b"
BETWEEN = "__"
KEYS = (("keypoints0", "keypoints1", "scores"), ("mkpts0", "mkpts1", "mconf"))
LEAST_SCORE = 1e-6  # a correspondence of score 0 is still one, and weights are positive


@typed
def from_correspondences(correspondences: Mapping[tuple[str, str], ArrayLike]) -> Matchings:
    """Build keypoints and matches from ``{(name_a, name_b): (K, 4) or (K, 5)}``, rows x_a, y_a, x_b, y_b[, score].

    As :func:`~stiefelsync.sync.keypoints.find_keypoints`, with the names of images instead of numbers.

    Examples
    --------
    >>> found = from_correspondences({("a.jpg", "b.jpg"): [[10, 20, 30, 40]], ("a.jpg", "c.jpg"): [[10, 20.5, 5, 5]]})
    >>> found.names, found.n_points
    (('a.jpg', 'b.jpg', 'c.jpg'), 3)
    """
    names = sorted({str(name) for pair in correspondences for name in pair})
    number = {name: i for i, name in enumerate(names)}
    pairs: dict[tuple[int, int], NDArray[np.float64]] = {}
    for (a, b), block in correspondences.items():
        found = as_reals(block, f"the correspondences of {a!r} and {b!r}")
        if found.ndim != 2 or found.shape[1] not in (4, 5):
            shape = f"the shape {found.shape}, not (K, 4) or (K, 5)"
            raise InputError(f"the correspondences of {a!r} and {b!r} have {shape}")
        i, j = number[str(a)], number[str(b)]
        if i > j:
            i, j, found = j, i, found[:, [2, 3, 0, 1, *range(4, found.shape[1])]]
        if found.shape[1] == 5:
            found = np.column_stack([found[:, :4], np.maximum(found[:, 4], LEAST_SCORE)])
        if (i, j) in pairs:
            raise InputError(f"the correspondences of {a!r} and {b!r} are given twice; join them")
        pairs[i, j] = found
    return find_keypoints(pairs, len(names), names=names).matchings


def sniff(path: Path) -> bool:
    """Return whether a file or folder holds correspondences."""
    if path.is_dir():
        return any(BETWEEN in item.name for item in _files(path))
    start = head(path, 4096)
    if start.startswith(HEADER.encode()):
        return True
    if start[:2] == b"PK":
        return b"|" in start[30 : 30 + int.from_bytes(start[26:28], "little")]  # the name of the first array
    if is_hdf5(path):
        return _holds_keypoints0(path)
    return False


def _holds_keypoints0(path: Path) -> bool:
    try:
        with opened(path) as file:
            return any("keypoints0" in datasets for datasets in file.groups.values())
    except Exception:  # whatever is wrong with it, the reader of matches says so
        return False


def _files(path: Path) -> list[Path]:
    """Return the files of pairs in a folder, in order."""
    return sorted(item for item in path.iterdir() if item.suffix in (".npz", ".csv") and BETWEEN in item.stem)


def read(path: Path, *, photos: str | Path | None = None) -> Matchings:
    """Read correspondences and find the keypoints they are about.

    Parameters
    ----------
    photos
        Folder of the photographs. Files that cannot hold a slash in a name, such as those of hloc's ``match_dense``,
        have ``-`` instead; names get back their folders where the photograph is there.
    """
    if path.is_dir():
        pairs = {_names(item): _pair(item) for item in _files(path)}
    elif is_hdf5(path):
        pairs = _read_hdf5(path)
    elif head(path, 2) == b"PK":
        pairs = _read_npz(path)
    else:
        pairs = _read_csv(path)
    if not pairs:
        raise FormatError(f"{path} holds no correspondences")
    if photos is not None:
        called = with_folders({name for pair in pairs for name in pair}, Path(photos))
        pairs = {(called[a], called[b]): block for (a, b), block in pairs.items()}
    return from_correspondences(pairs)


def _names(path: Path) -> tuple[str, str]:
    a, _, b = path.stem.partition(BETWEEN)
    if not a or not b or BETWEEN in b:
        raise FormatError(f"{path}: the name of a file of correspondences is image_a{BETWEEN}image_b{path.suffix}")
    return a, b


def _pair(path: Path) -> NDArray[np.float64]:
    """Read a file of one pair."""
    if path.suffix == ".csv":
        return _table(path, PAIR_HEADER, text=0)[1]
    arrays = load(path, None)
    for one, two, scores in KEYS:
        if one in arrays and two in arrays:
            return _joined(arrays[one], arrays[two], arrays.get(scores), str(path))
    raise FormatError(f"{path} has neither keypoints0 and keypoints1 nor mkpts0 and mkpts1")


def _joined(one: NDArray[Any], two: NDArray[Any], scores: NDArray[Any] | None, where: str) -> NDArray[np.float64]:
    """Return two arrays of positions, and scores if there are any, as one."""
    parts = [np.asarray(one), np.asarray(two)] + ([] if scores is None else [np.asarray(scores).reshape(-1, 1)])
    n = len(parts[0])
    if any(part.ndim != 2 or len(part) != n or part.dtype.kind not in "fiu" for part in parts):
        raise FormatError(f"{where}: positions and scores are not one row of numbers per correspondence")
    if parts[0].shape[1] != 2 or parts[1].shape[1] != 2:
        raise FormatError(f"{where}: positions do not have the shape (K, 2)")
    return np.hstack(parts).astype(np.float64)


def _read_npz(path: Path) -> Pairs:
    pairs: Pairs = {}
    for name, array in load(path, None).items():
        a, between, b = name.partition("|")
        if not between or not a or not b:
            raise FormatError(f"{path}: array {name!r} is not named image_a|image_b")
        if array.ndim != 2 or array.shape[1] not in (4, 5) or array.dtype.kind not in "fiu":
            raise FormatError(f"{path}: array {name!r} does not have the shape (K, 4) or (K, 5)")
        pairs[a, b] = array.astype(np.float64)
    return pairs


def _read_hdf5(path: Path) -> Pairs:
    pairs: Pairs = {}
    with opened(path) as file:
        file.weigh("keypoints0", "keypoints1", "scores")
        for group in file.having("keypoints0"):
            names = group.split("/")
            if len(names) != 2:
                raise FormatError(f"{path}: group {group!r} is not of two images")
            one, two = (_positions(file, group, name) for name in ("keypoints0", "keypoints1"))
            pairs[names[0], names[1]] = _joined(one, two, file.read(group, "scores", "fiu"), f"{path}: {group!r}")
    return pairs


def _positions(file: Datasets, group: str, name: str) -> NDArray[Any]:
    found = file.read(group, name, "fiu")
    if found is None:
        raise FormatError(f"{file.path}: {group!r} has no {name}")
    return found


def _read_csv(path: Path) -> Pairs:
    names, numbers = _table(path, HEADER, text=2)
    rows = defaultdict[tuple[str, str], list[int]](list)
    for at, (a, b) in enumerate(names):
        rows[a, b].append(at)
    return {pair: numbers[at] for pair, at in rows.items()}


def _table(path: Path, header: str, text: int) -> tuple[list[list[str]], NDArray[np.float64]]:
    """Return the columns of text and those of numbers, one of which may be a score."""
    names, numbers = [], []
    with regular(path).open(newline="", encoding="utf-8") as file:
        rows = csv_module.reader(file, strict=True)
        try:
            first = ",".join(next(rows, []))
            if first not in (header, f"{header},score"):
                raise FormatError(f"{path}: the first line is {header} or {header},score")
            width = first.count(",") + 1
            for row in rows:
                if len(row) != width:
                    raise FormatError(f"{path}, line {rows.line_num}: {len(row)} columns where {width} are expected")
                names.append(row[:text])
                numbers.append([_number(word, path, rows.line_num) for word in row[text:]])
        except csv_module.Error as error:
            raise FormatError(f"{path}, line {rows.line_num}: {error}") from None
    return names, np.array(numbers, dtype=np.float64).reshape(-1, width - text)


def _number(word: str, path: Path, line: int) -> float:
    try:
        return float(word if "_" not in word else "no number")
    except ValueError:
        raise FormatError(f"{path}, line {line}: {word!r} is not a number") from None


def write(content: Content, path: Path, *, like: Path | None) -> None:
    """Write a CSV file of correspondences: the matches with their positions."""
    matchings = content.matchings
    if matchings.coordinates is None:
        raise InputError("a file of correspondences needs positions, and these matches have none")
    names, xy = names_of(matchings), np.asarray(matchings.coordinates, dtype=np.float64)
    weights = matchings.weights
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv_module.writer(file, lineterminator="\n")
        rows.writerow([*HEADER.split(","), *(["score"] if weights is not None else [])])
        for t, ((i, j), ends) in enumerate(
            zip(matchings.pair_objects[matchings.match_pairs].tolist(), matchings.endpoints.tolist(), strict=True)
        ):
            numbers = [*xy[ends[0]].tolist(), *xy[ends[1]].tolist()]
            rows.writerow([names[i], names[j], *numbers, *([] if weights is None else [float(weights[t])])])


def loses(matchings: Matchings) -> list[str]:
    """Keypoints are found anew from positions; those without a match are not in the file."""
    lost = losses(matchings, "A file of correspondences", sizes=False)
    found = counted(matchings.n_points, "keypoint")
    return [*lost, f"A file of correspondences holds positions only: its {found} are found anew on reading."]


CORRESPONDENCES = register(
    Format(
        "correspondences",
        "positions per pair of images, of matchers without keypoints",
        (".correspondences",),
        sniff,
        read,
        write,
        loses,
        photographs=True,
        half_pixel=is_hdf5,  # as hloc's
    )
)
