"""Calls of the compiled library: what it is told, and what becomes of it without one or without memory."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.matching import kernels


def test_numbers_and_arrays_arrive_as_they_are(monkeypatch):
    told = []
    monkeypatch.setattr(kernels, "library", lambda: SimpleNamespace(tell=lambda *given: told.extend(given) or 0))
    array = np.arange(3.0)
    assert kernels.call("tell", 2**40, 0.5, array, None)
    assert [type(one) for one in told] == [ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_void_p]
    assert [one.value for one in told] == [2**40, 0.5, array.ctypes.data, None]
    with pytest.raises(AssertionError):
        kernels.call("tell", array[::2])


def test_a_kernel_without_memory_says_so(monkeypatch):
    monkeypatch.setattr(kernels, "library", lambda: SimpleNamespace(order_points=lambda: -1))
    with pytest.raises(MemoryError, match="no memory for order points"):
        kernels.call("order_points")


def test_matches_that_agree_are_the_same_with_kernels_and_without(monkeypatch):
    problem, truth = datasets.synthetic(20, 8, 0.7, 0.4, rng=3)
    labels = np.where(np.random.default_rng(0).random(len(truth)) < 0.2, -1, truth)
    found = problem.agreeing(labels)
    a, b = labels[problem.endpoints].T
    assert found.tolist() == [x == y >= 0 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    monkeypatch.setenv("STIEFELSYNC_COMPILED", "0")
    assert not kernels.call("find_agreeing")
    assert np.array_equal(problem.agreeing(labels), found)
    assert 0 < found.sum() < len(found)
