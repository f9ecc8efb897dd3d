"""``stiefelsync reproduce``: the paper's figures, and what became of its claims."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from stiefelsync.cli.options import Force, Json, Quiet, Seed
from stiefelsync.cli.terminal import complain, note, number, show, show_json, table, track

__all__ = ["run"]


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="house, house-matches, synthetic, house-ablation, synthetic-ablation, powers, sparsity, convergence,"
            " or all.",
        ),
    ] = "all",
    output: Annotated[Path, typer.Option("--output", help="Folder for records, figures and index.html.")] = Path(
        "reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A smaller version that takes minutes.")] = False,
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=1, help="Processes to run on.")] = 1,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", metavar="N", min=1, help="Seeds per point; each experiment's own number by default."),
    ] = None,
    step: Annotated[int, typer.Option("--step", metavar="N", min=1, help="Step of k on the house sequence.")] = 20,
    photographs: Annotated[
        bool, typer.Option("--photographs/--no-photographs", help="Draw match lines over the photographs.")
    ] = True,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch the house sequence first, if it is not on this machine.")
    ] = False,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Run the paper's experiments, draw their figures and say which of its claims hold.

    Records are kept as they are made: an interrupted run goes on where it ended when the same
    command is given again. Finished figures are replaced only with --force. The house sequence is
    found through STIEFELSYNC_DATA, or fetched with --download.

    Example: stiefelsync reproduce all --quick --output reproduction
    """
    # Here, so that no other command waits for the experiments to load.
    from stiefelsync.datasets.fetch import find
    from stiefelsync.datasets.house import HOUSE
    from stiefelsync.experiments.experiment import Settings
    from stiefelsync.experiments.reproduce import plan, reproduce

    began = time.perf_counter()
    if download:
        find(HOUSE, download=True)
    settings = Settings(quick, seeds, seed, step, photographs)
    todo = plan(experiment, output, settings, workers=workers)
    try:
        with track("reproducing", todo.steps) as advance:
            findings = reproduce(todo, progress=advance, force=force)
    except KeyboardInterrupt:
        complain("interrupted", "the records so far are kept; give the same command again to go on")
        raise typer.Exit(130) from None
    index = output / "index.html"
    if json:
        rows = [{"experiment": f.experiment, **asdict(f.verdict)} for f in findings]
        show_json({"index": str(index), "instances": len({task.key for task in todo.tasks}), "findings": rows})
        return
    if quiet:
        return
    show(
        table(
            "what became of the paper's claims",
            ["experiment", "finding", "claim"],
            [[f.experiment, f.verdict.finding, f.verdict.claim] for f in findings],
            left=3,
        )
    )
    note(f"figures and numbers: {index}; {number(time.perf_counter() - began, 2)} s in all")
