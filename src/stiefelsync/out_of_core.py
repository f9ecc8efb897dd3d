"""Matches of a file too large for memory made consistent and written to another: ``stiefelsync sync --memory``."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync import distributed
from stiefelsync.distributed.checkpoint import forget
from stiefelsync.distributed.sources import FileSource, open_source
from stiefelsync.distributed.synchronise import Labelling
from stiefelsync.errors import InputError
from stiefelsync.io.base import Format
from stiefelsync.io.dispatch import as_path, output_format, reader_of
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.io.packing import pack
from stiefelsync.io.provenance import made_by
from stiefelsync.io.staging import alone_in, staging, sweep
from stiefelsync.io.tables.files import Coded, write_parts
from stiefelsync.matching._flat import Tracks
from stiefelsync.sync.method import Callback, Progress

__all__ = ["Labelled", "clean_out_of_core"]

Name = str | os.PathLike[str]
Columns = dict[str, NDArray[Any] | Coded]

_ROWS_PER_PART = 200_000
_ABOUT, _PACKED, _PARTS = "input.json", "matches.dataset", "parts"
_WHAT = "a run of stiefelsync sync; the folder can be deleted, then the run starts anew"
_READ_IN_PARTS, _WRITTEN_IN_PARTS = ("dataset", "colmap"), ("csv", "tracks")


@dataclass(frozen=True, eq=False)
class Labelled:
    """What :func:`clean_out_of_core` did.

    Attributes
    ----------
    input, output
        The file that was read and the one that was written.
    labelling
        The answer: a track for every point.
    added
        Matches that were not there before and follow from the others.
    seconds
        From the first look at the input to the output in its place.
    """

    input: Path
    output: Path
    labelling: Labelling
    added: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as figures under stable names, ready for JSON."""
        found = self.labelling
        return {
            "input": str(self.input),
            "output": str(self.output),
            "method": "tracks",
            "status": str(found.status),
            "objects": len(found.sizes),
            "points": len(found.labels),
            "groups": found.groups,
            "tracks": found.n_tracks,
            "matches_before": found.n_matches,
            "matches_kept": found.kept,
            "matches_removed": found.n_matches - found.kept,
            "matches_added": self.added,
            "seconds_in_all": self.seconds,
        }


def clean_out_of_core(
    input: Name,
    output: Name,
    *,
    memory: float | None = None,
    checkpoint: Name | None = None,
    client: Any = None,
    format: str | None = None,
    to: str | None = None,
    force: bool = False,
    callback: Callback | None = None,
    **options: Any,
) -> Labelled:
    """Read matches in parts, find tracks in groups of objects, and write them in parts.

    Parameters
    ----------
    input
        A table of matches (CSV, TSV, Parquet), a dataset, or a COLMAP database.
    output
        A table, CSV, TSV or Parquet: of matches, or of tracks.
    memory
        Most bytes that finding tracks may need; more raises an error that says so before.
    checkpoint
        Folder that keeps what is done. A run that was killed goes on from there when started again
        in the same way, and writes the same bytes. It is removed at the end.
    client
        A Dask client, on whose workers parts are solved; None does all the work here.
    format, to, force
        As for :func:`~stiefelsync.clean`.
    callback
        Called with :class:`~stiefelsync.sync.method.Progress` all the time.
    **options
        ``one_to_many`` of a table, ``source`` of a database.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import Matchings, io
    >>> triangle = {(0, 1): [[0, 0]], (1, 2): [[0, 0]]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     io.write(Matchings.from_pairs(triangle, [1, 1, 1]), f"{folder}/a.csv")
    ...     done = clean_out_of_core(f"{folder}/a.csv", f"{folder}/b.csv", memory=1e9)
    ...     done.added, io.read(done.output).n_matches
    (1, 3)
    """
    began = time.perf_counter()
    source, target = as_path(input), as_path(output)
    kept = None if checkpoint is None else as_path(checkpoint)
    check_outputs([target], reads=[source], force=force)
    reader = reader_of(source, format, options)
    writer = output_format(target, to, source, answer=True)
    if writer.name not in _WRITTEN_IN_PARTS:
        raise InputError(
            f"format {writer.name!r} is not written in parts; name a .csv, .tsv or .parquet file", setting="to"
        )
    if memory is not None and not memory > 0:
        raise InputError(f"memory must be a positive number of bytes, got {memory!r}")
    report = _reported(callback)
    with ExitStack() as stack:
        folder = stack.enter_context(staging(target.parent) if kept is None else _claimed(kept, source, options))
        opened = _opened(source, reader, folder, options, report)
        found = distributed.synchronise(
            opened, client=client, memory=memory, callback=report, keep_checkpoint=True,
            checkpoint=None if kept is None else kept / _PARTS,
        )  # fmt: skip
        assert isinstance(found, Labelling)
        about = made_by("tracks", options, source=source)
        _let_go()
        tracks = Tracks.of(found.labels, found.sizes.astype(np.int32))
        n_matches = tracks.n_matches()
        names = None if opened.names is None else list(opened.names)
        if writer.name == "tracks":
            parts = _track_rows(tracks, names, report)
        else:
            parts = _match_rows(tracks, n_matches, names, report)
        objects: dict[str, Any] = {"sizes": found.sizes.tolist()} | ({} if names is None else {"names": names})
        with replacing(target, reads=[source], force=force) as temporary:
            write_parts(temporary, parts, about=about | objects)
        if kept is not None:
            _forget(kept)
    added = int(n_matches.sum()) - found.kept
    return Labelled(source, target, found, added, time.perf_counter() - began)


def _let_go() -> None:
    """Give back to the system what Arrow and the C library keep for themselves."""
    import pyarrow

    pyarrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not in every C library
        if trim is not None:
            trim(0)


def _reported(callback: Callback | None) -> Callback:
    """Return a callback that lets memory go between stages, and tells; it never stops a run.

    A run that is stopped has nothing to write, so Ctrl-C stops this one.
    """
    stage = ""

    def report(progress: Progress) -> bool:
        nonlocal stage
        if progress.stage != stage:
            stage = progress.stage
            _let_go()
        if callback is not None:
            callback(progress)
        return False

    return report


@contextmanager
def _claimed(folder: Path, source: Path, options: Mapping[str, Any]) -> Iterator[Path]:
    """Yield a folder for checkpoints of this input, made if need be, or say whose it is.

    No other run may be in it meanwhile.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder for checkpoints")
    folder.mkdir(parents=True, exist_ok=True)
    found = source.stat()
    told = {"what": _WHAT, "input": [source.name, found.st_size, found.st_mtime_ns], "options": repr(sorted(options))}
    about = folder / _ABOUT
    with alone_in(folder):
        if about.exists():
            try:
                known = json.loads(about.read_text(encoding="utf-8"))
            except ValueError:
                known = None
            if known != told:
                raise InputError(
                    f"{folder} holds checkpoints of another run (another input, or other options); name another"
                    " folder, or delete it"
                )
        else:
            sweep(folder)  # of a run that was killed before it had written even that
            if any(folder.iterdir()):
                raise InputError(f"{folder} is not empty and holds no checkpoints; name another folder for them")
            with replacing(about) as staged:
                staged.write_text(json.dumps(told), encoding="utf-8")
        yield folder


def _forget(folder: Path) -> None:
    """Remove the checkpoints of a finished run; the folder stays if it holds anything else."""
    forget(folder / _PARTS)
    # It must not be found half removed if this process is killed now.
    with staging(folder) as gone:
        if (folder / _PACKED).exists():
            (folder / _PACKED).rename(gone / _PACKED)
    (folder / _ABOUT).unlink()
    sweep(folder)  # what killed runs were about to write
    if not any(folder.iterdir()):
        folder.rmdir()


def _opened(source: Path, reader: Format, folder: Path, options: Mapping[str, Any], report: Callback) -> FileSource:
    """Return a file that is read in parts, a table being made one in a folder first."""
    if reader.name in _READ_IN_PARTS:
        return open_source(source, **options)
    if reader.name != "csv":
        raise InputError(
            f"{source} is of format {reader.name!r}, which is not read in parts; only tables of matches, datasets and"
            " COLMAP databases are"
        )
    packed = folder / _PACKED
    if not packed.exists():

        def tell(stage: str, done: int, total: int) -> None:
            report(Progress(stage, done, total))

        pack(source, packed, tell=tell, **options)
    return open_source(packed)


def _match_rows(
    tracks: Tracks, n_matches: NDArray[np.int64], names: list[str] | None, report: Callback
) -> Iterator[Columns]:
    """Yield the matches of tracks in order, those of some objects at a time."""
    k = len(tracks.sizes)
    before = np.append(0, np.cumsum(n_matches))
    cuts = np.flatnonzero(np.diff(before[:-1] // _ROWS_PER_PART, prepend=-1)).tolist() or [0]
    for first, last in zip(cuts, [*cuts[1:], k], strict=True):
        pairs, start, indices = tracks.layout(first, last)
        objects = np.repeat(pairs, np.diff(start), axis=0)
        yield {
            "object_a": _named(objects[:, 0], names),
            "point_a": indices[:, 0],
            "object_b": _named(objects[:, 1], names),
            "point_b": indices[:, 1],
        }
        report(Progress("writing", int(before[last]), int(before[-1])))


def _track_rows(tracks: Tracks, names: list[str] | None, report: Callback) -> Iterator[Columns]:
    """Yield the points of tracks of two points or more, track by track."""
    label = tracks.labels[tracks.points]
    count = np.bincount(label, minlength=1)
    several = count > 1
    number = np.cumsum(several) - 1
    points = tracks.points[several[label]]
    total = len(points)
    for first in range(0, max(total, 1), _ROWS_PER_PART):
        some = points[first : first + _ROWS_PER_PART]
        objects = tracks.owner[some]
        yield {
            "track": number[tracks.labels[some]],
            "object": _named(objects, names),
            "point": some - tracks.offsets[objects],
        }
        report(Progress("writing", min(first + _ROWS_PER_PART, total), total))


def _named(objects: NDArray[np.integer[Any]], names: list[str] | None) -> NDArray[Any] | Coded:
    return objects.astype(np.int64) if names is None else Coded(names, objects)
