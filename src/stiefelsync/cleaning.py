"""Matches of a file made consistent and written to another: what ``stiefelsync sync`` does, as one function."""

from __future__ import annotations

import operator
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync import plotting
from stiefelsync._border import typed
from stiefelsync.errors import InputError, counted
from stiefelsync.io.base import FORMATS, Content, Written
from stiefelsync.io.constraint_files import read_constraints
from stiefelsync.io.dispatch import as_path, load, read, write_content
from stiefelsync.io.files import outputs
from stiefelsync.io.labels import read_labels
from stiefelsync.io.pair_scores import read_pair_scores
from stiefelsync.io.provenance import made_by
from stiefelsync.io.route import Route, plan_route
from stiefelsync.matching.difference import Counts, Difference
from stiefelsync.matching.graph import conflicts
from stiefelsync.matching.left_out import are_among, pairs_to_drop
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.records import Records
from stiefelsync.report import page
from stiefelsync.sync.changes import carry_over
from stiefelsync.sync.choose import PRESETS, Reason, choose_method, moves_alike
from stiefelsync.sync.constraints import Constraints, constrain
from stiefelsync.sync.longest import keep_longest
from stiefelsync.sync.method import BY_POSITIONS, DEFAULT, METHODS, Callback, Method, Outcome, find_method
from stiefelsync.sync.outcome import by_first_appearance
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

__all__ = ["Cleaned", "LeftOut", "clean"]

Name = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Cleaned:
    """What :func:`clean` did.

    Attributes
    ----------
    input, output, report, plot
        The file that was read and those that were written, None for what was not asked for.
    result
        The answer.
    difference
        What became of the matches that were read.
    counts
        What became of the matches of the file: the same, unless the output is a changed copy of a
        file or table that counts its matches differently (several points taken for one, another
        table).
    written
        More about such a copy, None for other formats.
    lost
        Sentences on what of the answer the file does not hold.
    certificate
        Whether the upper bound of the objective was asked for.
    advice
        Sentences on how a file like the input is better dealt with.
    next_command
        What to type next to go on with the file, where its format knows that.
    seconds
        From the first look at the input to the last file in its place.
    """

    input: Path
    output: Path
    report: Path | None
    plot: Path | None
    result: Synchronisation
    difference: Difference
    counts: Counts
    written: Written | None
    lost: tuple[str, ...]
    certificate: bool
    advice: tuple[str, ...]
    next_command: str | None
    seconds: float

    @typed
    def as_dict(self) -> dict[str, Any]:
        """Return all of it as figures under stable names, ready for JSON."""
        counts, repair, written = self.counts, self.result.input.repair, self.written
        dropped = 0 if repair is None else repair.dropped
        files = {"input": self.input, "output": self.output, "plot": self.plot, "report": self.report}
        figures = self.result.as_dict(certificate=self.certificate) | {
            "matches_read": self.result.input.n_matches + dropped,
            "matches_dropped": dropped,
            "matches_before": counts.before,
            "matches_kept": counts.kept,
            "matches_removed": counts.removed,
            "matches_added": counts.added,
            "matches_after": counts.after,
            "added_written": counts.adds,
            "conflicts_before": counts.conflicts_before,
            "conflicts_after": counts.conflicts_after,
            "lost": list(self.lost),
            "advice": list(self.advice),
            "seconds_in_all": self.seconds,
        }
        if written is not None and written.target:
            figures |= {"table_read": written.source, "table_written": written.target}
        if written is not None and written.to_verify:
            figures["pairs_to_verify"] = written.to_verify
        if written is not None and written.verification is not None:
            figures["verified"] = asdict(written.verification)
        if written is not None and written.moved:
            figures["keypoints_moved"] = written.moved
        return {name: str(path) for name, path in files.items() if path is not None} | figures


@dataclass(frozen=True)
class LeftOut:
    """What :func:`clean` leaves out of the problem and of the answer.

    Attributes
    ----------
    images
        Names of images whose matches do not count and are not written.
    pairs
        Pairs of such names.
    keep_tracks
        Only so many tracks are kept, the longest and surest. None keeps all.
    """

    images: Sequence[str] = ()
    pairs: Sequence[tuple[str, str]] = ()
    keep_tracks: int | None = None


_NOTHING = LeftOut()


@typed
def clean(
    input: Name,
    output: Name,
    *,
    method: str | Method | Callable[..., Outcome] | None = None,
    universe: str | int = "auto",
    report: Name | None = None,
    plot: Name | None = None,
    images: Name | None = None,
    start: Name | None = None,
    constraints: Name | Sequence[Name] = (),
    client: Any = None,
    format: str | None = None,
    to: str | None = None,
    like: Name | None = None,
    add: bool | None = None,
    pairs: Name | None = None,
    left_out: LeftOut = _NOTHING,
    certificate: bool = False,
    force: bool = False,
    rng: np.random.Generator | int | None = 0,
    callback: Callback | None = None,
    **options: Any,
) -> Cleaned:
    """Read matches, make them consistent and write them, with a page and a picture of what changed: all or nothing.

    Parameters
    ----------
    input, output
        File to read, which is never modified, and file to write.
    method, universe, rng, callback
        As for :func:`~stiefelsync.synchronise`. None, for the method, is "accurate", or "tracks"
        where the input holds keypoints of photographs (COLMAP, hloc, correspondences) and
        neighbouring matches move alike.
    report
        Web page to write, which shows what changed; `images` is a folder of photographs for it.
    plot
        Picture to draw, .png, .pdf or .svg.
    start
        An earlier answer, as an NPZ file or dataset written by this package, whose labels to go on from. Its
        objects are found by name where both have names.
    constraints
        CSV files of points that must have one label and points that cannot, as
        :func:`~stiefelsync.io.read_constraints` reads them and report pages save them.
    client
        A Dask client: tracks are found in groups of objects on its workers
        (:func:`~stiefelsync.distributed.synchronise`), with method "tracks" only.
    format, to
        Formats of the input and of the output, by default recognised by the content and the ending.
    like
        File of which to write a changed copy, for formats written that way; by default the input.
    add
        Whether to write matches that the original does not have. None: as usual for the format.
    pairs
        A CSV file with the columns ``image_a,image_b,score``: probabilities from elsewhere
        (Doppelgangers, a retrieval system) that two images show the same place. Then the method is
        "tracks" unless another is asked for. Pairs that scores and third images speak against are
        left out; those judged otherwise than scored are among the figures and on the page.
    left_out
        Images, pairs and tracks to leave out.
    certificate
        Whether to compute an upper bound of the objective, which may take longer than the rest.
    force
        Whether to replace existing outputs.
    **options
        Of the formats and of the method; each goes to all that know it. ``before_verification=True``, for a COLMAP
        database, reads the raw matches and writes raw matches, to be verified next; where pycolmap is installed they
        are verified at once. ``verify=True`` lets pycolmap verify the matches that are written, whichever they are.

    Raises
    ------
    InputError
        If something is wrong with the input, an option or an output; then nothing was written.
        Outputs and options are checked before the work begins.

    Examples
    --------
    >>> import tempfile
    >>> from stiefelsync import Matchings, io
    >>> triangle = {(0, 1): [[0, 0]], (1, 2): [[0, 0]]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     io.write(Matchings.from_pairs(triangle, [1, 1, 1]), f"{folder}/matches.csv")
    ...     done = clean(f"{folder}/matches.csv", f"{folder}/consistent.csv")
    ...     done.counts.kept, done.counts.added, io.read(done.output).n_matches
    (2, 1, 3)
    """
    began = time.perf_counter()
    known_files = [constraints] if isinstance(constraints, str | os.PathLike) else list(constraints)
    if pairs is not None and method is None:
        method = BY_POSITIONS
    chosen = _chosen(DEFAULT if method is None else method, universe, options)
    route = plan_route(
        input, output, format=format, to=to, like=like, options=options, others=chosen.options,
        outputs=[report, plot], reads=[images, start, pairs, *known_files], force=force, answer=True,
    )  # fmt: skip
    shown, drawn, photographs = (None if path is None else Path(path) for path in (report, plot, images))
    _check(shown, drawn, photographs)
    given = dict(route.options["other"])
    problem, original = load(route.source, route.reader, **route.options["read"])
    barred = pairs_to_drop(problem, left_out.images, left_out.pairs)
    if len(barred):
        problem = problem.keep(~are_among(problem.pair_objects, barred)[problem.match_pairs])
        if not problem.n_matches:
            raise InputError("no match is left without these images and pairs", setting="drop_images")
    prior = None if pairs is None else read_pair_scores(as_path(pairs), problem)
    known = [read_constraints(as_path(name), problem) for name in known_files]
    held = reduce(operator.or_, known) if known else None
    reason = Reason.ASKED
    if client is not None:
        if prior is not None:
            raise InputError("scores of pairs are not known where tracks are found in groups; leave them out")
        result = _on_workers(problem, chosen.name, client, callback, given, held)
    else:
        asked_for = DEFAULT if method is None and start is not None else method
        choice = choose_method(problem, universe, asked_for, given, photographs=route.reader.photographs)
        first = None if start is None else _labels(Path(start), problem)
        reason = choice.reason
        result = synchronise(
            problem, universe, method=choice.method, start=first, constraints=held, prior=prior, rng=rng,
            callback=callback, **given,
        )  # fmt: skip
    if left_out.keep_tracks is not None:
        result = keep_longest(result, left_out.keep_tracks)
    adds = route.writer.whole or (route.writer.adds if add is None else add)
    found = result.difference if adds else replace(result.difference, adds=False)
    provenance = made_by(method=result.method, options=options, seed=rng, source=route.source)
    with outputs(route.target, shown, drawn, reads=route.reads, force=force) as staged:
        trust = None if found.labels is None else lambda: result.point_confidence
        after = found.matches_after
        if len(barred):  # of these nothing is written that would follow, either
            after = after.keep(~are_among(after.pair_objects, barred)[after.match_pairs])
        content = Content(after, found.labels, adds, original, provenance=provenance, confidence=trust, barred=barred)
        written = write_content(content, staged[route.target], route.writer, like=route.model, **route.options["write"])
        counts = found.counts if written is None else _counts(found, written, route, staged[route.target])
        if drawn is not None:
            plotting.save_to(staged[drawn], plotting.overview(result, found))
        if shown is not None:
            notes = _notes(found, counts, written, route)
            asked = {
                "method": method if isinstance(method, str) else None, "universe": universe, "format": format,
                "to": to, "like": like, "start": start, "pairs": pairs, "keep_tracks": left_out.keep_tracks,
                "seed": rng if rng else None,
            }  # fmt: skip
            lists = {"constraints": known_files, "drop_images": left_out.images}
            save, again = _corrected(
                route, asked | ({"drop_pairs": "FILE"} if left_out.pairs else {}), lists, add, options
            )
            text = page.render(
                found, result, images=photographs, notes=notes, certificate=certificate, command=again,
                save=save,
            )  # fmt: skip
            staged[shown].write_bytes(text.encode("utf-8", "replace"))  # names may hold bytes that are not UTF-8
    lost, advice, next_command = route.words(content.matchings, written, photographs)
    advice += _on_method(result, reason)
    kept_weights = problem.weights is None or content.matchings.weights is not None or written is not None
    if not kept_weights and problem.records is None:
        lost.append("The matches of the answer have no weights: those of the input are not written.")
    return Cleaned(
        route.source, route.target, shown, drawn, result, found, counts, written, tuple(lost), certificate,
        tuple(advice), next_command, time.perf_counter() - began,
    )  # fmt: skip


def _corrected(
    route: Route,
    asked: Mapping[str, Any],
    lists: Mapping[str, Sequence[Any]],
    add: bool | None,
    options: Mapping[str, Any],
) -> tuple[str, str]:
    """Return the name of the file that the page saves, and what to type to get the same answer, corrected by it."""
    target = route.target.with_name(f"{route.target.stem}-corrected{route.target.suffix}")
    before = {Path(name).name for name in lists["constraints"]}
    save = next(
        name for name in chain(["corrections.csv"], map("corrections-{}.csv".format, count(2))) if name not in before
    )
    words = ["stiefelsync", "sync", str(route.source), "-o", str(target)]
    usual = {"universe": "auto"}
    for name, value in asked.items():
        if value is not None and value != usual.get(name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    if add is not None:
        words.append("--add" if add else "--no-add")
    for name, several in lists.items():
        for value in several:
            words += [f"--{name.replace('_', '-')}", str(value)]
    for name, value in options.items():
        words += ["--option", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return save, shlex.join([*words, "--constraints", save])


def _on_method(result: Synchronisation, reason: Reason) -> list[str]:
    """Return a sentence on a method that was chosen unasked, or on positions that are ignored though they say much."""
    if reason is Reason.SINGLE:
        records = result.input.records
        return [f"Method {result.method} was chosen: {reason if records is None else _on_records(records)}."]
    if reason is Reason.POSITIONS:
        return [f"Method {result.method} was chosen: positions say much here, and method={DEFAULT!r} ignores them."]
    if result.method in PRESETS and moves_alike(result.input):
        return [f"Method {result.method} ignores positions, which say much here; method={BY_POSITIONS!r} does not."]
    return []


def _on_records(records: Records) -> str:
    """Say which sources may hold duplicates."""
    dirty = [name for name, clean in zip(records.sources, records.duplicate_free, strict=True) if not clean]
    if records.sources == ("",):
        return "all records are of one source, which holds duplicates"
    them = ", ".join(dirty) if len(dirty) < len(records.sources) else "all sources"
    return f"{them} may hold duplicates, since pairs inside are scored or you said so; duplicates='no' denies it"


def _labels(path: Path, problem: Matchings) -> NDArray[np.int64]:
    """Return the labels of an earlier answer for the points of a problem, shape (m,), -1 for those it did not have."""
    return carry_over(read(path), read_labels(path), problem).labels


def _on_workers(
    problem: Matchings,
    method: str,
    client: Any,
    callback: Callback | None,
    options: Mapping[str, Any],
    constraints: Constraints | None,
) -> Synchronisation:
    """Return the answer that the workers of a Dask client find."""
    if method != "tracks":
        raise InputError(f"method {method!r} works in one process; choose method='tracks'", setting="method")
    if options:
        raise InputError(f"{next(iter(options))!r} is not known where tracks are found in groups; leave it out")
    from stiefelsync import distributed  # an extra

    known = None if constraints is None else constrain(problem, constraints)
    answer = distributed.synchronise(problem, client=client, callback=callback)
    assert isinstance(answer, Synchronisation)
    if known is None:
        return answer
    labels = by_first_appearance(known.enforce(answer.labels))
    outcome, size = replace(answer.outcome, labels=labels), int(labels.max(initial=-1)) + 1
    return replace(answer, outcome=outcome, universe_size=size, constraints=constraints)


def _chosen(method: str | Method | Callable[..., Outcome], universe: str | int, options: Mapping[str, Any]) -> Method:
    """Return the method, or say that the universe or an option does not go with it."""
    chosen = find_method(method)
    if universe != "auto" and not chosen.sized:
        raise InputError(f"method {chosen.name!r} finds the size of the universe itself; leave universe={universe} out")
    for name in options:
        others = [other.name for other in METHODS.values() if name in other.options]
        if others and chosen.name not in others and not any(name in known.options for known in FORMATS.values()):
            advice = f"choose method={others[0]!r} for it"
            raise InputError(f"{name!r} is an option of method {', '.join(others)}; {advice}", setting="method")
    return chosen


def _check(report: Path | None, plot: Path | None, images: Path | None) -> None:
    """Raise an error for a page or a picture that could not be made."""
    if plot is not None:
        plotting.check_path(plot)
    if report is not None:
        page.check_page(report)
    if images is not None and report is None:
        raise InputError("images are shown in the report, and none is wanted; name it with report=", setting="report")
    if images is not None and not images.is_dir():
        raise InputError(f"{images} is not a folder of images")


def _counts(found: Difference, written: Written, route: Route, output: Path) -> Counts:
    """Return what became of the matches of a file that a changed copy was written of, as that file counts them."""
    added = written.added if found.adds else found.n_kept + found.n_added - written.distinct
    conflicted = None
    if written.target and (written.merged or route.model != route.source or written.target != written.source):
        tables = (read(path, route.writer.name, **written.reading) for path in (route.model, output))
        before, after = (conflicts(table).count for table in tables)
        conflicted = before, after
    return found.counts_in(written.before, written.kept, added, conflicted)


def _notes(found: Difference, counts: Counts, written: Written | None, route: Route) -> list[str]:
    """Say on the page, which counts the matches that were read, where the file differs."""
    notes, output = [], route.target
    if written is not None and written.merged:
        notes.append(
            f"On this page connected keypoints within {written.merged:g} px are one point (merge_px); "
            f"{output.name} holds the matches of each of them."
        )
    here = found.counts
    if written is not None and (
        written.source != written.target or (counts.before, counts.after) != (here.before, here.after)
    ):
        table = f" from the table {written.source}" if written.source and route.model == route.source else ""
        where = f"the table {written.target} of {output.name}" if written.target else output.name
        more = f", {counts.added:,} added" if counts.adds else ""
        notes.append(
            f"This page counts the matches that were read{table}. What was written is {where}: {counts.before:,} "
            f"matches became {counts.after:,} ({counts.kept:,} kept, {counts.removed:,} removed{more})."
        )
    if written is not None and (passed := written.verification) is not None:
        notes.append(
            f"Then pycolmap verified the matches of {output.name}: {passed.matches_left:,} of {passed.matches:,}"
            f" are left, in {passed.pairs_left:,} of {counted(passed.pairs, 'pair')}."
        )
    if counts.added and not counts.adds:
        notes.append(f"The matches that would follow are shown on this page only; {output.name} does not hold them.")
    return notes
