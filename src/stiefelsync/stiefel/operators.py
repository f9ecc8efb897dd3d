"""One symmetric operator over dense, sparse and matrix-free input, and Lemma 1: symmetrise and shift, never m×m."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from stiefelsync.errors import InputError
from stiefelsync.stiefel.lanczos import extreme_pair
from stiefelsync.stiefel.product import Product, sparse_product

__all__ = ["MatrixLike", "SymmetricOperator", "as_operator"]

MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix | LinearOperator


@dataclass(frozen=True)
class SymmetricOperator:
    """The map U ↦ s·½(W + Wᵀ)U + shift·U, with s = ±1.

    Attributes
    ----------
    size
        m, the number of rows.
    dtype
        float32 or float64, as the input had it.
    product
        The unshifted product of the symmetrised matrix with an (m, c) array.
    matrix
        The symmetrised matrix, dense or sparse, if it is one.

    Examples
    --------
    >>> A = as_operator(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> (A @ np.eye(2)).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    size: int
    dtype: np.dtype[Any]
    product: Product
    sign: int = 1
    shift: float = 0.0
    matrix: Any = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, m)."""
        return self.size, self.size

    def __matmul__(self, U: NDArray[Any]) -> NDArray[Any]:
        out = self.product(np.ascontiguousarray(U, dtype=self.dtype))
        if self.sign < 0:
            np.negative(out, out=out)
        if self.shift:
            out += self.dtype.type(self.shift) * U
        return out

    def __neg__(self) -> SymmetricOperator:
        return replace(self, sign=-self.sign, shift=-self.shift)

    def dense(self) -> NDArray[Any]:
        """Return this operator as a new array, shape (m, m).

        Examples
        --------
        >>> as_operator(np.diag([1.0, 2.0])).shifted(1.0).dense().tolist()
        [[2.0, 0.0], [0.0, 3.0]]
        """
        if self.matrix is None:
            return self @ np.eye(self.size, dtype=self.dtype)
        out: NDArray[Any] = self.matrix.toarray() if sparse.issparse(self.matrix) else self.matrix.copy()
        if self.sign < 0:
            np.negative(out, out=out)
        out[np.diag_indices(self.size)] += self.dtype.type(self.shift)
        return out

    def shifted(self, shift: float) -> SymmetricOperator:
        """Return this operator plus shift·I."""
        return replace(self, shift=self.shift + shift)

    def as_linear_operator(self) -> LinearOperator:
        """Return this operator as SciPy's type."""

        def matvec(x: NDArray[Any]) -> NDArray[Any]:
            return (self @ x.reshape(self.size, -1)).reshape(x.shape)

        return LinearOperator(
            self.shape, matvec=matvec, rmatvec=matvec, matmat=matvec, rmatmat=matvec, dtype=self.dtype
        )

    def positive_shift(self, rng: np.random.Generator) -> float:
        """Return the shift that makes this operator positive semidefinite: max(−λ_min, 0) (Lemma 1).

        The estimate of λ_min is widened by its residual, and never used to shift upwards.

        Examples
        --------
        >>> round(as_operator(np.diag([1.0, -2.0])).positive_shift(np.random.default_rng(0)), 6)
        2.0
        """
        start = rng.standard_normal((self.size, 1)).astype(self.dtype)
        lowest, _, residual = extreme_pair(self.__matmul__, start, largest=False)
        return max(residual - lowest, 0.0)


def as_operator(W: MatrixLike | SymmetricOperator) -> SymmetricOperator:
    """Return ½(W + Wᵀ) as an operator, or say what is wrong with W.

    Parameters
    ----------
    W : (m, m)
        Array, any SciPy sparse matrix or array, or `LinearOperator`; real. float32 stays float32,
        all else becomes float64. An operator that is not symmetric must offer its transpose.

    Notes
    -----
    A product with an (m, c) array costs O(nnz·c). Sparse products run on threads, by chunks of
    rows.

    Examples
    --------
    >>> as_operator(sparse.eye_array(4)).shape
    (4, 4)
    """
    if isinstance(W, SymmetricOperator):
        return W
    if isinstance(W, LinearOperator):
        return _from_linear_operator(W)
    if sparse.issparse(W):
        return _from_sparse(W)
    try:
        return _from_dense(np.asarray(W))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError("W must be a square matrix of numbers; its rows differ in length") from None


def _check(shape: tuple[int, ...], dtype: Any) -> np.dtype[Any]:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(f"W must be a square matrix, got shape {tuple(shape)}")
    if shape[0] == 0:
        raise InputError("W is empty; it needs at least two rows")
    if np.issubdtype(dtype, np.complexfloating):
        raise InputError("W is complex; only real matrices are supported (take .real if the imaginary part is noise)")
    if not (np.issubdtype(dtype, np.number) or np.issubdtype(dtype, np.bool_)):
        raise InputError(f"W must hold numbers, got {dtype}")
    return np.dtype(np.float32) if dtype in (np.float16, np.float32) else np.dtype(np.float64)


def _check_values(values: NDArray[Any]) -> None:
    if not np.isfinite(values).all():
        raise InputError("W holds NaN or infinite entries; remove or replace them first")
    if not values.any():
        raise InputError("W is zero: every U with orthonormal columns is optimal, there is nothing to solve")


def _from_dense(W: NDArray[Any]) -> SymmetricOperator:
    dtype = _check(W.shape, W.dtype)
    W = W.astype(dtype, copy=False)
    _check_values(W)
    if np.array_equal(W, W.T):
        return SymmetricOperator(len(W), dtype, lambda U: W @ U, matrix=W)

    def product(U: NDArray[Any]) -> NDArray[Any]:
        out: NDArray[Any] = W @ U
        out += W.T @ U
        out *= dtype.type(0.5)
        return out

    return SymmetricOperator(len(W), dtype, product)


def _from_sparse(W: Any) -> SymmetricOperator:
    dtype = _check(W.shape, W.dtype)
    csr = sparse.csr_array(W, dtype=dtype)
    csr.sum_duplicates()
    _check_values(csr.data)
    difference = csr - csr.T
    if difference.nnz and abs(difference.data).max() > 0:
        csr = ((csr + csr.T) * dtype.type(0.5)).tocsr()
    return SymmetricOperator(csr.shape[0], dtype, sparse_product(csr), matrix=csr)


def _from_linear_operator(W: LinearOperator) -> SymmetricOperator:
    dtype = _check(W.shape, W.dtype if W.dtype is not None else np.float64)
    m = W.shape[0]
    x, y = np.random.default_rng(0).standard_normal((2, m, 1)).astype(dtype)
    Wx, Wy = W.matmat(x), W.matmat(y)
    _check((m, m), Wx.dtype)  # the operator may not know its type
    _check_values(np.concatenate([Wx, Wy]))
    scale = float(np.linalg.norm(Wx) * np.linalg.norm(y) + np.linalg.norm(Wy) * np.linalg.norm(x))
    if abs(float((y.T @ Wx - x.T @ Wy)[0, 0])) <= 100 * np.finfo(dtype).eps * scale:
        return SymmetricOperator(m, dtype, lambda U: np.array(W.matmat(U), dtype=dtype))
    try:
        W.rmatmat(x)
    except (NotImplementedError, TypeError) as error:
        raise InputError("W is a LinearOperator that is not symmetric and has no rmatvec; define rmatvec") from error
    return SymmetricOperator(m, dtype, lambda U: np.array(W.matmat(U) + W.rmatmat(U), dtype=dtype) * dtype.type(0.5))
