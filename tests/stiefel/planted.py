"""Problems with known answers for the solver's tests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]


def spectrum(values: Array, rng: np.random.Generator) -> Array:
    """A dense symmetric matrix with the given eigenvalues and random eigenvectors."""
    Q, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    W = (Q * values) @ Q.T
    return (W + W.T) / 2


def clusters(d: int, copies: int, rng: np.random.Generator, noise: float = 0.0) -> Array:
    """The matching matrix of `copies` shuffled objects of d points: d equal eigenvalues, a sparse basis; plus noise."""
    labels = np.concatenate([rng.permutation(d) for _ in range(copies)])
    W = (labels[:, None] == labels).astype(float)
    E = rng.standard_normal(W.shape)
    return W + noise * (E + E.T) / 2


def top(W: Array, d: int) -> tuple[Array, Array]:
    """The d largest eigenvalues and their vectors, by the oracle."""
    values, vectors = np.linalg.eigh((W + W.T) / 2)
    return values[::-1][:d], vectors[:, ::-1][:, :d]


def distance(U: Array, V: Array) -> float:
    """‖(I − V Vᵀ) U‖: how far im(U) is from im(V)."""
    return float(np.linalg.norm(U - V @ (V.T @ U)))


def scattered(m: int, density: float, rng: np.random.Generator) -> sparse.csr_array:
    """A sparse matrix with uniform entries in random places; SciPy's own has another keyword before 1.15."""
    row, col = rng.integers(0, m, size=(2, round(density * m * m)))
    W = sparse.coo_array((rng.random(len(row)), (row, col)), shape=(m, m)).tocsr()
    W.sum_duplicates()
    return W
