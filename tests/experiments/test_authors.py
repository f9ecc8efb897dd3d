"""The published method on the house sequence against the authors' own program."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from stiefelsync.experiments.house import AUTHORS
from stiefelsync.experiments.tasks import Task, measure

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def reference(reference_dir: Path) -> dict[int, float]:
    found = defaultdict(list)
    with (reference_dir / "house_authors_code_seeds.csv").open() as file:
        for row in csv.DictReader(file):
            found[int(row["k"])].append(float(row["fscore"]))
    return {k: float(np.mean(fscores)) for k, fscores in found.items()}


def test_the_means_in_the_source_are_the_reference(reference: dict[int, float]) -> None:
    assert pytest.approx(reference, abs=1e-4) == AUTHORS


@pytest.mark.parametrize("k", [20, 60, 111])
def test_mean_fscore_agrees(k: int, reference: dict[int, float], data_dir: Path) -> None:
    fscores = [
        measure(Task({"data": "house", "k": k}, "sparse-stiefel", seed))["result"]["fscore"] for seed in range(20)
    ]
    assert np.mean(fscores) == pytest.approx(reference[k], abs=0.015)
