"""What COLMAP's mapper makes of verified matches before and after `tracks`.

``STIEFELSYNC_DATA=../shared/data python -m benchmarks.reconstruction`` needs the extra `colmap`. A row takes some ten
seconds; ``--sensitivity`` has 24.
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


def reconstruct(database: Path, seed: int) -> Model:
    """Run COLMAP's incremental mapper with one thread, which makes it repeatable, on a copy of the database."""
    import pycolmap

    pycolmap.logging.minloglevel = pycolmap.logging.Level.FATAL.value
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "database.db"
        shutil.copyfile(database, copy)  # opening a database with pycolmap rewrites it
        options = pycolmap.IncrementalPipelineOptions(random_seed=seed, num_threads=1, extract_colors=False)
        found = pycolmap.incremental_mapping(copy, folder, folder, options)  # without colours no images are read
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


def row(name: str, database: Path, seed: int) -> None:
    """Print what a database holds and what becomes of it."""
    matches, model = io.read(database), reconstruct(database, seed)
    print(
        f"| {name} | {seed} | {matches.n_matches:,} | {conflicts(matches).count} | {model.images} | {model.points:,} "
        f"| {model.length:.4f} | {model.views:.4f} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sensitivity", action="store_true", help="Sceaux by distances of copies and mapper seeds")
    several = parser.parse_args().sensitivity
    print("| matches | mapper seed | kept | conflicts | images | points | mean track length | images of a track |")
    print("|---|---|---|---|---|---|---|---|")
    for data in ("sceaux",) if several else ("sceaux", "herz-jesu-p8"):
        original = Path(os.environ["STIEFELSYNC_DATA"]) / data / "database.db"
        with tempfile.TemporaryDirectory() as folder:
            databases = {f"{data}, original": original}
            for copies in (0, 0.0005, 0.001, 0.0015, 0.002) if several else (0, 0.001):
                path = clean(original, Path(folder) / f"{copies}.db", copies=copies)
                databases[f"{data}, copies={copies:g}"] = path
            for name, database in databases.items():
                for seed in range(4 if several else 1):
                    row(name, database, seed)


if __name__ == "__main__":
    main()
