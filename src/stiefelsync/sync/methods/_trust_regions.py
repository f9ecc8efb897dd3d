"""Trust regions on O(d) for the secondary objective, by pymanopt (extra `rivals`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import MissingExtraError
from stiefelsync.stiefel.orthonormal import orthonormalise
from stiefelsync.stiefel.result import Status
from stiefelsync.stiefel.secondary import gradient_matrix
from stiefelsync.sync.methods._eigen import signs

__all__ = ["rotate_by_trust_regions"]


def rotate_by_trust_regions(
    V: NDArray[Any], *, rng: np.random.Generator, p: int = 3, max_iter: int = 500
) -> tuple[NDArray[Any], int, Status]:
    """Maximise g(VQ) = Σ (VQ)_ij^p over orthogonal Q by the Riemannian trust-region method (Absil et al. 2007).

    Gradient and Hessian are analytic: ``p Vᵀ (VQ).^(p−1)`` and ``D ↦ p(p−1) Vᵀ ((VQ).^(p−2) ∘
    VD)``. The start is random, because eigenvectors themselves may be a saddle of g, with every
    column's sign such that its powers sum to a positive number. The end is a gradient below 1e-6,
    or below √eps of V's type, where g has all its digits. Products with V are of its type,
    pymanopt's own, d×d, float64. Its special orthogonal group serves for O(d): its steps never
    leave the component of the start, and swapping two columns, which leaves g alone, leads from one
    component to the other.

    Parameters
    ----------
    V : (m, d)
        Orthonormal columns, float32 or float64.

    Returns
    -------
    U : (m, d)
        V Q, of V's type.
    n_iter, status

    Notes
    -----
    O(m·d²) per inner iteration, of which an outer one takes at most d(d−1)/2.

    Examples
    --------
    >>> c, s = np.cos(0.5), np.sin(0.5)
    >>> U, n_iter, status = rotate_by_trust_regions(
    ...     np.array([[c, -s], [s, c], [0.0, 0.0]]), rng=np.random.default_rng(0)
    ... )
    >>> round(float((U**3).sum()), 6), str(status)
    (2.0, 'converged')
    """
    try:
        import pymanopt
        from pymanopt.manifolds import SpecialOrthogonalGroup
        from pymanopt.optimizers import TrustRegions
    except ImportError as error:
        raise MissingExtraError("the trust-region method", "pymanopt", "rivals") from error
    d = V.shape[1]
    if d < 2:
        return V * signs(V.sum(axis=0)), 0, Status.CONVERGED
    eps = float(np.finfo(V.dtype).eps)
    grad_tol = max(1e-6, eps**0.5)  # float32 need not get below 1e-6; at d = 700 it did not
    manifold = SpecialOrthogonalGroup(d)

    def turn(Q: Any) -> Any:
        return V @ Q.astype(V.dtype, copy=False)

    start = orthonormalise(rng.standard_normal((d, d)))[0]
    start *= signs((turn(start) ** p).sum(axis=0))
    h = gradient_matrix(turn(start), p)
    if np.linalg.norm(h - h.T) * p < grad_tol:
        return turn(start), 0, Status.CONVERGED  # pymanopt divides by a zero gradient

    cost, gradient, hessian = map(pymanopt.function.numpy(manifold), _minus_g(V, p, turn))
    problem = pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    optimiser = TrustRegions(
        max_iterations=max_iter, min_gradient_norm=grad_tol, max_time=np.inf, verbosity=0,
        # Pymanopt's 1000 are units of float64's last digit.
        rho_regularization=1e3 * eps / np.finfo(float).eps,
    )  # fmt: skip
    found = optimiser.run(problem, initial_point=start)
    done = "grad" in found.stopping_criterion
    status = Status.CONVERGED if done else Status.MAX_ITER
    return turn(found.point), int(found.iterations), status


def _minus_g(V: NDArray[Any], p: int, turn: Callable[[Any], Any]) -> tuple[Callable[..., Any], ...]:
    """Return −g(VQ), its gradient and its Hessian, as functions of Q (and of a direction D)."""

    def cost(Q: Any) -> Any:
        return -np.sum(turn(Q) ** p)

    def gradient(Q: Any) -> Any:
        return -p * (V.T @ turn(Q) ** (p - 1))

    def hessian(Q: Any, D: Any) -> Any:
        return -p * (p - 1) * (V.T @ (turn(Q) ** (p - 2) * turn(D)))

    return cost, gradient, hessian
