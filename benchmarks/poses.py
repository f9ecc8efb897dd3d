"""What cleaning matches does for camera poses: COLMAP's two mappers on real databases, judged by the true cameras.

``STIEFELSYNC_DATA=DATA python -m benchmarks.poses --records poses.jsonl`` needs the extra `colmap`. A cell (scene,
database, recipe, mapper, draw) takes three to thirty seconds; cells already in the records are not run again.
``--table`` prints the table of the records, ``--verdicts`` for every row whether the recommended recipe does harm,
``--plot FILE`` draws them. Draw 0 has all matches and is for choosing rules;
the four others each leave out a random 1 % of them. ``--two-image-points`` shows what points seen by
two images do to the cameras.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.herz_jesu import epipolar_distance
from benchmarks.pose_databases import DATABASES, SCENES, make, shuffle_out, thin
from benchmarks.pose_records import Cell, controls, load, plot, table, verdicts
from benchmarks.true_cameras import Camera, auc, cameras, pose_errors, true_matches
from stiefelsync import Matchings, io, synchronise
from stiefelsync.positions.refinement import refine_positions

MAPPERS = ("incremental", "global")
DRAWS = range(1, 5)
RAW, VERIFIED = "matches", "two_view_geometries"


# ---------------------------------------------------------------- recipes


def pair_list(path: Path, folder: Path) -> Path:
    """Write the names of all pairs of images with raw matches, as ``pycolmap.verify_matches`` wants them."""
    problem = io.read(path, source=RAW)
    assert problem.names is not None
    names = problem.names
    pairs = folder / "pairs.txt"
    pairs.write_text("".join(f"{names[i]} {names[j]}\n" for i, j in problem.pair_objects))
    return pairs


def verify(path: Path, max_error: float) -> None:
    """Verify all raw matches of a database anew, with one thread."""
    import sqlite3

    import pycolmap

    pycolmap.set_random_seed(0)
    options = pycolmap.TwoViewGeometryOptions()
    options.ransac.max_error = max_error
    options.ransac.random_seed = 0
    with tempfile.TemporaryDirectory() as folder:
        pairs = pair_list(path, Path(folder))
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("DELETE FROM two_view_geometries")
        connection.close()
        pycolmap.verify_matches(path, pairs, options)


def max_error_of(database: str) -> float:
    """Return the tolerance of verification in pixels: COLMAP's own, and 6 for keypoints on a grid, as in that file."""
    return 6.0 if database == "grid8" else 4.0


def original(source: Path, path: Path, cell: Cell) -> None:
    shutil.copyfile(source, path)


def verified_again(source: Path, path: Path, cell: Cell) -> None:
    """Control of `before`: the same verification without cleaning."""
    shutil.copyfile(source, path)
    verify(path, max_error_of(cell.database))


def cleaned(source: Path, path: Path, cell: Cell, **options: Any) -> None:
    """Clean the verified matches, and move keypoints that lie on a grid."""
    problem = io.read(source, source=VERIFIED)
    io.write(synchronise(problem, method="tracks", **options), path, like=source, source=VERIFIED)


def verified_after(source: Path, path: Path, cell: Cell) -> None:
    """Clean the verified matches, and have COLMAP verify what is left: ``sync --verify``."""
    problem = io.read(source, source=VERIFIED)
    io.write(synchronise(problem, method="tracks"), path, like=source, source=VERIFIED, verify=True)


def unrefined(source: Path, path: Path, cell: Cell) -> None:
    """Clean the verified matches, and leave keypoints where they are."""
    problem = io.read(source, source=VERIFIED)
    io.write(synchronise(problem, method="tracks"), path, like=source, source=VERIFIED, refine=False)


def before(source: Path, path: Path, cell: Cell, **options: Any) -> None:
    """Clean the raw matches, then verify them."""
    problem = io.read(source, source=RAW)
    io.write(synchronise(problem, method="tracks", **options), path, like=source, source=RAW, target=RAW)
    verify(path, max_error_of(cell.database))


def union_find(source: Path, path: Path, cell: Cell) -> None:
    """Drop every track with a conflict, as structure-from-motion programs do."""
    problem = io.read(source, source=VERIFIED)
    io.write(synchronise(problem, method="union-find"), path, like=source, source=VERIFIED)


def at_random(source: Path, path: Path, cell: Cell) -> None:
    """Control of `cleaned`: remove as many matches of every pair at random."""
    with tempfile.TemporaryDirectory() as folder:
        clean = Path(folder) / "clean.db"
        cleaned(source, clean, cell)
        shutil.copyfile(source, path)
        shuffle_out(path, clean)


def told(source: Path, path: Path, cell: Cell) -> None:
    """Control of `cleaned`: the true cameras say which matches are wrong, and exactly those are removed."""
    problem, side = io.read(source, source=VERIFIED), larger_side(source)
    truth = cameras(Path(os.environ["STIEFELSYNC_DATA"]) / SCENES[cell.scene], side)
    io.write(problem.keep(true_matches(problem, truth, side)), path, like=source, source=VERIFIED)


Recipe = Callable[[Path, Path, Cell], None]
RECIPES: dict[str, Recipe] = {
    "original": original,
    "sync": cleaned,
    "--verify": verified_after,
    "unrefined": unrefined,
    "before": before,
    "verified again": verified_again,
    "union-find": union_find,
    "at random": at_random,
    "told": told,
    "doubt=1": partial(cleaned, doubt=1.0),
    "doubt=3": partial(cleaned, doubt=3.0),
}


# ---------------------------------------------------------------- one cell


def reconstruct(database: Path, mapper: str) -> Any:
    """Return the model with most images that a mapper of one thread makes of a database, or None."""
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.FATAL.value
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "database.db"
        shutil.copyfile(database, copy)  # opening a database with pycolmap rewrites it
        if mapper == "incremental":
            options = pycolmap.IncrementalPipelineOptions(random_seed=0, num_threads=1, extract_colors=False)
            found = pycolmap.incremental_mapping(copy, folder, folder, options)
        else:
            options = pycolmap.GlobalPipelineOptions(random_seed=0, num_threads=1)
            options.mapper.random_seed = 0
            options.mapper.num_threads = 1
            found = pycolmap.global_mapping(copy, folder, folder, options)
        return max(found.values(), key=lambda model: model.num_reg_images(), default=None)


def larger_side(database: Path) -> float:
    """Return the larger side of a database's images, in pixels."""
    import sqlite3

    connection = sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)
    side = connection.execute("SELECT max(max(width, height)) FROM cameras").fetchone()[0]
    connection.close()
    return float(side)


def run(data: Path, cell: Cell, recipe: Recipe | None = None) -> dict[str, Any]:
    """Make the database, clean it, reconstruct and judge."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "source.db", Path(folder) / "database.db"
        make(data, cell.scene, cell.database, source)
        thin(source, cell.draw)
        (recipe or RECIPES[cell.recipe])(source, path, cell)
        truth = cameras(data / SCENES[cell.scene], larger_side(source))
        return judge(truth, source, path, cell.mapper)


def judge(truth: dict[str, Camera], source: Path, path: Path, mapper: str) -> dict[str, Any]:
    """Return the figures of the reconstruction from a database, and of its matches against those of its source."""
    side = larger_side(source)
    given, kept = io.read(source, source=VERIFIED), io.read(path, source=VERIFIED)
    if np.array_equal(kept.sizes, given.sizes):  # matches are judged where their keypoints were
        kept = Matchings.from_endpoints(kept.endpoints, kept.sizes, names=kept.names, coordinates=given.coordinates)
    right, still = true_matches(given, truth, side), true_matches(kept, truth, side)
    model = reconstruct(path, mapper)
    relative, rotation, centre = pose_errors(model, truth)
    views = [
        len({element.image_id for element in point.track.elements})
        for point in (model.points3D.values() if model is not None else ())
    ]
    return {
        **{f"auc{t}": auc(relative, t) for t in (1, 3, 5)},
        "rotation": float(np.median(rotation)),
        "centre": float(np.median(centre)),
        "images": 0 if model is None else model.num_reg_images(),
        "points": len(views),
        "points3": sum(count >= 3 for count in views),
        "matches": kept.n_matches,
        "precision": float(still.mean()),
        "recall": float(still.sum() / right.sum()),
        "precision_before": float(right.mean()),
    }


# ---------------------------------------------------------------- which cells, and two questions


def cells(chosen: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells asked for, the draws last, so that a table is soon complete."""
    for draw, scene, database, recipe, mapper in product(
        chosen.draws, chosen.scenes, chosen.databases, chosen.recipes, chosen.mappers
    ):
        if scene != "herz-jesu" or database in ("verified", "raw", "rewired05", "rewired20"):
            yield Cell(scene, database, recipe, mapper, draw)


def two_image_points(data: Path) -> None:
    """Print AUC@1° of entry, verified, incremental, before and after deleting the points of two images."""
    import pycolmap

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        make(data, "entry", "verified", source)
        truth, model = cameras(data / SCENES["entry"], larger_side(source)), reconstruct(source, "incremental")
    print(f"as it is: {auc(pose_errors(model, truth)[0], 1):.3f}, {model.num_points3D()} points")
    for number, point in list(model.points3D.items()):
        if len({element.image_id for element in point.track.elements}) < 3:
            model.delete_point3D(number)
    pycolmap.bundle_adjustment(model, pycolmap.BundleAdjustmentOptions())
    print(f"without points of two images: {auc(pose_errors(model, truth)[0], 1):.3f}, {model.num_points3D()} points")


def told_the_truth(data: Path, distance: float = 8.0) -> None:
    """Print AUC@1° of entry, grid8, incremental, without the matches farther than this from true epipolar lines."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "source.db", Path(folder) / "database.db"
        make(data, "entry", "grid8", source)
        truth, problem = cameras(data / SCENES["entry"], larger_side(source)), io.read(source, source=VERIFIED)
        assert problem.names is not None
        far = epipolar_distance(problem, [truth[name.split(".")[0]].P for name in problem.names]) > distance
        io.write(problem.keep(~far), path, like=source, source=VERIFIED)
        model = reconstruct(path, "incremental")
    print(f"without {far.sum():,} of {len(far):,} matches: {auc(pose_errors(model, truth)[0], 1):.3f}")


def parts_of_cleaning(data: Path) -> None:
    """Print what each part of cleaning does to AUC@1° of verified matches, global mapper, draw 0."""
    for scene in ("fountain", "entry"):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source.db"
            make(data, scene, "verified", source)
            side, problem = larger_side(source), io.read(source, source=VERIFIED)
            truth = cameras(data / SCENES[scene], side)
            right, every = true_matches(problem, truth, side), np.ones(problem.n_matches, dtype=bool)
            kept = {
                name: synchronise(problem, method="tracks", **options).kept
                for name, options in {
                    "sync": {},
                    "without doubts": {"doubt": 0.0},
                    "without positions": {"doubt": 0.0, "neighbours": 0},
                }.items()
            }
            kept |= {
                "all matches, written again": every,
                "only its doubts": kept["sync"] | ~kept["without doubts"],
                "only what it removes rightly": kept["sync"] | right,
                "only what it removes wrongly": kept["sync"] | ~right,
                "told": right,
            }
            for n, (name, keep) in enumerate(({"original": every} | kept).items()):
                path = Path(folder) / f"{n}.db"
                io.write(problem.keep(keep), path, like=source, source=VERIFIED)
                value = auc(pose_errors(reconstruct(source if name == "original" else path, "global"), truth)[0], 1)
                print(f"{scene}, {name}: {value:.4f}, {(~keep).sum():,} matches less", flush=True)


def refinements(data: Path) -> None:
    """Print AUC@1° of grid8, all matches, with keypoints moved by the matches around them, few and many."""
    from unittest.mock import patch

    for scene, neighbours, mapper in product(("fountain", "entry"), (4, 8, 16, 32), MAPPERS):
        by = partial(refine_positions, neighbours=neighbours)
        with patch("stiefelsync.io.colmap.positions.refine_positions", by):
            figures = run(data, Cell(scene, "grid8", "sync", mapper, 0))
        print(scene, mapper, f"{neighbours} neighbours: {figures['auc1']:.3f}", flush=True)


def main() -> None:
    """Run the cells that are missing, or print what is there."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--records", type=Path, required=True, help="file of records, one line per cell, added to")
    parser.add_argument("--table", action="store_true", help="print the table instead of running")
    parser.add_argument("--verdicts", action="store_true", help="print for every row whether cleaning does harm")
    parser.add_argument("--plot", type=Path, help="draw the records instead of running")
    parser.add_argument("--two-image-points", action="store_true", help="what points of two images do, instead")
    parser.add_argument("--told-the-truth", action="store_true", help="what knowing the wrong matches does to a grid")
    parser.add_argument("--parts", action="store_true", help="what parts of cleaning do to the global mapper, instead")
    parser.add_argument("--controls", action="store_true", help="print what an oracle does to the global mapper")
    parser.add_argument("--refinements", action="store_true", help="what moving keypoints off a grid does, instead")
    parser.add_argument("--scenes", nargs="+", default=list(SCENES), choices=list(SCENES))
    parser.add_argument("--databases", nargs="+", default=list(DATABASES), choices=list(DATABASES))
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES), metavar="RECIPE")
    parser.add_argument("--mappers", nargs="+", default=list(MAPPERS), choices=MAPPERS)
    parser.add_argument("--draws", nargs="+", type=int, default=list(DRAWS))
    chosen = parser.parse_args()
    known = load(chosen.records)
    if chosen.table:
        print("\n".join(table(known, list(RECIPES))))
    if chosen.verdicts:
        print("\n".join(verdicts(known)))
    if chosen.controls:
        print("\n".join(controls(known)))
    if chosen.plot is not None:
        plot(known, chosen.plot)
    if chosen.table or chosen.verdicts or chosen.controls or chosen.plot is not None:
        return
    data = Path(os.environ["STIEFELSYNC_DATA"])
    for asked, answer in (
        (chosen.two_image_points, two_image_points),
        (chosen.told_the_truth, told_the_truth),
        (chosen.parts, parts_of_cleaning),
        (chosen.refinements, refinements),
    ):
        if asked:
            answer(data)
            return
    for cell in cells(chosen):
        if cell not in known:
            known[cell] = run(data, cell)
            with chosen.records.open("a") as file:
                file.write(json.dumps({"cell": asdict(cell), "figures": known[cell]}) + "\n")
            print(*asdict(cell).values(), *(f"{known[cell][name]:.3f}" for name in ("auc1", "recall")), flush=True)


if __name__ == "__main__":
    main()
