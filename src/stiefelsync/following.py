"""Cells or units of several days made one table: what ``stiefelsync sync DAY1 DAY2 …`` does, as functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.errors import InputError, counted
from stiefelsync.io.cells.sources import is_session, read_sessions
from stiefelsync.io.cells.tables import table_format, write_to
from stiefelsync.io.cells.units import TEXTS, Units, is_matrix, is_unitmatch, read_matrix, read_unitmatch
from stiefelsync.io.files import Name, check_outputs, outputs
from stiefelsync.io.provenance import made_by, read_from
from stiefelsync.matching.matchings import Matchings
from stiefelsync.registration.candidates import Candidates
from stiefelsync.registration.compare import Compared, compare_sessions
from stiefelsync.registration.confidence import Kind, confidences
from stiefelsync.registration.decide import exchanged, greedy, weighed
from stiefelsync.registration.judgement import Judgement, judge
from stiefelsync.registration.recalibrate import recalibrated
from stiefelsync.registration.session import Session
from stiefelsync.registration.table import CellTable, stacked, table_of
from stiefelsync.report.sessions import DOUBT, check_template, render_sessions
from stiefelsync.sync.synchronise import synchronise

__all__ = ["Followed", "follow", "follow_sessions", "follow_units", "is_followed", "read_followed"]

THRESHOLD = 0.3
GREEDY = 0.5  # less probable pairs are not joined greedily
ROUNDS = 2  # of correcting probabilities by an answer
METHOD = "tracks"
WEIGHED = "tracks and greedy joins, weighed"
OPTIONS = ("threshold", "max_distance", "window", "plane", "iscell", "sessions")
Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False)
class Part:
    """One plane, or all units.

    Attributes
    ----------
    candidates
        Pairs that may be one, with corrected probabilities.
    labels : (m,) int
        The answer.
    judgement
        What can be said of it without knowing the truth.
    compared
        How sessions lie over each other; None for units.
    """

    candidates: Candidates
    labels: NDArray[np.int64]
    judgement: Judgement
    compared: Compared | None = None

    @property
    def plane(self) -> int:
        """Number of the imaging plane, 0 for units."""
        return 0 if self.compared is None else self.compared.sessions[0].plane


@dataclass(frozen=True, eq=False)
class Followed:
    """Cells or units followed over days.

    Attributes
    ----------
    table
        One row per cell, one column per session, with confidence.
    parts
        What was done, for every imaging plane.
    kind : {"cells", "units"}
    threshold, method
        Probability above which pairs could become matches, and the method that decided on these.
    seconds
        By step.
    files
        What was read and written.
    """

    table: CellTable
    parts: tuple[Part, ...]
    kind: str
    threshold: float
    method: str
    seconds: Mapping[str, float]
    files: Mapping[str, Any] = field(default_factory=dict)

    @typed
    def as_dict(self) -> dict[str, Any]:
        """Return all of it as figures under stable names, ready for JSON."""
        table, counts = self.table, self.table.sessions_per_cell
        planes = []
        for part in self.parts:
            told: dict[str, Any] = {"plane": part.plane, **{k: _plain(v) for k, v in asdict(part.judgement).items()}}
            if part.compared is not None:
                told["registrations"] = _registrations(part.compared)
                told["p_same_crossing"] = part.compared.sameness.crossing
                told["p_same_fitted"] = part.compared.sameness.fitted
            planes.append(told)
        known = table.confidence[np.isfinite(table.confidence)]
        return {
            **self.files,
            "kind": self.kind,
            "sessions": list(table.names),
            "detections": int(sum(len(numbers) for numbers in table.numbers)),
            "left_out": int(table.totals.sum() - sum(len(numbers) for numbers in table.numbers)),
            "cells": len(table),
            "followed": int((counts > 1).sum()),
            "in_all_sessions": int((counts == len(table.names)).sum()),
            "mean_confidence": float(known.mean()) if len(known) else None,
            "doubtful_places": int((table.places < DOUBT).sum()),
            "threshold": self.threshold,
            "method": self.method,
            "planes": planes,
            "seconds": dict(self.seconds),
            "seconds_in_all": float(sum(self.seconds.values())),
        }


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _registrations(compared: Compared) -> list[dict[str, Any]]:
    return [
        {
            "first": compared.sessions[i].name, "second": compared.sessions[j].name, "shift": found.shift,
            "angle": found.angle, "near": _plain(found.near), "chance": _plain(found.chance),
            "residual": _plain(found.residual), "failed": found.failed,
        }
        for (i, j), found in compared.alignments.items()
    ]  # fmt: skip


@typed
def follow_sessions(
    planes: Sequence[Sequence[Session]],
    *,
    threshold: float = THRESHOLD,
    max_distance: float | None = None,
    window: int | None = None,
    method: str | None = None,
    progress: Progress | None = None,
) -> Followed:
    """Follow cells over sessions: lay these over each other, tell which near cells are one, and make it consistent.

    Parameters
    ----------
    planes
        For every imaging plane the sessions, as :func:`stiefelsync.io.cells.read_sessions` returns them.
    threshold
        Only pairs of cells that are one with a higher probability can become matches. It is low on purpose: what it
        lets in wrongly contradicts the rest.
    max_distance, window, progress
        As for :func:`~stiefelsync.registration.compare_sessions`.
    method
        Of :func:`~stiefelsync.synchronise`. By default the tracks of method "tracks" are weighed against greedy joins
        (:func:`~stiefelsync.registration.weighed`), part by part, and places less sure than .6 are left out. Before
        that such answers correct the probabilities (:func:`~stiefelsync.registration.recalibrated`).

    Examples
    --------
    >>> from stiefelsync import datasets
    >>> days, truth = datasets.sessions(4, 60, difficulty="easy", shape=(200, 200), rng=0)
    >>> found = follow_sessions([days])
    >>> found.table.names, bool(found.table.confidence[0] > 0.9)
    (('day01', 'day02', 'day03', 'day04'), True)
    """
    parts, tables, spent = list[Part](), list[CellTable](), {"registration": 0.0, "synchronisation": 0.0}
    for number, sessions in enumerate(planes):
        if len({s.base for s in sessions}) > 1:
            raise InputError("some sessions count their cells from 0 and some from 1; follow files of one program")
        begun = time.perf_counter()
        told = None if progress is None else _shifted(progress, number, len(planes))
        compared = compare_sessions(sessions, max_distance=max_distance, window=window, progress=told)
        spent["registration"] += time.perf_counter() - begun
        begun = time.perf_counter()
        candidates, labels = _decided(compared.candidates, threshold, method, "cells")
        trust = confidences(candidates, labels)
        # Judged by the probabilities of the mixture, as CellReg's scores are.
        parts.append(Part(candidates, labels, judge(compared.candidates, labels), compared))
        first = sessions[0]
        numbers = [s.numbers for s in sessions]
        totals = np.array([s.total for s in sessions])
        about: dict[str, Any] = {"plane": first.plane, "base": first.base, "source": first.source}
        tables.append(table_of(labels, [s.name for s in sessions], numbers, trust, totals=totals, **about))
        spent["synchronisation"] += time.perf_counter() - begun
    return Followed(stacked(tables), tuple(parts), "cells", threshold, WEIGHED if method is None else method, spent)


def _shifted(progress: Progress, number: int, count: int) -> Progress:
    return lambda done, n: progress(number * n + done, count * n)


@typed
def follow_units(units: Units, *, threshold: float = THRESHOLD, method: str | None = None) -> Followed:
    """Follow units over recordings, from the probabilities that pairs of them are one neuron.

    Parameters
    ----------
    units
        As :func:`stiefelsync.io.cells.read_unitmatch` and others return them.
    threshold, method
        As for :func:`follow_sessions`.

    Examples
    --------
    >>> from stiefelsync import datasets, io
    >>> p, recording, truth = datasets.units(4, 20, rng=0)
    >>> found = follow_units(io.cells.units_of(p, recording))
    >>> found.kind, found.parts[0].judgement.doubled
    ('units', 0)
    """
    begun = time.perf_counter()
    candidates, labels = _decided(units.candidates, threshold, method, "units")
    trust = confidences(candidates, labels, kind="units")
    table = table_of(labels, candidates.names, units.numbers, trust, source="units")
    part = Part(candidates, labels, judge(units.candidates, labels))
    spent = {"synchronisation": time.perf_counter() - begun}
    return Followed(table, (part,), "units", threshold, WEIGHED if method is None else method, spent)


def _decided(
    candidates: Candidates, threshold: float, method: str | None, kind: Kind
) -> tuple[Candidates, NDArray[np.int64]]:
    """Return candidates with corrected probabilities, and what is decided on these."""
    found = _labels(candidates.matchings(threshold), METHOD)
    for done in range(ROUNDS):
        if done:
            found = _weighed(candidates, threshold, kind)
        # Neurons drift away from what they were; how far footprints move is corrected by registration.
        candidates = recalibrated(candidates, found, by_distance=kind == "units")
    if method is None:
        return candidates, _weighed(candidates, threshold, kind)
    return candidates, _labels(candidates.matchings(threshold), method)


def _weighed(candidates: Candidates, threshold: float, kind: Kind) -> NDArray[np.int64]:
    tracks = _labels(candidates.matchings(threshold), METHOD)
    answers = [tracks, greedy(candidates, max(threshold, GREEDY))]
    return exchanged(candidates, weighed(candidates, answers, kind=kind))


def _labels(matchings: Matchings, method: str) -> NDArray[np.int64]:
    """Return labels; without any match every cell is alone."""
    if not matchings.n_matches:
        return np.full(matchings.n_points, -1, dtype=np.int64)
    return synchronise(matchings, method=method).labels


@typed
def is_followed(inputs: Sequence[Name], *, sessions: bool = False) -> bool:
    """Return whether inputs are sessions to be followed, rather than matches.

    Parameters
    ----------
    sessions
        Whether the session of every row is told, so that a table of numbers is a matrix of scores.

    Examples
    --------
    >>> is_followed(["day1", "day2"]), is_followed(["matches.csv"])
    (True, False)
    """
    if len(inputs) != 1:
        return True
    path = Path(inputs[0])
    if is_unitmatch(path) or is_matrix(path) or (sessions and path.suffix.lower() in TEXTS):
        return True
    if path.is_dir() or path.name == "stat.npy" or path.suffix.lower() == ".npy":
        return is_session(path)
    return False


@typed
def read_followed(inputs: Sequence[Name], **options: Any) -> Units | list[list[Session]]:
    """Read what is to be followed: units of one folder or matrix, or two or more sessions.

    Options that concern only units or only cells are refused with the others.
    """
    paths = [Path(path) for path in inputs]
    given = {name: options[name] for name in ("plane", "iscell", "sessions") if options.get(name) is not None}
    if len(paths) == 1:
        path = paths[0]
        if is_unitmatch(path):
            _refuse(given, "a folder of UnitMatch")
            return read_unitmatch(path)
        told = given.get("sessions") is not None and path.suffix.lower() in TEXTS
        if is_matrix(path) or told or (path.suffix.lower() == ".npy" and path.name != "stat.npy"):
            sessions = given.pop("sessions", None)
            _refuse(given, "a matrix of scores")
            return read_matrix(path, None if sessions is None else Path(sessions))
        if not path.exists():
            raise InputError(f"{path} does not exist")
        read_sessions(paths, **given)  # says what else is wrong
        raise InputError(f"{path} is one session; name two or more, as in: {path} …")
    if "sessions" in given:
        raise InputError("sessions= belongs to a single matrix of scores; leave it out", setting="sessions")
    return read_sessions(paths, **given)


def _refuse(given: Mapping[str, Any], what: str) -> None:
    for name in given:
        raise InputError(f"{name}= is for cells; leave it out for {what}", setting=name)


@typed
def follow(
    inputs: Sequence[Name],
    output: Name | None = None,
    *,
    to: str | None = None,
    report: Name | None = None,
    title: str | None = None,
    method: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
    threshold: float = THRESHOLD,
    max_distance: float | None = None,
    window: int | None = None,
    plane: int | None = None,
    iscell: bool | float = True,
    sessions: Name | None = None,
) -> Followed:
    """Read sessions, follow their cells, and write a table and a page: all or nothing.

    Parameters
    ----------
    inputs
        Two or more sessions (:func:`stiefelsync.io.cells.read_sessions`), or one folder of UnitMatch, or one matrix of
        scores.
    output
        Table to write: .csv, .parquet, .npy (CaImAn), .mat (CellReg), .json (ROICaT).
    to
        Its format, one of ``stiefelsync.io.cells.TABLES``, told from the ending by default.
    report, title
        Web page to write, with the worst cells first, and its headline.
    method, threshold, max_distance, window
        As for :func:`follow_sessions` and :func:`follow_units`.
    plane, iscell
        As for :func:`stiefelsync.io.cells.read_sessions`.
    sessions
        File with the session of every row of a matrix.
    force
        Whether outputs that are there already are replaced.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = datasets.sessions(3, 40, shape=(160, 160), folder=f"{folder}/mouse", rng=0)
    ...     done = follow([f"{folder}/mouse/day0{day}" for day in (1, 2, 3)], f"{folder}/cells.csv")
    ...     print(Path(folder, "cells.csv").read_text().splitlines()[0])
    cell,confidence,day01,day02,day03
    """
    begun = time.perf_counter()
    wanted = None if output is None else Path(output)
    page = None if report is None else Path(report)
    check_outputs([wanted, page], reads=inputs, force=force)
    if page is not None:
        check_template()
    found = read_followed(inputs, plane=plane, iscell=None if iscell is True else iscell, sessions=sessions)
    known = None if wanted is None else table_format(wanted, to, units=isinstance(found, Units))
    reading = time.perf_counter() - begun
    if isinstance(found, Units):
        for name, value in (("max_distance", max_distance), ("window", window)):
            if value is not None:
                raise InputError(f"{name}= is for cells; leave it out for units", setting=name)
        done = follow_units(found, threshold=threshold, method=method)
    else:
        done = follow_sessions(
            found, threshold=threshold, max_distance=max_distance, window=window, progress=progress, method=method
        )
    begun = time.perf_counter()
    with outputs(wanted, page, reads=inputs, force=force) as staged:
        if wanted is not None and known is not None:
            names = ("threshold", "max_distance", "window", "plane", "iscell")
            chosen = zip(names, (threshold, max_distance, window, plane, iscell), strict=True)
            given = {name: value for name, value in chosen if value is not None}
            about = made_by(done.method, given) | {"inputs": [read_from(Path(path)) for path in inputs]}
            write_to(done.table, staged[wanted], known, suffix=wanted.suffix, about=about)
        if page is not None:
            compared = [part.compared for part in done.parts]
            text = render_sessions(done.table, compared, summary(done), kind=done.kind, title=title)
            staged[page].write_bytes(text.encode("utf-8", "replace"))  # names may hold bytes that are not UTF-8
    files = {"inputs": [str(path) for path in inputs]}
    files |= {name: str(path) for name, path in (("output", wanted), ("report", page)) if path is not None}  # type: ignore[misc]
    seconds = {"reading": reading, **done.seconds, "writing": time.perf_counter() - begun}
    return Followed(done.table, done.parts, done.kind, done.threshold, done.method, seconds, files)


def summary(done: Followed) -> dict[str, str]:
    """Return what is to be said of it, by name."""
    table, counts = done.table, done.table.sessions_per_cell
    figures = done.as_dict()
    held = int(np.isfinite(table.places).sum())
    lines = {
        "sessions": f"{len(table.names)}: {', '.join(table.names[:6])}{' …' if len(table.names) > 6 else ''}",
        "detections": f"{figures['detections']:,}"
        + (f"; {figures['left_out']:,} more are not cells (iscell)" if figures["left_out"] else ""),
        done.kind: f"{len(table):,}: {int((counts > 1).sum()):,} in two or more sessions, "
        f"{figures['in_all_sessions']:,} in all",
    }
    if figures["mean_confidence"] is not None:
        lines["confidence"] = (
            f"{figures['mean_confidence']:.3f} on average; "
            f"{counted(figures['doubtful_places'], 'place')} of {held:,} below {DOUBT:g}"
        )
    for part, plane in zip(done.parts, figures["planes"], strict=True):
        where = f" of plane {plane['plane']}" if len(done.parts) > 1 else ""
        found = part.judgement
        if part.compared is not None:
            lines[f"registration{where}"] = _registered(part.compared)
        cycles = "no cycles" if found.cycle_error is None else f"{found.cycle_error:.2%} do not close"
        lines[f"cycles{where}"] = f"{cycles}; transitivity {_share(found.transitivity)}"
        lines[f"scores{where}"] = (
            f"exclusivity {_share(found.exclusivity)}, true positive {_share(found.true_positive)}, "
            f"true negative {_share(found.true_negative)}, active {_share(found.active)} (as CellReg counts)"
        )
    return lines


def _registered(compared: Compared) -> str:
    """Say how sessions could be laid over each other."""
    laid = [a for a in compared.alignments.values() if not a.empty]
    if not laid:
        return "none: no two sessions have cells"
    worst = min(laid, key=lambda a: a.near - a.chance)
    empty = sum(not s.footprints.nnz for s in compared.sessions)
    return (
        f"{counted(len(laid), 'pair')}, {len(compared.failed)} failed; in the worst {worst.near:.0%} of the cells meet "
        f"one ({worst.chance:.0%} by chance)" + (f"; {counted(empty, 'session')} without cells" if empty else "")
    )


def _share(value: float) -> str:
    return "unknown" if not np.isfinite(value) else f"{value:.3f}"
