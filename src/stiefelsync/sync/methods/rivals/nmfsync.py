"""NmfSync (Bernard, Thunberg, Goncalves and Theobalt 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.orthonormal import polar
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.method import Callback, Outcome, Progress, Stopwatch, register
from stiefelsync.sync.methods._eigen import eigenpairs, pad_columns, signs
from stiefelsync.sync.options import dtype_option, option
from stiefelsync.sync.rounding import project

__all__ = ["factorise", "rotate_blocks", "run"]

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Options:
    """Options of nmfsync."""

    threshold: float = option(0.0, "Points whose score does not exceed it stay unmatched.")
    max_iter: int = option(100, "Most rounds of the factorisation.", least=1)
    tol: float = option(1e-4, "Change of the factors or of the error below which the factorisation ends.", above=0)
    dtype: DTypeLike = dtype_option()


@register(
    "nmfsync",
    summary="spectral start, block rotation, non-negative factorisation",
    consistent=True,
    cost="one eigendecomposition, then O(nnz·d + m·d²) per round",
    reference="Bernard, Thunberg, Goncalves, Theobalt: Synchronisation of partial multi-matchings via non-negative"
    " factorisations, Pattern Recognition 2019",
    choose="for partial matchings when a non-negative, prunable score per point is wanted",
    options=Options,
)
def run(
    matchings: Matchings,
    universe: int,
    options: Options,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Factorise ``W ≈ UUᵀ`` with U non-negative, starting from the rotated eigenvectors, and project U.

    Stages: ``V = V_d Λ^½``; successive block rotation (`rotate_blocks`); clip at 0; multiplicative
    factorisation ``W ≈ W₁H`` from ``(V, Vᵀ)``; columns of W₁ scaled by the square root of their
    length; block rotation again; linear assignment per object.

    Notes
    -----
    Cycle-consistent. W is only ever multiplied, never made dense beyond 500 points.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 1, 0]
    """
    watch = Stopwatch()
    W, offsets = matchings.to_matrix(options.dtype), matchings.offsets
    with watch("eigenvectors"):
        V, values = eigenpairs(W, universe, rng=rng)
        V = pad_columns(V * np.sqrt(np.maximum(values, 0)) * signs(V.sum(axis=0)), universe)
    with watch("rotation"):
        V = np.maximum(rotate_blocks(V, offsets), 0)
    with watch("factorisation"):
        U, n_iter, status = factorise(W, V, max_iter=options.max_iter, tol=options.tol, callback=callback)
    with watch("rotation"):
        U = rotate_blocks(U, offsets)
    with watch("projection"):
        labels = project(U, matchings.sizes)
        labels[U[np.arange(len(U)), labels] <= options.threshold] = -1
    return Outcome(labels=labels, U=U, status=status, n_iter=n_iter, timings=watch.seconds)


def rotate_blocks(V: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Rotate V, shape (m, d), so that the rows of a few objects lie near unit vectors: successive block rotation.

    The largest object's rows are aligned with the first unit vectors (orthogonal Procrustes). A row
    is then explained when its largest entry in the filled columns reaches half the median of the
    aligned entries. The object with most unexplained rows joins the targets, these rows with the
    next free columns, its explained ones with the column of their largest entry, and so on until
    all d columns are filled or every row is explained.

    Notes
    -----
    O(m·d²) per object that joins, at most d of them.

    Examples
    --------
    >>> V = np.array([[0.6, 0.8], [-0.8, 0.6]])
    >>> float(abs(rotate_blocks(V, np.array([0, 2])) - np.eye(2)).max()) < 1e-12
    True
    """
    sizes, d = np.diff(offsets), V.shape[1]
    if not len(V):
        return V
    owner = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.empty(0, dtype=np.int64)
    columns = np.empty(0, dtype=np.int64)
    used = np.zeros(len(sizes), dtype=bool)
    filled, rotated = 0, V
    explained, nearest = np.zeros(len(V), dtype=bool), np.zeros(len(V), dtype=np.int64)
    while filled < d:
        missing = np.bincount(owner[~explained], minlength=len(sizes))
        missing[used] = 0
        i = int(missing.argmax())
        if not missing[i]:
            break
        used[i] = True
        block = np.arange(offsets[i], offsets[i + 1])
        new = block[~explained[block]][: d - filled]
        old = block[explained[block]]
        rows = np.concatenate([rows, new, old])
        columns = np.concatenate([columns, filled + np.arange(len(new)), nearest[old]])
        filled += len(new)
        rotated = V @ polar(V[rows].T @ np.eye(d, dtype=V.dtype)[columns])
        enough = np.median(rotated[rows, columns]) / 2
        nearest = rotated[:, :filled].argmax(axis=1)
        explained = rotated[np.arange(len(V)), nearest] >= enough
    return rotated


def factorise(
    W: Any, U: Floats, *, max_iter: int, tol: float, callback: Callback | None = None
) -> tuple[Floats, int, Status]:
    """Improve ``W ≈ UUᵀ``, U ≥ 0 of shape (m, d), by multiplicative updates of both factors.

    Rounds ``H ← H ∘ (UᵀW) / (UᵀU H)``, ``U ← U ∘ (WHᵀ) / (U HHᵀ)`` (Lee and Seung 2001) until
    neither factor changes by more than `tol` relative to its largest entry, or the root mean square
    error falls by at most `tol`.

    Returns
    -------
    U : (m, d)
        First factor times the row lengths of H, columns divided by the square root of their length.
    n_iter, status

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> U, n_iter, status = factorise(csr_array(np.ones((2, 2))), np.ones((2, 1)), max_iter=9, tol=1e-4)
    >>> U.ravel().round(6).tolist(), str(status)
    ([1.0, 1.0], 'converged')
    """
    m, tiny, error = len(U), np.sqrt(np.finfo(float).eps), np.inf
    norm = float(np.vdot(W.data, W.data))
    H = U.copy()  # transposed: (m, d)
    n_iter, status = 0, Status.MAX_ITER
    for n_iter in range(1, max_iter + 1):
        U_old, H_old, error_old = U, H, error
        product = W @ U
        H = H * (product / (H @ (U.T @ U) + np.spacing(product)))
        product, gram = W @ H, H.T @ H
        U = U * (product / (U @ gram + np.spacing(product)))
        square = norm - 2 * float(np.vdot(U, product)) + float(np.vdot(U.T @ U, gram))
        error = max(square, 0.0) ** 0.5 / max(m, 1)
        change = max(
            abs(new - old).max(initial=0) / (tiny + abs(old).max(initial=0)) for new, old in ((U, U_old), (H, H_old))
        )
        if n_iter > 1 and (change <= tol or error_old - error <= tol * max(1.0, error_old)):
            status = Status.CONVERGED
            break
        if callback is not None and callback(Progress("factorisation", n_iter, max_iter)):
            status = Status.STOPPED
            break
    U = U * np.linalg.norm(H, axis=0)
    length = np.sqrt(np.linalg.norm(U, axis=0))
    return U / np.where(length > 0, length, 1), n_iter, status
