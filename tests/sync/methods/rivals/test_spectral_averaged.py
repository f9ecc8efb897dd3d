"""Averaging the rotation over all objects must beat trusting one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stiefelsync.datasets import house, synthetic
from stiefelsync.matching.metrics import objective, score
from stiefelsync.sync.methods.rivals import spectral, spectral_averaged


@pytest.mark.data
@pytest.mark.parametrize("k", [20, 40])
def test_beats_the_single_reference_on_house(data_dir: Path, k: int) -> None:
    matchings, truth = house(k, path=data_dir)
    single, averaged = (
        method.run(matchings, 30, rng=np.random.default_rng(0)).labels for method in (spectral, spectral_averaged)
    )
    assert objective(averaged, matchings) > objective(single, matchings)
    assert score(averaged, truth).fscore > score(single, truth).fscore + 0.01


def test_a_bad_reference_object_is_averaged_out() -> None:
    scores = {spectral: [], spectral_averaged: []}
    for seed in range(5):
        matchings, truth = synthetic(12, 15, 1.0, 0.7, rng=seed)
        for method, reached in scores.items():
            reached.append(score(method.run(matchings, 12, rng=np.random.default_rng(0)).labels, truth).fscore)
    assert np.mean(scores[spectral_averaged]) > np.mean(scores[spectral]) + 0.02
