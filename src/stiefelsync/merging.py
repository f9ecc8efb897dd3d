"""Several answers that share images or records made one: ``stiefelsync merge``, as one function."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np

from stiefelsync._border import typed
from stiefelsync.errors import InputError
from stiefelsync.io.base import Written
from stiefelsync.io.colmap.combine import combine
from stiefelsync.io.constraint_files import read_constraints
from stiefelsync.io.dispatch import as_path, load, output_format, reader_of, write_to
from stiefelsync.io.files import check_outputs, outputs
from stiefelsync.io.route import share
from stiefelsync.io.staging import staging
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.union import union
from stiefelsync.sync.choose import choose_method
from stiefelsync.sync.method import Callback
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = ["Merged", "Part", "merge"]

Name = str | os.PathLike[str]


@dataclass(frozen=True)
class Part:
    """One of the files that were merged.

    Attributes
    ----------
    path
        The file.
    objects, matches
        How many it holds.
    shared
        Objects, or records, that it has in common with another of the files.
    lost
        Matches of it that the common answer does not have, because others contradict them.
    """

    path: Path
    objects: int
    matches: int
    shared: int
    lost: int


@dataclass(frozen=True, eq=False)
class Merged:
    """What :func:`merge` did.

    Attributes
    ----------
    parts
        The files that were merged.
    output
        The file that was written.
    result
        The common answer, to the matches of all files.
    written
        More about a changed copy of a database, None for other formats.
    lost
        Sentences on what of the answer the file does not hold.
    next_command
        What to type next to go on with the file, where its format knows that.
    seconds
        From the first look at the inputs to the last file in its place.
    """

    parts: tuple[Part, ...]
    output: Path
    result: Synchronisation
    written: Written | None
    lost: tuple[str, ...]
    next_command: str | None
    seconds: float

    @typed
    def as_dict(self) -> dict[str, Any]:
        """Return all of it as figures under stable names, ready for JSON."""
        parts = [
            {
                "input": str(part.path), "objects": part.objects, "matches": part.matches, "shared": part.shared,
                "matches_lost": part.lost,
            }
            for part in self.parts
        ]  # fmt: skip
        return self.result.as_dict() | {
            "inputs": parts, "output": str(self.output), "lost": list(self.lost), "seconds_in_all": self.seconds,
        }  # fmt: skip


@typed
def merge(
    inputs: Sequence[Name],
    output: Name,
    *,
    method: str | None = None,
    constraints: Name | Sequence[Name] = (),
    format: str | None = None,
    to: str | None = None,
    add: bool | None = None,
    force: bool = False,
    rng: np.random.Generator | int | None = 0,
    callback: Callback | None = None,
    **options: Any,
) -> Merged:
    """Read answers that share images, points or records, and write the one answer that the matches of all give.

    What the files say is put together (:func:`~stiefelsync.matching.union.union`) and made
    consistent. Where they contradict each other, the matches of all decide.

    Parameters
    ----------
    inputs
        At least two files, of any formats that are read: COLMAP databases, tables of tracks or of
        clusters, matches. Objects are told by name, records by source and id.
    output
        File to write. A COLMAP database that comes from databases is a copy of the first with the
        images, keypoints and matches of the others; matches that would follow are left out.
    method, rng, callback
        As for :func:`~stiefelsync.synchronise`.
    constraints
        CSV files of points that must have one label and points that cannot.
    format, to
        Format of the inputs and of the output; told from the content and from the ending by default.
    add
        Whether matches are written that the original does not have. None: as usual for the format.
    force
        Whether an output that is there already is replaced.
    **options
        Of the formats; each goes to all that know it.

    Raises
    ------
    InputError
        If the files share nothing, or are not about the same points; then nothing was written.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import io
    >>> one = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], names=["a", "b"])
    >>> two = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], names=["b", "c"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, problem in (("one", one), ("two", two)):
    ...         io.write(problem, f"{folder}/{name}.csv", "tracks")
    ...     done = merge([f"{folder}/one.csv", f"{folder}/two.csv"], f"{folder}/all.csv")
    ...     io.read(done.output, "tracks").names, io.read(done.output).n_matches
    (('a', 'b', 'c'), 3)
    """
    began = time.perf_counter()
    paths, target = [as_path(name) for name in inputs], as_path(output)
    if len(paths) < 2:
        raise InputError("merging takes two files or more")
    known_files = [constraints] if isinstance(constraints, str | os.PathLike) else list(constraints)
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist")
    check_outputs([target], reads=[*paths, *known_files], force=force)
    readers = [reader_of(path, format, options) for path in paths]
    writer = output_format(target, to, paths[0], answer=True)
    given = share(options, write=writer.write_options, **{reader.name: reader.read_options for reader in readers})
    problems = [load(path, reader, **given[reader.name])[0] for path, reader in zip(paths, readers, strict=True)]
    problem, places = union(problems)
    known = [read_constraints(as_path(name), problem) for name in known_files]
    choice = choose_method(problem, "auto", method, {}, photographs=all(reader.photographs for reader in readers))
    result = synchronise(
        problem, method=choice.method, constraints=reduce(or_, known) if known else None, rng=rng, callback=callback
    )
    with ExitStack() as stack:
        like = None
        databases = [path for path, reader in zip(paths, readers, strict=True) if reader.name == "colmap"]
        if writer.name == "colmap" and databases:
            like = stack.enter_context(staging(Path(tempfile.gettempdir()))) / "combined.db"
            combine(databases, like)
        staged = stack.enter_context(outputs(target, reads=[*paths, *known_files], force=force))
        written = write_to(staged[target], result, writer, like=like, add=add, **given["write"])
    go_on = writer.next_command
    parts = tuple(
        Part(path, one.n_objects, one.n_matches, _shared(place, places, problem), _lost(one, place, result))
        for path, one, place in zip(paths, problems, places, strict=True)
    )
    return Merged(
        parts, target, result, written, tuple(writer.lost(result.matchings(), target, given["write"])),
        None if go_on is None else go_on(target, written, None), time.perf_counter() - began,
    )  # fmt: skip


def _shared(place: np.ndarray[Any, Any], places: Sequence[np.ndarray[Any, Any]], problem: Matchings) -> int:
    """Return how many objects, or records, a file has in common with another."""

    def things(points: np.ndarray[Any, Any]) -> set[int]:
        return set((points if problem.records is not None else problem.point_objects[points]).tolist())

    others = set[int]().union(*(things(other) for other in places if other is not place))
    return len(things(place) & others)


def _lost(given: Matchings, place: np.ndarray[Any, Any], result: Synchronisation) -> int:
    """Return how many matches of a file the common answer does not have."""
    a, b = result.labels[place[given.endpoints]].T
    return int(np.count_nonzero((a != b) | (a < 0)))
