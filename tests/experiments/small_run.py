"""A small experiment for the tests, also as a program: python small_run.py RECORDS WORKERS."""

from __future__ import annotations

import sys
from pathlib import Path

from stiefelsync.experiments.records import Store
from stiefelsync.experiments.runner import run
from stiefelsync.experiments.tasks import Task

PROBLEM = {"data": "synthetic", "d": 20, "k": 25, "rho": 0.7, "sigma": 0.5}
METHODS = ("sparse-stiefel", "nmfsync", "accurate", "matcheig")
TASKS = [Task(PROBLEM, method, seed) for seed in range(3) for method in METHODS]


if __name__ == "__main__":
    run(TASKS, Store(Path(sys.argv[1])), workers=int(sys.argv[2]))
