"""Tracks in groups against the whole at once: ``python -m benchmarks.groups [--group 50]``.

``datasets.scene(20_000, 200, 1_000, 2_000, wrong, missing=0.3)``, 200,000 keypoints: fscore of both, and whether the
labels of the groups are the same in this process and on local Dask clusters of 1, 2 and 4 workers.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from stiefelsync import datasets, distributed, score, synchronise
from stiefelsync.distributed.cluster import cluster

WORKERS, WRONG, MOST_LOSS = (1, 2, 4), (0.1, 0.3, 0.5), 0.002


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", type=int, default=50)
    group = parser.parse_args().group
    scenes = {wrong: datasets.scene(20_000, 200, 1_000, 2_000, wrong=wrong, missing=0.3, rng=1) for wrong in WRONG}
    here = {wrong: distributed.synchronise(problem, group=group).labels for wrong, (problem, _) in scenes.items()}
    same = dict.fromkeys(WRONG, 0)
    for workers in WORKERS:
        with cluster(workers=workers) as client:
            for wrong, (problem, _) in scenes.items():
                there = distributed.synchronise(problem, group=group, client=client)
                same[wrong] += np.array_equal(there.labels, here[wrong])
    print("| wrong | whole | groups | equal labels on 1, 2, 4 workers |\n|---|---|---|---|")
    met = True
    for wrong, (problem, truth) in scenes.items():
        whole = score(synchronise(problem, method="tracks").labels, truth).fscore
        found = score(here[wrong], truth).fscore
        print(f"| {wrong:.0%} | {whole:.4f} | {found:.4f} | {same[wrong]} of {len(WORKERS)} |", flush=True)
        met &= found >= whole - MOST_LOSS and same[wrong] == len(WORKERS)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
