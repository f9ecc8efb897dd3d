"""What options may be, at the border of what is allowed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from stiefelsync.errors import InputError
from stiefelsync.stiefel.checks import check_count, check_power, check_tolerance, generator, is_count, is_integer


@pytest.mark.parametrize("value", [1, 7, np.int8(3), np.uint64(2**40)])
def test_whole_numbers(value):
    assert is_integer(value)
    assert is_count(value)
    assert (check_count("n", value), type(check_count("n", value))) == (int(value), int)


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, np.float64(2), np.bool_(True), [1]])
def test_what_is_no_whole_number(value):
    assert not is_count(value)
    with pytest.raises(InputError, match="n must be a whole number of at least 1, got"):
        check_count("n", value)


def test_least_values():
    assert is_integer(0)
    assert not is_count(0)
    assert check_count("n", 0, 0) == 0
    with pytest.raises(InputError, match="n must be a whole number of at least 0, got -1"):
        check_count("n", -1, 0)
    assert check_power(3) == 3
    with pytest.raises(InputError, match="p must be a whole number of at least 3, got 2"):
        check_power(2)


def test_tolerances_are_positive_numbers():
    for value in (1e-300, 1, Fraction(1, 4), np.float32(0.5)):
        assert (check_tolerance(value), type(check_tolerance(value))) == (float(value), float)
    for value in (0, -1e-9, float("nan"), True, "1e-3", None, 1j):
        with pytest.raises(InputError, match="tol must be a positive number, got"):
            check_tolerance(value)


def test_seeds_and_generators():
    own = np.random.default_rng(4)
    assert generator(own) is own
    assert generator(0).random() == generator(0).random() != generator(1).random()
    assert generator(None).random() != generator(None).random()
    for value in (-1, 1.5, "seed"):
        with pytest.raises(InputError, match="rng must be a seed"):
            generator(value)
