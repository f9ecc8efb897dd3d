"""``stiefelsync judge``: how good anyone's answer is likely to be, without a truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync.cli.options import (
    Columns,
    Duplicates,
    Features,
    Force,
    Format,
    Images,
    Json,
    Method,
    Options,
    Quiet,
    Seed,
    Threshold,
    Verbose,
    parse_options,
)
from stiefelsync.cli.terminal import facts, progress, show, show_json
from stiefelsync.judging import WORST, judge_files, summary, told

__all__ = ["run"]

_BRIEF = ("wrong", "missing", "fscore", "against", "differ")
"""What is told without --verbose."""


def run(
    answer: Annotated[
        Path,
        typer.Argument(
            metavar="ANSWER", help="Anyone's tracks, clusters or matches, or COLMAP's sparse/0.", show_default=False
        ),
    ],
    of: Annotated[
        list[Path],
        typer.Option(
            "--of",
            help="The matches that the answer was made from, or the sessions whose cells it follows, one option each.",
            show_default=False,
        ),
    ],
    against: Annotated[Path | None, typer.Option("--against", help="Another answer to compare with.")] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Web page to write, with the worst tracks, to be corrected there.")
    ] = None,
    images: Images = None,
    method: Method = None,
    format: Format = None,
    features: Features = None,
    columns: Columns = None,
    duplicates: Duplicates = None,
    threshold: Threshold = None,
    option: Options = [],  # noqa: B006  typer copies it
    force: Force = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Judge anyone's answer by the matches it was made from; no truth is needed.

    What it puts together and should not, what it misses, and its worst tracks; beside our own
    answer or another (--against). --verbose prints everything, line by line. Nothing but
    the page is written. Of cells or units over days, the sessions take the place of the matches:
    --of mouse/day01 --of mouse/day02.

    Example: stiefelsync judge earlier-answer.npz --of problem.npz
    Example: stiefelsync judge clean.db --of database.db --report judge.html
    """
    given = parse_options(option, features, columns=columns, duplicates=duplicates, threshold=threshold)
    with progress(f"judging {answer.name}", quiet=quiet) as callback:
        verdict = judge_files(
            answer, of, against=against, report=report, images=images, method=method, format=format, force=force,
            rng=seed, callback=callback, **given,
        )  # fmt: skip
    if json:
        files = {"answer": answer, "against_file": against, "report": report}
        known = {name: str(path) for name, path in files.items() if path is not None}
        show_json(known | {"of": [str(path) for path in of]} | verdict.as_dict())
    elif not quiet:
        lines = told(verdict)
        if not verbose:
            lines = {name: line for name, line in lines.items() if name.startswith(_BRIEF)}
        show(facts(f"{answer} of {of[0]}" + " …" * (len(of) > 1), {"verdict": summary(verdict), **lines}))
        for place, one in enumerate(verdict.worst[: WORST if verbose else 3], start=1):
            show(f"worst {place}: {len(one.points)} points, {one.evidence}")
        if report is not None:
            show(f"wrote {report}; open it in a browser")
