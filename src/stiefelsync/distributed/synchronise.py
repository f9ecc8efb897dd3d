"""Tracks of problems that need not fit into memory, in one process or on many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync.distributed.checkpoint import fingerprint, forget, keeping
from stiefelsync.distributed.cluster import on_workers
from stiefelsync.distributed.groups import check_groups, group_by_overlap
from stiefelsync.distributed.solve_in_groups import Run, in_turn, solve_in_groups
from stiefelsync.distributed.sources import open_source
from stiefelsync.distributed.steps import InMemory, Source
from stiefelsync.errors import InputError, counted
from stiefelsync.io.files import replacing
from stiefelsync.io.parquet import write_labels
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Stopwatch
from stiefelsync.sync.outcome import Outcome
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.tracks.scale import Scale

__all__ = ["GROUP", "Labelling", "synchronise"]

# Objects: with a thousand points each, a tenth of a second of work and some hundred megabytes.
GROUP = 100
# Raised whenever other steps are taken, so that no run goes on from checkpoints of other steps.
_STEPS = 4
_BINS = 16  # bits of a weight that one pass over the matches tells


@dataclass(frozen=True, eq=False)
class Labelling:
    """The answer to a problem on disk.

    Attributes
    ----------
    labels : (m,) int64
        Track of every point, numbered by first appearance, -1 = unmatched.
    sizes : (k,) int64
        Points per object.
    n_matches, kept
        Matches of the input, and those of them inside tracks (0 where the run was stopped before
        that was known).
    groups
        Number of groups the objects were cut into.
    status
        How the run ended.
    seconds
        How long it took.
    """

    labels: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_matches: int
    kept: int
    groups: int
    status: Status
    seconds: float

    @property
    def n_tracks(self) -> int:
        """Number of tracks."""
        return int(self.labels.max(initial=-1)) + 1

    @typed
    def summary(self) -> str:
        """Return the answer in a line or two."""
        return (
            f"{counted(len(self.sizes), 'object')} in {counted(self.groups, 'group')},"
            f" {counted(len(self.labels), 'point')}: {counted(self.n_tracks, 'track')};"
            f" {self.kept:,} of {counted(self.n_matches, 'match')} kept; {self.status}, {self.seconds:.1f} s"
        )

    def __repr__(self) -> str:
        return f"Labelling({self.summary()})"


@typed
def synchronise(
    source: Matchings | str | Path | Source,
    *,
    client: Any = None,
    group: int = GROUP,
    groups: ArrayLike | None = None,
    memory: float | None = None,
    checkpoint: str | Path | None = None,
    output: str | Path | None = None,
    callback: Callback | None = None,
    keep_checkpoint: bool = False,
    **options: Any,
) -> Synchronisation | Labelling:
    """Find tracks group by group, here or on Dask workers; the labels are the same.

    Parameters
    ----------
    source
        Matches in memory, or the path of a Parquet dataset or COLMAP database, which is then read
        in parts.
    client
        A Dask client; None does all the work in this process. Workers must see the file under the
        same path.
    group
        Objects per group, grouped by the matches they share. Labels depend on it, slightly: within
        a few thousandths of the fscore of the whole at once.
    groups : (k,) int, optional
        Groups of your own, one number per object, instead.
    memory
        Most bytes this process may need beside the interpreter; an error says so before it needs
        more.
    checkpoint
        Folder for the results of parts. A run that was killed goes on from there when started again
        in the same way, and ends with the same labels, byte for byte. Removed at the end.
    output
        Parquet file to write the labels to; it appears complete or not at all.
    callback
        Called with :class:`~stiefelsync.sync.method.Progress` after every part; a true return value
        asks to stop.
    keep_checkpoint
        Whether the checkpoints stay at the end, for who has yet to write the answer.
    options
        Of opening the file (COLMAP: ``source="matches"``).

    Returns
    -------
    Synchronisation or Labelling
        The former for matches in memory, the latter for a file.

    Notes
    -----
    Positions of points are not used, unlike by method "tracks".

    Examples
    --------
    >>> from stiefelsync import datasets, score
    >>> problem, truth = datasets.scene(1000, 40, 250, 500, wrong=0.1, missing=0.3, rng=0)
    >>> score(synchronise(problem, group=10).labels, truth).fscore > 0.98
    True
    """
    opened: Source = InMemory(source) if isinstance(source, Matchings) else _opened(source, options)
    if not opened.counts.sum():
        raise InputError("the problem is empty: there are no matches to synchronise")
    watch = Stopwatch()
    with ExitStack() as stack:
        with watch("all"):
            k = len(opened.sizes)
            cut = (
                group_by_overlap(opened.pair_objects, opened.counts, k, group)
                if groups is None
                else check_groups(groups, k)
            )
            run: Run = in_turn if client is None else on_workers(client)
            scale = _scale(opened)
            if checkpoint is not None:
                given = opened.sizes, opened.pair_objects, opened.counts, cut, scale.median or 0.0
                digest = fingerprint(*given, _STEPS, *_content(opened))
                run = stack.enter_context(keeping(run, checkpoint, digest))
            answer = solve_in_groups(opened, cut, scale, run=run, memory=memory, callback=callback)
        status = Status.STOPPED if answer.stopped else Status.DONE
        if output is not None:
            with replacing(output, force=True) as staged:
                write_labels(answer.labels, staged)
        if checkpoint is not None and not answer.stopped and not keep_checkpoint:
            forget(checkpoint)
    if isinstance(source, Matchings):
        outcome = Outcome(
            labels=answer.labels, status=status, n_iter=answer.n_iter, timings={"tracks": watch.seconds["all"]}
        )
        return Synchronisation(source, "tracks", outcome, int(answer.labels.max(initial=-1)) + 1, None, outcome.timings)
    n_matches, n_groups = int(opened.counts.sum()), int(cut.max(initial=-1)) + 1
    sizes = opened.sizes.astype(np.int64)
    return Labelling(answer.labels, sizes, n_matches, answer.kept, n_groups, status, watch.seconds["all"])


def _content(source: Source) -> list[NDArray[Any]]:
    """Return what tells whether matches are still those of an earlier run.

    They themselves, or when files changed.
    """
    if isinstance(source, InMemory):
        weights = source.matchings.weights
        return [source.matchings.indices, np.empty(0) if weights is None else weights]
    path = getattr(source, "path", None)
    if path is None:
        return []
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path, Path(f"{path}-wal")]
    found = [file.stat() for file in files if file.exists()]
    return [np.array([[each.st_size, each.st_mtime_ns] for each in found], dtype=np.int64)]


def _opened(source: Any, options: dict[str, Any]) -> Source:
    return open_source(source, **options) if isinstance(source, str | Path) else source


def _scale(source: Source) -> Scale:
    """Return the scale of the whole problem; weights are looked through some at a time."""
    M, fullest = int(source.counts.sum()), int(source.counts.max(initial=1))
    if isinstance(source, InMemory):
        return Scale.of(source.matchings)
    if not getattr(source, "weighted", False):
        return Scale(M, fullest)

    def chunks() -> Iterable[NDArray[np.float64]]:
        pairs = np.arange(len(source.counts))
        cuts = np.searchsorted(np.cumsum(source.counts), np.arange(1, M // 4_000_000 + 1) * 4_000_000)
        for part in np.split(pairs, np.unique(cuts)):
            weights = source.read(part)[2] if len(part) else None
            if weights is not None:
                yield weights

    median = lower_median(chunks, M)
    return Scale(M, fullest, median)


def lower_median(chunks: Callable[[], Iterable[NDArray[np.float64]]], n: int) -> float | None:
    """Return the (lower) median of n positive numbers that come in chunks; None if all equal.

    Parameters
    ----------
    chunks
        Called once per pass, of which there are four: each tells sixteen bits, since positive
        numbers are ordered as their bits are.

    Examples
    --------
    >>> lower_median(lambda: [np.array([4.0, 1.0]), np.array([3.0, 2.0])], 4)
    2.0
    """
    known, rank = 0, (n - 1) // 2
    low, high = np.inf, -np.inf
    for shift in range(64 - _BINS, -1, -_BINS):
        counts = np.zeros(1 << _BINS, dtype=np.int64)
        for weights in chunks():
            bits = weights.view(np.int64)
            if shift == 64 - _BINS:
                if not (np.isfinite(weights) & (weights > 0)).all():
                    raise InputError("weights must be positive, finite numbers; drop a match instead of giving it none")
                low, high = min(low, float(weights.min(initial=np.inf))), max(high, float(weights.max(initial=-np.inf)))
            else:
                bits = bits[bits >> (shift + _BINS) == known]
            counts += np.bincount((bits >> shift) & ((1 << _BINS) - 1), minlength=1 << _BINS)
        if low == high:
            return None
        before = np.cumsum(counts)
        digit = int(np.searchsorted(before, rank, side="right"))
        rank -= int(before[digit] - counts[digit])
        known = known << _BINS | digit
    return float(np.array([known], dtype=np.int64).view(np.float64)[0])
