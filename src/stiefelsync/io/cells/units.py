"""Units of several recordings: folders of UnitMatch, plain matrices of scores, comparison graphs of SpikeInterface."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import head
from stiefelsync.io.cells.objects import as_array, is_npy, read_npy, read_objects
from stiefelsync.io.limits import guarded, lines, real, regular
from stiefelsync.io.npz_arrays import load
from stiefelsync.registration.candidates import Candidates
from stiefelsync.registration.scores import candidates_of_matrix

__all__ = ["Units", "from_networkx", "is_matrix", "is_unitmatch", "read_matrix", "read_unitmatch", "units_of"]

TEXTS = (".csv", ".tsv", ".txt")
DELIMITERS = ("\t", ";", ",")
MATRICES = ("scores", "p", "probability", "probabilities", "similarity")
SESSIONS = ("session", "sessions", "session_id", "recording", "recordings", "day", "days")
UNITS = ("unit", "units", "unit_id", "id", "ids", "original_ids")


@dataclass(frozen=True, eq=False)
class Units:
    """Units of several recordings and how probably pairs of them are one neuron.

    Attributes
    ----------
    candidates
        Pairs of units; units are sorted by recording.
    numbers : tuple of k arrays
        What the units of every recording are called: whole numbers or texts.
    order : (m,) int
        Row of every unit in the matrix or graph it came from.
    """

    candidates: Candidates
    numbers: tuple[NDArray[np.generic], ...]
    order: NDArray[np.int64]


@typed
def units_of(
    p: NDArray[Any], session: NDArray[Any], ids: NDArray[Any] | None = None, names: Sequence[str] | None = None
) -> Units:
    """Return the units of a matrix of probabilities.

    Parameters
    ----------
    p : (m, m)
        Probability that two units are one.
    session : (m,)
        Recording of every unit.
    ids : (m,), optional
        What the units are called; rows of the matrix by default.

    Examples
    --------
    >>> found = units_of(np.eye(4)[::-1], np.array([0, 0, 1, 1]))
    >>> found.candidates.ends.tolist(), [of.tolist() for of in found.numbers]
    ([[0, 3], [1, 2]], [[0, 1], [2, 3]])
    """
    candidates, order = candidates_of_matrix(p, session, names)
    called = np.arange(len(order)) if ids is None else np.asarray(ids).ravel()
    if len(called) != len(order):
        raise InputError(f"{len(called)} names of units do not fit a matrix of {len(order)}")
    bounds = np.cumsum(candidates.sizes)[:-1]
    return Units(candidates, tuple(np.split(called[order], bounds)), order)


def is_unitmatch(path: Path) -> bool:
    """Return whether a folder is one that UnitMatch wrote."""
    return path.is_dir() and any((path / name).is_file() for name in ("MatchProb.npy", "MatchProb CV12.npy"))


@typed
def read_unitmatch(path: Path) -> Units:
    """Read `MatchProb.npy`, and sessions and units from `MatchTable.csv` or, without running it, `ClusInfo.pickle`."""
    with guarded(path, "unitmatch"):
        if (path / "MatchProb.npy").is_file():
            p = _matrix(read_npy(path / "MatchProb.npy"), path / "MatchProb.npy")
        else:
            halves = [path / f"MatchProb CV{which}.npy" for which in ("12", "21")]
            first, second = (_matrix(read_npy(half), half) for half in halves)
            if first.shape != second.shape:
                raise FormatError(f"{path}: the two halves of MatchProb are of different sizes")
            p = (first + second) / 2
        if (path / "MatchTable.csv").is_file():
            session, ids = _match_table(path / "MatchTable.csv", len(p))
        elif (path / "ClusInfo.pickle").is_file():
            session, ids = _clus_info(path / "ClusInfo.pickle", len(p))
        else:
            raise FormatError(f"{path} has neither MatchTable.csv nor ClusInfo.pickle: the units' sessions are unknown")
        return units_of(p, session, ids, [f"session {s:g}" for s in np.unique(session)])


def _matrix(value: Any, path: Path) -> NDArray[Any]:
    if isinstance(value, np.ndarray) and value.ndim == 3 and value.shape[2] == 2:
        raise FormatError(f"{path} is no matrix of scores; tracks of points are an NPZ file: tracks=, visibility=")
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub" or value.ndim != 2:
        raise FormatError(f"{path} is not a matrix of numbers")
    if value.shape[0] != value.shape[1]:
        raise FormatError(f"{path} is not a square matrix, but of shape {value.shape}")
    return value


def _match_table(path: Path, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return session, from 1, and id of all units: the first n rows compare each of them with the first one."""
    with regular(path).open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(lines(file, path))
        found = []
        for row in islice(rows, n):
            try:
                found.append((real(row["RecSes 1"]), real(row["ID1"])))
            except KeyError as error:
                raise FormatError(f"{path} has no column {error}; is it of UnitMatch?") from None
            except (TypeError, ValueError):
                raise FormatError(f"{path}, line {rows.line_num}: RecSes 1 and ID1 must be numbers") from None
    table = np.array(found).reshape(-1, 2)
    if len(table) != n or not np.isfinite(table).all() or (np.abs(table) > 2**53).any():
        raise FormatError(f"{path} does not have a sound row for each of the {n} units of MatchProb")
    return table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)


def _clus_info(path: Path, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    info = read_objects(regular(path).read_bytes(), path)
    if not isinstance(info, dict) or not {"session_id", "original_ids"} <= set(info):
        raise FormatError(f"{path} has no session_id and original_ids; is it of UnitMatch?")
    session, ids = (as_array(info[key], path).ravel() for key in ("session_id", "original_ids"))
    if len(session) != n or len(ids) != n or session.dtype.kind not in "iuf" or ids.dtype.kind not in "iufUS":
        raise FormatError(f"{path} does not tell of the {n} units of MatchProb")
    return session.astype(np.int64) + 1, ids.astype(np.int64) if ids.dtype.kind in "iuf" else ids


def is_matrix(path: Path) -> bool:
    """Return whether an NPZ file holds a square matrix of scores and the session of every row."""
    if not path.is_file() or path.suffix.lower() != ".npz" or head(path, 4) != b"PK\x03\x04":
        return False
    try:
        with guarded(path, "scores"):
            return _parts(path) is not None
    except FormatError:
        return False


def _parts(path: Path) -> dict[str, NDArray[Any]] | None:
    found = load(path, {*MATRICES, *SESSIONS, *UNITS})
    parts = {
        role: next((found[name] for name in names if name in found), None)
        for role, names in (("p", MATRICES), ("session", SESSIONS), ("ids", UNITS))
    }
    return None if parts["p"] is None or parts["session"] is None else parts  # type: ignore[return-value]


@typed
def read_matrix(path: Path, sessions: Path | None = None) -> Units:
    """Read a matrix of scores: an NPZ file with `scores` and `session`, or an NPY or CSV file and one of the sessions.

    Parameters
    ----------
    sessions
        NPY file, or text with one session a line, that gives the session of every row of the matrix.
    """
    with guarded(path, "scores"):
        if path.suffix.lower() in TEXTS and sessions is not None:
            p = _table(path)
            return units_of(p, _vector(sessions, len(p)))
        if not is_npy(path):
            parts = _parts(path)
            if parts is None:
                raise FormatError(f"{path} holds no arrays 'scores' and 'session'")
            return units_of(_matrix(parts["p"], path), parts["session"], parts.get("ids"))
        p = _matrix(read_npy(path), path)
        if sessions is None:
            raise FormatError(
                f"{path} is a matrix of scores; name a file with the session of every row with sessions=",
                setting="sessions",
            )
        return units_of(p, _vector(sessions, len(p)))


def _table(path: Path) -> NDArray[np.float64]:
    """Return a matrix of text, without names of rows and columns."""
    with regular(path).open(encoding="utf-8-sig", newline="") as file:
        text = lines(file, path)
        start = next(text, "")
        delimiter = next((mark for mark in DELIMITERS if mark in start), ",")
        rows = list[NDArray[np.float64]]()
        for number, row in enumerate(csv.reader(chain([start], text), delimiter=delimiter, strict=True), 1):
            try:
                rows.append(np.array([real(cell) for cell in row]))
            except ValueError:
                raise FormatError(
                    f"{path}, line {number}: a matrix of scores holds numbers, without names of rows and columns"
                ) from None
            if len(row) != len(rows[0]) or number > len(row):
                raise FormatError(f"{path}, line {number}: {len(row)} numbers in this row; the matrix is not square")
    return np.asarray(_matrix(np.array(rows), path), dtype=np.float64)


def _vector(path: Path, n: int) -> NDArray[Any]:
    """Return the sessions of n rows; one line more is a header."""
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    if is_npy(path):
        value = read_npy(path)
        if not isinstance(value, np.ndarray) or value.dtype.hasobject or value.ndim != 1:
            raise FormatError(f"{path} is not a vector of sessions")
        return value
    with regular(path).open(encoding="utf-8-sig") as file:
        words = [line.strip().rstrip(",") for line in lines(file, path)]
    words = [word for word in words if word]
    if len(words) == n + 1:
        words = words[1:]
    for kind in (int, float):
        try:
            return np.array([kind(word) for word in words])
        except ValueError:
            continue
    return np.array(words)


@typed
def from_networkx(graph: Any, *, key: str = "weight") -> Units:
    """Take a comparison graph of SpikeInterface: nodes are (recording, unit), edges have a weight from 0 to 1.

    Parameters
    ----------
    graph
        A networkx graph, as ``compare_multiple_templates(…).graph`` or ``compare_multiple_sorters(…).graph``.
    key
        Name of the edges' attribute that is taken for the probability.

    Examples
    --------
    >>> class Graph:  # what networkx.Graph offers
    ...     nodes = [("a", 3), ("b", "u7")]
    ...     def edges(self, data):
    ...         return [(("b", "u7"), ("a", 3), {"weight": 0.9})]
    >>> found = from_networkx(Graph())
    >>> found.candidates.names, found.candidates.p.tolist(), [of.tolist() for of in found.numbers]
    (('a', 'b'), [0.9], [[3], ['u7']])
    """
    nodes = list(graph.nodes)
    if not all(isinstance(node, tuple) and len(node) == 2 for node in nodes):
        raise InputError("the nodes of the graph must be pairs (recording, unit)")
    names = list(dict.fromkeys(str(node[0]) for node in nodes))
    place = {name: at for at, name in enumerate(names)}
    owner = np.array([place[str(node[0])] for node in nodes], dtype=np.int64)
    order = np.argsort(owner, kind="stable")
    rank = {nodes[row]: at for at, row in enumerate(order.tolist())}
    ends, values = [], []
    for a, b, about in graph.edges(data=True):
        weight = float(about.get(key, np.nan))
        if not 0 <= weight <= 1:
            raise InputError(f"the edge {a}, {b} has no {key!r} from 0 to 1")
        if str(a[0]) != str(b[0]):
            ends.append(sorted((rank[a], rank[b])))
            values.append(weight)
    sizes = np.bincount(owner, minlength=len(names))
    numbers, begin = [], 0
    for size in sizes.tolist():
        ids = [nodes[row][1] for row in order[begin : begin + size]]
        whole = all(isinstance(unit, int | np.integer) for unit in ids)
        numbers.append(np.array(ids, dtype=np.int64) if whole else np.array(list(map(str, ids))))
        begin += size
    found = Candidates(sizes, np.array(ends, dtype=np.int64).reshape(-1, 2), np.array(values), tuple(names))
    return Units(found, tuple(numbers), order)
