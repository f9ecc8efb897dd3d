"""``stiefelsync synth``: a problem whose answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync import io
from stiefelsync.cli.options import Force, Json, Quiet, Seed
from stiefelsync.cli.terminal import facts, note, number, show, show_json
from stiefelsync.io.dispatch import output_format
from stiefelsync.io.files import check_outputs

__all__ = ["run"]


def run(
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="File to write; its ending names the format.", show_default=False)
    ],
    universe: Annotated[int, typer.Option(help="Points in the universe, d.")] = 25,
    objects: Annotated[int, typer.Option(help="Objects, k.")] = 30,
    observed: Annotated[float, typer.Option(help="Chance that an object sees a point, ρ.")] = 0.6,
    error: Annotated[float, typer.Option(help="Error rate of the matches, σ.")] = 0.5,
    noise: Annotated[str, typer.Option(help="How matches go wrong: row, edge or mix.")] = "row",
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Draw a random problem and write it, with its true answer if the format can hold it.

    Example: stiefelsync synth problem.npz --objects 40 --error 0.6 --seed 1
    """
    check_outputs([output], force=force)
    from stiefelsync.datasets import synthetic  # here, so that no other command waits for it

    problem, truth = synthetic(universe, objects, observed, error, noise=noise, rng=seed)
    holds_truth = "truth" in output_format(output, None, None).write_options
    if holds_truth:
        io.write(problem, output, truth=truth, force=force)
    else:
        io.write(problem, output, force=force)
        note("this format has no room for the truth, which compare uses; the file has the matches alone")
    counts = {"objects": problem.n_objects, "points": problem.n_points, "matches": problem.n_matches}
    if json:
        show_json({"output": str(output), **counts, "truth": holds_truth, "seed": seed})
    elif not quiet:
        show(facts(f"wrote {output}", {name: number(count) for name, count in counts.items()}))
