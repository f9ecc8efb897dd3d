"""How well wrong matches and bad pairs of images are estimated, by true cameras: ``python -m benchmarks.doubts``.

For every database of three scenes the table has the share of wrong matches among those that tracks keep without doubts,
estimated and true; the root mean square difference between the estimated and the true share of wrong matches of a pair
of images; and, for several values of the option `doubt`, how many wrong and true matches doubts remove, and the fscore.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.herz_jesu import load
from benchmarks.pose_databases import SCENES, make
from benchmarks.poses import RAW, VERIFIED, larger_side
from benchmarks.true_cameras import cameras, true_matches
from stiefelsync import Matchings, io, synchronise
from stiefelsync.positions.doubt import doubt
from stiefelsync.positions.neighbours import fitting_support, neighbour_support

HARMS = (0.0, 1.0, 1.5, 2.0, 3.0)
DATABASES = ("verified", "raw", "rewired20", "ratio95")

Bools = NDArray[np.bool_]


def problems(data: Path) -> Iterator[tuple[str, Matchings, Bools]]:
    """Yield the name of a problem, the problem, and which matches are true."""
    for scene in ("entry", "fountain"):
        for database in DATABASES:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "database.db"
                make(data, scene, database, path)
                problem, side = io.read(path, source=VERIFIED), larger_side(path)
            yield f"{scene} | {database}", problem, true_matches(problem, cameras(data / SCENES[scene], side), side)
    for name, source in (("verified", VERIFIED), ("raw", RAW)):
        yield f"Herz-Jesu | {name}", *load(data / "herz-jesu-p8", source)


def row(problem: Matchings, true: Bools) -> list[str]:
    """Return the figures of one problem."""
    pair, n = problem.match_pairs, len(problem.pair_objects)
    keeps = {harm: problem.agreeing(synchronise(problem, method="tracks", doubt=harm).labels) for harm in HARMS}
    first = keeps[0.0]
    found = doubt(problem, first, fitting_support(problem, first, neighbour_support(problem)))
    share = np.bincount(pair, ~true, n) / np.maximum(np.bincount(pair, minlength=n), 1)
    error = float(np.sqrt(np.mean((found.wrong - share) ** 2)))
    left = (1 - 1 / (1 + found.odds[first])).mean()
    cells = [f"{left:.4f}, {(~true[first]).mean():.4f}", f"{error:.3f}"]
    for harm, keep in keeps.items():
        fscore = 2 * (keep & true).sum() / (keep.sum() + true.sum())
        lost = first & ~keep
        cells.append((f"{(lost & ~true).sum()}, {(lost & true).sum()}: " if harm else "") + f"{fscore:.4f}")
    return cells


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0]).parse_args()
    print("| scene | database | wrong of those kept: estimated, true | error of pairs' shares | no doubts: fscore | "
          + " | ".join(f"doubt={harm:g}" for harm in HARMS[1:]) + " |")  # fmt: skip
    print("|" + "---|" * (5 + len(HARMS) - 1))
    for name, problem, true in problems(Path(os.environ["STIEFELSYNC_DATA"])):
        print(f"| {name} | " + " | ".join(row(problem, true)) + " |", flush=True)


if __name__ == "__main__":
    main()
