"""How far rounding may move a number: one table for all tests, derived from precision and size, not from a machine.

The textbook bound for a product, a factorisation or an eigenvalue of an n × n matrix A is ``c · n · eps · ‖A‖`` with a
small constant c, in any order of summation, that is, on any processor, with any BLAS and any number of threads. A
tolerance that follows from something else (the `tol` of an iteration, digits that a paper prints) stands in its test.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# c of the bound. One orthonormalisation is two Gram matrices, a Cholesky factor and two products.
FACTORS = {
    "product": 1,  # one matrix product
    "factorisation": 4,  # QR, polar, a few products in a row
    "eigenvalue": 4,  # of a symmetric matrix, by any backward stable method
    "iteration": 100,  # an iteration of tens of steps, each as exact as a factorisation
}


def rounding(n: int, kind: str = "factorisation", dtype: Any = np.float64) -> float:
    """Return c · n · eps, to be multiplied by the norm of what is computed unless that is about 1."""
    return float(FACTORS[kind] * n * np.finfo(dtype).eps)
