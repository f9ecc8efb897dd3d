"""Print problem, method, a digest of the labels and processor seconds, for several problems and methods."""

from __future__ import annotations

import hashlib
import time

import numpy as np

from stiefelsync import datasets, synchronise
from stiefelsync.datasets.shapes import SHAPES

PROBLEMS = {
    "partial": lambda: datasets.synthetic(25, 30, 0.6, 0.6, rng=1),
    "full": lambda: datasets.synthetic(20, 20, 1.0, 0.7, rng=2),
    "few": lambda: datasets.synthetic(25, 5, 0.6, 0.5, rng=3),
    "scene": lambda: datasets.scene(2000, 60, 100, 200, wrong=0.2, missing=0.3, rng=5),
    "ring": lambda: SHAPES["ring"](rng=6),
    "weighted": lambda: SHAPES["weighted"](rng=7),
}

for name, make in PROBLEMS.items():
    problem, _ = make()
    for method in ("accurate", "fast", "tracks"):
        if name == "scene" and method != "tracks":
            continue  # its universe is too large for the others
        seconds = []
        for _ in range(3):
            start = time.process_time()
            labels = synchronise(problem, method=method, rng=0).labels
            seconds.append(time.process_time() - start)
        digest = hashlib.sha256(np.ascontiguousarray(labels, "<i8").tobytes()).hexdigest()[:16]
        print(name, method, digest, f"{min(seconds):.3f}", sep="\t", flush=True)
