"""``stiefelsync demo``: the whole thing on an example that comes with the program."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from stiefelsync import io, plotting
from stiefelsync.cli.options import Force, Json, Quiet, Seed
from stiefelsync.cli.terminal import number, percent, program, progress, show, show_json, table
from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.io.files import check_outputs
from stiefelsync.matching.graph import conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error, score
from stiefelsync.stiefel.secondary import sparsity
from stiefelsync.stiefel.solve import sparse_stiefel
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise

if TYPE_CHECKING:
    from stiefelsync.datasets.cameras import CameraScene

__all__ = ["run"]

# The paper's figure on the effect of the secondary objective.
PLANTED = {"universe": 30, "objects": 5, "observed": 0.9, "error": 0.3}
SHOWN = 2  # image pairs in the picture


def run(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for pictures and files.")] = Path(
        "stiefelsync-demo"
    ),
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Seed = 0,
) -> None:
    """Synchronise the matches among 20 photographs of a castle with repeated windows, and draw before and after.

    Then solve one planted problem with and without the sparsity-promoting rotation: the paper's
    example.
    """
    began = time.perf_counter()
    try:
        output.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{output} is a file; name a folder for the demo's output") from None
    files = {"problem": output / "castle.npz", "answer": output / "castle-consistent.npz"}
    pictures = {"matches": output / "demo.png", "sparsity": output / "sparsity.png"}
    check_outputs([*files.values(), *pictures.values()], force=force)
    # Here, so that no other command waits for it.
    from stiefelsync.datasets.cameras import camera_scene

    scene = camera_scene(rng=seed)
    with progress("synchronising 20 photographs", quiet=quiet) as callback:
        result = synchronise(scene.matchings, rng=seed, callback=callback)
    before, after = (_quality(x, scene.truth) for x in (scene.matchings, result.matchings()))
    panels, rows = _planted(seed)
    io.write(scene.matchings, files["problem"], truth=scene.truth, force=force)
    io.write(result, files["answer"], force=force)
    hint = None
    try:
        plotting.save(_picture(scene, result), pictures["matches"], force=force)
        plotting.save(plotting.heatmaps(panels), pictures["sparsity"], force=force)
        files |= pictures
    except MissingExtraError as error:
        hint = f"no pictures: {error}"
    if json:
        certificate = {"objective": result.objective, "upper_bound": result.upper_bound, "gap": result.gap}
        show_json({
            "seed": seed, "before": before, "after": after, "certificate": certificate, "seconds": result.timings,
            "planted": rows, "files": files, "hint": hint,
        })  # fmt: skip
    elif not quiet:
        _show_castle(scene, result, before, after)
        _show_planted(rows)
        show("", *(f"{name:9} {path}" for name, path in files.items()), *([] if hint is None else [hint]))
        show(f"{'time':9} {number(time.perf_counter() - began, 2)} s in all")
        show("", f"next: {program()} inspect {files['problem']}", f"      {program()} compare {files['problem']}")


def _quality(shown: Matchings, truth: NDArray[np.int64]) -> dict[str, Any]:
    """Return what the table says about matches, before or after."""
    quality = score(shown, truth)
    return {
        "matches": shown.n_matches,
        "precision": quality.precision,
        "recall": quality.recall,
        "fscore": quality.fscore,
        "cycle_error": cycle_error(shown).value,
        "conflicts": conflicts(shown).count,
    }


def _planted(seed: int) -> tuple[list[tuple[str, NDArray[Any]]], list[dict[str, Any]]]:
    """Solve the planted problem with and without the rotation.

    Return pictures' panels and table rows.
    """
    from stiefelsync.datasets import synthetic

    problem, truth = synthetic(**PLANTED, rng=seed)  # type: ignore[arg-type]
    W, d = problem.to_matrix(), len(np.unique(truth))
    by_truth = np.lexsort((truth, problem.point_objects))
    panels, rows = [], []
    for title, step in (("Orthogonal Iteration", "none"), ("sparse Stiefel (Algorithm 1)", "gradient")):
        start = time.perf_counter()
        solved = sparse_stiefel(W, d, step=step, rng=seed)
        seconds = time.perf_counter() - start
        columns = np.argsort(truth[np.abs(solved.U).argmax(axis=0)], kind="stable")
        panels.append((title, solved.U[np.ix_(by_truth, columns)]))
        rows.append({
            "method": title, "objective": solved.objective, "secondary": solved.secondary,
            "sparsity": sparsity(solved.U, 0.1), "iterations": solved.n_iter, "seconds": seconds,
        })  # fmt: skip
    return panels, rows


def _picture(scene: CameraScene, result: Synchronisation) -> Any:
    """Draw the pairs of photographs with most wrong matches among those that share many corners."""
    problem = scene.matchings
    right = problem.agreeing(scene.truth)
    n_right, n_wrong = (np.bincount(problem.match_pairs, x, len(problem.pair_objects)) for x in (right, ~right))
    # Neither nearly perfect nor hopeless: what shows most is many right and many wrong matches in
    # one pair.
    order = np.argsort(-np.minimum(n_right, 2 * n_wrong), kind="stable")
    pairs: list[tuple[int, int]] = []
    for i, j in problem.pair_objects[order].tolist():
        if all(i not in pair and j not in pair for pair in pairs):
            pairs.append((i, j))
        if len(pairs) == SHOWN:
            break
    return plotting.match_lines(
        problem, result.matchings(), scene.truth, pairs, drawings=scene.drawings, size=(scene.width, scene.height),
        title=f"Look-alike windows get confused (left); {problem.n_objects} photographs together sort them out (right)",
    )  # fmt: skip


def _show_castle(scene: CameraScene, result: Synchronisation, before: dict[str, Any], after: dict[str, Any]) -> None:
    problem = scene.matchings
    rows = [
        ["matches", *(number(x["matches"]) for x in (before, after))],
        *([name, *(percent(x[name]) for x in (before, after))] for name in ("precision", "recall", "fscore")),
        ["cycle error", *(percent(x["cycle_error"]) for x in (before, after))],
        ["conflicting tracks", *(number(x["conflicts"]) for x in (before, after))],
    ]
    title = f"A castle in {problem.n_objects} photographs: {problem.n_points:,} keypoints, windows that look alike"
    show(
        table(title, ["", "before", "after"], rows),
        f"certificate: objective {number(result.objective, 0)}, no answer exceeds {number(result.upper_bound, 0)} "
        f"(gap {percent(result.gap)}); {number(sum(result.timings.values()), 2)} s",
    )


def _show_planted(rows: list[dict[str, Any]]) -> None:
    cells = [
        [
            r["method"], number(r["objective"], 4), number(r["secondary"], 2), percent(r["sparsity"]),
            number(r["iterations"]), f"{r['seconds']:.3f} s",
        ]
        for r in rows
    ]  # fmt: skip
    title = "\nThe solver alone: tr(UᵀWU) of a planted problem (5 objects, 30 points, 90 % seen, 30 % wrong)"
    columns = ["", "objective", "g(U)", "sparsity: entries below 1/10 of the largest", "iterations", "time"]
    show(table(title, columns, cells))
