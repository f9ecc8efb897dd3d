"""Sceaux: what COLMAP's mapper makes of the verified matches before and after `tracks`.

``STIEFELSYNC_DATA=../shared/data python -m benchmarks.sceaux`` needs the extra `colmap`; half a minute for each row of
the sensitivity table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stiefelsync import io, synchronise
from stiefelsync.matching.graph import conflicts


class Model(NamedTuple):
    """A reconstruction: its registered images, its points, their mean track length, and images seeing a point."""

    images: int
    points: int
    length: float
    views: float


def reconstruct(database: Path, images: Path, seed: int) -> Model:
    """Run COLMAP's incremental mapper with one thread, which makes it repeatable, on a copy of the database."""
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.FATAL.value
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "database.db"
        shutil.copyfile(database, copy)  # opening a database with pycolmap rewrites it
        options = pycolmap.IncrementalPipelineOptions(random_seed=seed, num_threads=1)
        found = pycolmap.incremental_mapping(copy, images, folder, options)
        best = max(found.values(), key=lambda model: model.num_reg_images())
        tracks = [[element.image_id for element in point.track.elements] for point in best.points3D.values()]
    views = np.mean([len(set(track)) for track in tracks])
    return Model(best.num_reg_images(), len(tracks), float(np.mean([len(track) for track in tracks])), float(views))


def medians(models: list[Model]) -> Model:
    """Return the median of each figure."""
    images, points, length, views = np.median(models, axis=0)
    return Model(int(images), int(points), length, views)


def clean(original: Path, path: Path, **options: Any) -> Path:
    """Write what `tracks` keeps of a database."""
    io.write(synchronise(io.read(original), method="tracks", **options), path, like=original)
    return path


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sensitivity", action="store_true", help="several distances of copies and mapper seeds")
    several = parser.parse_args().sensitivity
    folder = Path(os.environ["STIEFELSYNC_DATA"]) / "sceaux"
    print("| matches | mapper seed | kept | conflicts | images | points | mean track length | images of a track |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as temporary:
        databases = {"original": folder / "database.db"}
        for copies in (0, 0.0005, 0.001, 0.0015, 0.002, 0.004) if several else (0.001,):
            path = Path(temporary) / f"{copies}.db"
            databases[f"tracks, copies={copies:g}"] = clean(folder / "database.db", path, copies=copies)
        for name, database in databases.items():
            matches = io.read(database)
            for seed in range(4 if several else 1):
                model = reconstruct(database, folder / "images", seed)
                print(
                    f"| {name} | {seed} | {matches.n_matches:,} | {conflicts(matches).count} | {model.images} "
                    f"| {model.points:,} | {model.length:.4f} | {model.views:.4f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
