"""One BLAS thread where matrices are small, and the number there was before afterwards."""

from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  loads its BLAS
from threadpoolctl import ThreadpoolController

from stiefelsync import datasets, synchronise
from stiefelsync.stiefel import threads


@pytest.fixture
def several():
    controller = ThreadpoolController()
    with controller.limit(limits=2, user_api="blas"):
        if blas(controller) != {2}:
            pytest.skip("this BLAS has one thread")
        yield controller


def blas(controller):
    return {library["num_threads"] for library in controller.info() if library["user_api"] == "blas"}


def test_the_number_of_threads_is_lowered_and_restored_by_the_last(several):
    one, two = threads.one_blas_thread(), threads.one_blas_thread()
    one.__enter__()
    two.__enter__()
    assert blas(several) == {1}
    one.__exit__(None, None, None)
    assert blas(several) == {1}
    two.__exit__(None, None, None)
    assert blas(several) == {2}


def test_presets_take_one_thread_for_small_problems(several):
    problem, _ = datasets.synthetic(5, 6, 1.0, 0.2, rng=0)
    seen = []
    synchronise(problem, 5, method="fast", callback=lambda _: seen.append(blas(several)))
    assert seen
    assert all(number == {1} for number in seen)
    assert blas(several) == {2}


@pytest.mark.parametrize(("said", "most"), [("1", 1), ("3", 3), ("2,1", 2), ("", np.inf), ("many", np.inf)])
def test_the_environment_is_respected(monkeypatch, said, most):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert 1 <= threads.workers() <= min(most, os.cpu_count() or 1)
