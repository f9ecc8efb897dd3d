"""Constraints as a CSV file, as report pages save them: kind,object_a,point_a,object_b,point_b."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import FormatError, InputError, counted
from stiefelsync.io.base import names_of
from stiefelsync.io.files import replacing
from stiefelsync.io.limits import lines, regular, whole
from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.constraints import Constraints

__all__ = ["HEADER", "point_names", "read_constraints", "write_constraints"]

HEADER = ("kind", "object_a", "point_a", "object_b", "point_b")
_KINDS = ("must", "cannot")


@typed
def read_constraints(path: str | os.PathLike[str], problem: Matchings) -> Constraints:
    r"""Return the constraints of a file about the points of a problem.

    Parameters
    ----------
    path
        CSV file with the header ``kind,object_a,point_a,object_b,point_b``. The kind is ``must`` or
        ``cannot``; objects have the names of the problem, or numbers where it has none, and points
        are numbered within their object from 0. Where points are records of tables, objects are the
        sources and points their own ids.

    Raises
    ------
    FormatError
        If it is no such file.
    InputError
        If it names a point that the problem does not have.

    Examples
    --------
    >>> import tempfile
    >>> problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a.jpg", "b.jpg"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "constraints.csv")
    ...     _ = file.write_text("kind,object_a,point_a,object_b,point_b\ncannot,a.jpg,0,b.jpg,0\n")
    ...     read_constraints(file, problem).cannot.tolist()
    [[0, 0, 1, 0]]
    """
    file_path = Path(path)
    if not regular(file_path).exists():
        raise InputError(f"{file_path} does not exist")
    place = _Places(problem)
    found: dict[str, list[tuple[int, ...]]] = {kind: [] for kind in _KINDS}
    with file_path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(lines(file, file_path), strict=True)
        try:
            if tuple(cell.strip().lower() for cell in next(rows, [])) != HEADER:
                raise FormatError(f"{file_path}: the first line of a file of constraints is {','.join(HEADER)}")
            for row in rows:
                if not row:
                    continue
                where = f"{file_path}, line {rows.line_num}"
                if len(row) != len(HEADER):
                    raise FormatError(f"{where}: {counted(len(row), 'column')} where {len(HEADER)} are expected")
                kind = row[0].strip().lower()
                if kind not in found:
                    raise FormatError(f"{where}: a constraint is of kind must or cannot, not {row[0]!r}")
                found[kind].append((*place(row[1], row[2], where), *place(row[3], row[4], where)))
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(f"{file_path} is not a CSV file of UTF-8 text ({error})") from None
    return Constraints(*(np.array(found[kind], dtype=np.int64).reshape(-1, 4) for kind in _KINDS))


@typed
def write_constraints(
    constraints: Constraints, problem: Matchings, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Write constraints about the points of a problem as :func:`read_constraints` reads them.

    Examples
    --------
    >>> import tempfile
    >>> problem = Matchings.from_labels([0, 0], [1, 1], names=["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_constraints(Constraints(must=[[0, 0, 1, 0]]), problem, f"{folder}/constraints.csv")
    ...     read_constraints(f"{folder}/constraints.csv", problem)
    Constraints(1 must link, 0 cannot links)
    """
    objects, points = point_names(problem)
    with replacing(Path(path), force=force) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(HEADER)
        for kind, links in (("must", constraints.must), ("cannot", constraints.cannot)):
            ends = problem.offsets[links[:, 0::2]] + links[:, 1::2]
            rows.writerows([kind, objects[a], points[a], objects[b], points[b]] for a, b in ends.tolist())


def point_names(problem: Matchings, points: NDArray[np.int64] | None = None) -> tuple[list[str], list[str]]:
    """Return what files of constraints call the object and the point of points, or of all; texts.

    Examples
    --------
    >>> point_names(Matchings.from_labels([0, 0, -1], [1, 2], names=["a", "b"]))
    (['a', 'b', 'b'], ['0', '0', '1'])
    """
    chosen = np.arange(problem.n_points) if points is None else points
    if problem.records is not None:
        records = problem.records[chosen]
        return [records.sources[s] for s in records.source.tolist()], [str(one) for one in records.ids.tolist()]
    names, owner = names_of(problem), problem.point_objects[chosen]
    within = chosen - problem.offsets[owner]
    return [names[i] for i in owner.tolist()], [str(p) for p in within.tolist()]


class _Places:
    """Finds the object and the point that a file names."""

    def __init__(self, problem: Matchings) -> None:
        self.problem = problem
        self.number = {name: i for i, name in enumerate(names_of(problem))}
        self.record: dict[tuple[str, str], int] | None = None
        if problem.records is not None:
            self.record = {key: p for p, key in enumerate(zip(*point_names(problem), strict=True))}

    def __call__(self, name: str, point: str, where: str) -> tuple[int, int]:
        if self.record is not None:
            if (p := self.record.get((name, point))) is None:
                raise InputError(f"{where}: there is no record {point!r} of {name!r}; ids are those of the pairs")
            i = int(self.problem.point_objects[p])
            return i, p - int(self.problem.offsets[i])
        if (i := self.number.get(name, -1)) < 0:
            raise InputError(f"{where}: there is no object {name!r}; names are those of the matches")
        try:
            index = whole(point)
        except ValueError:
            raise FormatError(f"{where}: {point!r} is no number of a point") from None
        if not 0 <= index < self.problem.sizes[i]:
            raise InputError(f"{where}: {name!r} has {counted(int(self.problem.sizes[i]), 'point')}, none is {index}")
        return i, index
