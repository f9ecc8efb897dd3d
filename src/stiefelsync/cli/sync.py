"""``stiefelsync sync``: matches in, consistent matches out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from stiefelsync.cleaning import Cleaned, LeftOut, clean
from stiefelsync.cli.days import sync_days
from stiefelsync.cli.options import (
    Add,
    Certificate,
    Checkpoint,
    Columns,
    Duplicates,
    Features,
    Force,
    Format,
    Images,
    Inputs,
    Json,
    Like,
    Memory,
    Method,
    Options,
    Quiet,
    Seed,
    Threshold,
    To,
    Universe,
    Verbose,
    parse_memory,
    parse_options,
    parse_universe,
)
from stiefelsync.cli.terminal import facts, number, peak_memory, percent, progress, show, show_json, spent
from stiefelsync.cli.usage import advice
from stiefelsync.errors import InputError, counted
from stiefelsync.following import is_followed
from stiefelsync.io.pair_scores import read_pairs
from stiefelsync.sync.method import METHODS
from stiefelsync.sync.result import Synchronisation

__all__ = ["run"]

_DETAILS = ("in full", "decided", "universe", "method")
"""What is told with --verbose only."""
_MAX_PAIRS = 3


def run(
    ctx: typer.Context,
    inputs: Inputs,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write.", show_default=False)],
    method: Method = None,
    universe: Universe = "auto",
    format: Format = None,
    to: To = None,
    like: Like = None,
    add: Add = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Picture to draw: .png, .pdf or .svg.")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Web page to write, which shows what changed.")
    ] = None,
    images: Images = None,
    features: Features = None,
    before_verification: Annotated[
        bool,
        typer.Option(
            "--before-verification", help="COLMAP: clean the raw matches and, if pycolmap is installed, verify them."
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="COLMAP: have pycolmap verify what is left, and keep only what passes.")
    ] = False,
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs", help="Scores of pairs of images from elsewhere: CSV file, image_a,image_b,score (0 to 1)."
        ),
    ] = None,
    drop_images: Annotated[
        list[str],
        typer.Option("--drop-images", metavar="NAME", help="Image whose matches to ignore; may be repeated."),
    ] = [],  # noqa: B006  typer copies it
    drop_pairs: Annotated[
        Path | None,
        typer.Option("--drop-pairs", help="File of pairs whose matches to ignore: two names on each line."),
    ] = None,
    keep_tracks: Annotated[
        int | None,
        typer.Option("--keep-tracks", metavar="N", min=1, help="Keep only this many tracks, the longest and surest."),
    ] = None,
    columns: Columns = None,
    duplicates: Duplicates = None,
    threshold: Threshold = None,
    option: Options = [],  # noqa: B006  typer copies it
    start: Annotated[
        Path | None, typer.Option("--start", help="Earlier answer (.npz or .dataset) to go on from.")
    ] = None,
    constraints: Annotated[
        list[Path],
        typer.Option(
            "--constraints",
            metavar="FILE",
            help="Points that must, or cannot, be the same: CSV file, as report pages save it; may be repeated.",
        ),
    ] = [],  # noqa: B006  typer copies it
    workers: Annotated[
        int | None,
        typer.Option("--workers", metavar="N", min=1, help="Find tracks in this many processes on this machine."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="Find tracks on the workers of the Dask scheduler at this address."
        ),
    ] = None,
    memory: Memory = None,
    checkpoint: Checkpoint = None,
    certificate: Certificate = False,
    force: Force = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Make the matches of a file consistent and write them to another file.

    Matches that contradict the others are removed, matches that follow from others are added. The
    input is not changed. --verbose tells how the answer came about.

    Several inputs are sessions whose cells are followed, one folder of UnitMatch is units; what is
    written is a table.

    Example: stiefelsync sync database.db -o clean.db --report changes.html --images photos
    Example: stiefelsync sync matches.csv -o tracks.csv --to tracks
    Example: stiefelsync sync mouse/*/ -o cells.csv --report cells.html
    Example: stiefelsync sync edges.csv -o clusters.csv
    Example: stiefelsync sync matches.csv -o corrected.csv --constraints corrections.csv
    Example: stiefelsync sync larger.npz -o answer.npz --start earlier-answer.npz
    Example: stiefelsync sync matches.dataset -o answer.dataset --method tracks --workers 4
    Example: stiefelsync sync matches.csv -o answer.csv --memory 2GB --checkpoint unfinished
    Example: stiefelsync sync database.db --before-verification -o clean.db
    Example: stiefelsync sync database.db --verify -o clean.db
    """
    special: dict[str, Any] = {
        "like": like, "add": add, "plot": plot, "images": images, "features": features, "start": start,
        "certificate": certificate or None, "before-verification": before_verification or None,
        "verify": verify or None, "universe": None if universe == "auto" else universe,
        "pairs": pairs, "drop-images": drop_images or None,
        "drop-pairs": drop_pairs, "keep-tracks": keep_tracks, "columns": columns, "duplicates": duplicates,
        "constraints": constraints or None,
    }  # fmt: skip
    in_parts = memory is not None or checkpoint is not None
    if is_followed(inputs, sessions=any(setting.startswith("sessions=") for setting in option)):
        unused = special | {
            "format": format, "workers": workers, "scheduler": scheduler, "memory": memory, "checkpoint": checkpoint,
        }  # fmt: skip
        sync_days(
            inputs, output, options=parse_options(option, threshold=threshold), unused=unused, quiet=quiet, json=json,
            seed=seed, to=to, report=report, method=method, force=force,
        )  # fmt: skip
        return
    given = parse_options(option, features, columns=columns, duplicates=duplicates, threshold=threshold)
    if before_verification:
        given = {"before_verification": True} | given
    if verify:
        given = {"verify": True} | given
    input, many = inputs[0], workers is not None or scheduler is not None
    if in_parts:
        other = None if method in (None, "tracks") else method
        unknown = special | {"report": report, "threshold": threshold, "method": other}
        if refused := [name for name, value in unknown.items() if value is not None]:
            raise InputError(
                f"--{refused[0]} is for problems that fit into memory; leave it out, or --memory and --checkpoint"
            )
        with progress(f"synchronising {input.name}", quiet=quiet) as callback, ExitStack() as stack:
            _in_parts(
                input, output, json=json, quiet=quiet, seed=seed,
                client=stack.enter_context(_cluster(workers, scheduler)) if many else None,
                memory=parse_memory(memory), checkpoint=checkpoint, format=format, to=to, force=force,
                callback=callback, **given,
            )  # fmt: skip
        return
    with progress(f"synchronising {input.name}", quiet=quiet) as callback, ExitStack() as stack:
        client = stack.enter_context(_cluster(workers, scheduler)) if many else None
        done = clean(
            input, output, method=method, universe=parse_universe(universe), report=report, plot=plot, images=images,
            format=format, to=to, like=like, add=add, certificate=certificate, force=force, rng=seed, callback=callback,
            start=start, constraints=constraints, client=client, pairs=pairs, **given,
            left_out=LeftOut(drop_images, () if drop_pairs is None else read_pairs(drop_pairs), keep_tracks),
        )  # fmt: skip
    if json:
        show_json(done.as_dict() | {"seed": seed, "peak_memory_bytes": peak_memory()})
    elif not quiet:
        lines = _lines(done)
        if not verbose:
            lines = {name: line for name, line in lines.items() if name not in _DETAILS}
        pays = _on_workers(done.result.input.n_matches, many)
        show(facts(f"{input} → {output}", lines), *done.lost, *advice(done.advice, ctx), *pays)
        if done.next_command is not None:
            show("", "next:", f"  {done.next_command}")


def _in_parts(input: Path, output: Path, *, json: bool, quiet: bool, seed: int, client: Any, **given: Any) -> None:
    """Find tracks in parts and tell what came of it."""
    from stiefelsync.out_of_core import clean_out_of_core  # which loads the extra tables

    done = clean_out_of_core(input, output, client=client, **given)
    if json:
        show_json(done.as_dict() | {"seed": seed, "peak_memory_bytes": peak_memory()})
    elif not quiet:
        found = done.labelling
        removed = found.n_matches - found.kept
        share = f" ({percent(removed / found.n_matches)})" if removed else ""
        lines = {
            "result": f"consistent: {counted(removed, 'match')}{share} removed",
            "matches": f"{number(found.n_matches)} → {number(found.kept + done.added)}: {number(found.kept)} kept, "
            f"{number(removed)} removed, {number(done.added)} added",
            "tracks": number(found.n_tracks),
            "parts": f"{counted(found.groups, 'group')} of objects, one after another" + " or at once" * bool(client),
            "time": spent(done.seconds),
        }
        show(facts(f"{input} → {output}", lines), *_on_workers(found.n_matches, client is not None, in_parts=True))


_WORKERS_PAY = 20_000_000
"""Matches: two workers took 16 to 19 s for 10 million, one process 11 s; 32 million took them 11 s, and it 21 s."""


def _on_workers(n_matches: int, many: bool, *, in_parts: bool = False) -> list[str]:
    """Return a sentence where workers cost more than they give, or would give more than they cost."""
    if many and n_matches < _WORKERS_PAY:
        few = f"{_WORKERS_PAY // 10**6} million matches"
        return [f"Below some {few} workers take longer than one process does; leave them out."]
    if in_parts and not many and n_matches >= _WORKERS_PAY:
        return ["With so many matches workers pay: --workers 2, or as many as there are cores."]
    return []


def _cluster(workers: int | None, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return a cluster of processes here, or the one behind an address."""
    from stiefelsync.distributed.cluster import cluster  # an extra

    return cluster(workers, scheduler)


def _lines(done: Cleaned) -> dict[str, str]:
    """Return what to print, by name."""
    counts, written, result = done.counts, done.written, done.result
    figures, told, lines = done.as_dict(), _conflicts(done), {"result": _verdict(done)}
    repair = result.input.repair
    if result.input.records is not None and result.consistent:
        lines["records"] = _records(result)
    n_read = result.input.n_matches + (0 if repair is None else repair.dropped)
    records = result.input.records
    if records is not None and records.scored is not None:
        lines["read"] = (
            f"{counted(len(records.scored[0]), 'scored pair')}; the best one-to-one choice among them is"
            f" {counted(result.input.n_matches, 'match')}"
        )
    elif repair is not None:
        lines["read"] = f"{number(n_read)} matches, {number(repair.dropped)} of them ignored to make them one-to-one"
    elif n_read != counts.before:
        lines["read"] = f"{number(n_read)} matches"
    if written is not None and written.source != written.target:
        lines["table"] = (
            f"{written.target}, not {written.source}, was written and holds {number(counts.after)} matches now"
        )
    if written is not None and written.to_verify:
        lines["verified"] = f"the verified matches of {counted(written.to_verify, 'pair')} are to be computed again"
    if written is not None and (passed := written.verification) is not None:
        kind = "raw match" if written.target == "matches" else "match"
        lines["verified"] = (
            f"by pycolmap: of {counted(passed.matches, kind)} in {counted(passed.pairs, 'pair')} "
            f"{number(passed.matches_left)} in {counted(passed.pairs_left, 'pair')} are left"
        )
    if written is not None and written.moved:
        lines["positions"] = f"{counted(written.moved, 'keypoint')} moved off the grid"
    more = "added" if counts.adds else "more would follow from the tracks, which --add writes, too"
    added = f", {number(counts.added)} of them added" if counts.adds and counts.added else ""
    lines["matches"] = f"{number(counts.before)} → {number(counts.after)}{added}"
    lines["in full"] = f"{number(counts.kept)} kept, {number(counts.removed)} removed, {number(counts.added)} {more}"
    lines["tracks"] = (
        f"{number(figures['tracks'])}; {told}" if figures["consistent"] else f"none: not cycle-consistent; {told}"
    )
    if "disputed_pairs" in figures:
        lines["pairs"] = _disputed(figures)
    if "rules" in figures:
        lines["decided"] = figures["rules"]
    lines["universe"] = number(result.universe_size) + ("" if result.estimate is None else " (estimated)")
    if done.certificate:
        lines["certificate"] = (
            f"objective {number(result.objective, 1)}, no answer exceeds {number(result.upper_bound, 1)}: "
            f"gap {percent(result.gap, 2)}"
        )
    lines["method"] = f"{result.method}, {number(sum(result.timings.values()), 2)} s, {figures['status']}"
    lines["time"] = spent(done.seconds)
    return lines


def _verdict(done: Cleaned) -> str:
    """Say in a sentence what the matches are now.

    Tracks hold what follows from them; so what is written is consistent, but for copies of
    keypoints that merge_px keeps, and for methods that give no tracks.
    """
    counts = done.counts
    share = percent(counts.removed / counts.before) if counts.before else "none"
    if not counts.removed:
        gone = "no match removed"
    elif counts.removed == counts.before:
        gone = "all matches removed"
    else:
        gone = f"{counted(counts.removed, 'match')} ({share}) removed"
    if not done.result.consistent:
        return f"not cycle-consistent, as method {done.result.method} leaves matches: {gone}"
    if counts.conflicts_after:
        return f"{gone}; {counted(counts.conflicts_after, 'conflict')} left"
    return f"consistent: {gone}"


def _disputed(figures: Mapping[str, Any]) -> str:
    """Say how many pairs scores and third images speak against, and of which ones they make different things."""
    disputed = figures["disputed_pairs"]
    told = f"{number(len(figures['pairs_left_out']))} left out, {number(len(disputed))} judged otherwise than scored"
    # The farther apart the two probabilities, the sooner it is told.
    worst = sorted(disputed, key=lambda pair: -abs(pair[2] - pair[3]))[:_MAX_PAIRS]
    shown = ", ".join(f"{a} – {b} ({given:.2f}, now {found:.2f})" for a, b, given, found in worst)
    return told + (f": {shown}" if shown else "") + (" …" if len(disputed) > _MAX_PAIRS else "")


def _records(result: Synchronisation) -> str:
    """Say how many records became how many clusters."""
    records, labels = result.input.records, result.labels
    assert records is not None
    count = np.bincount(labels[labels >= 0])
    alone = int((labels < 0).sum()) + int((count == 1).sum())
    sources = f" of {counted(len(records.sources), 'source')}" if records.sources != ("",) else ""
    clusters = int((count > 1).sum())
    return f"{number(len(records))}{sources} → {number(clusters + alone)} clusters, {number(alone)} of one record"


def _conflicts(done: Cleaned) -> str:
    """Say what became of the tracks that contradicted themselves."""
    counts, result = done.counts, done.result
    # One that falls apart may leave several that hold copies of a keypoint.
    mended = max(counts.conflicts_before - counts.conflicts_after, 0)
    verb = "discarded" if result.method in METHODS and METHODS[result.method].discards else "repaired"
    told = (
        f"{number(mended)} conflicting {'one' if mended == 1 else 'ones'} {verb}, {number(counts.conflicts_after)} left"
    )
    if (
        done.written is not None
        and done.written.merged
        and result.outcome.labels is not None
        and counts.conflicts_after
    ):
        told += f": copies of keypoints within {done.written.merged:g} px, which merge_px keeps"
    return told
