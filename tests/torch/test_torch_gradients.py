"""Gradients: against finite differences, against unrolling, finite everywhere, in little memory."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason='PyTorch is not installed; run: pip install "stiefelsync[torch]"')
layer = pytest.importorskip("stiefelsync.torch")

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
ROTATIONS = 60  # enough for every problem here to settle to rounding


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def with_spectrum(*values, seed=0):
    Q = torch.linalg.qr(normal(len(values), len(values), seed=seed))[0]
    return (Q * torch.tensor(values, dtype=torch.float64)) @ Q.mT


SPECTRA = {
    "apart": (3.0, 2.5, 2.0, 1.0, 0.5, -1.0),
    "leading equal": (2.0, 2.0, 2.0, 1.0, 0.5, -1.0),
    "two values": (2.0, 2.0, 2.0, 0.0, 0.0, 0.0),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_projector_losses(name):
    W, C = with_spectrum(*SPECTRA[name]).requires_grad_(), normal(6, 6, seed=1)

    def loss(W):
        U = layer.two_stage(W, 3, rotation_iter=5)
        P = U @ U.mT
        return (C * P).sum() + (P**3).sum()

    assert gradcheck(loss, W)
    assert gradgradcheck(loss, W)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("p", [3, 4])
def test_the_sparse_basis_itself(name, p):
    W = with_spectrum(*SPECTRA[name])
    U0 = layer.two_stage(W, 3, p=p, rotation_iter=ROTATIONS)

    def basis(W):
        return layer.two_stage(W, 3, p=p, U0=U0, rotation_iter=ROTATIONS)

    assert gradcheck(basis, W.requires_grad_())
    if p == 3 and name == "leading equal":
        assert gradgradcheck(basis, W)


def test_rotate_and_batches():
    V = torch.linalg.qr(normal(2, 6, 2, seed=4))[0].requires_grad_()
    C = normal(2, 6, 2, seed=5)
    # Finite differences leave the manifold, so V is made orthonormal inside.
    assert gradcheck(lambda V: (C * layer.rotate(torch.linalg.qr(V)[0], tol=1e-14)).sum(), V, eps=1e-4, atol=1e-4)


def test_gradients_of_sparse_matrices_are_those_of_dense_ones_where_entries_are():
    W, C = with_spectrum(*SPECTRA["apart"]), normal(6, 3, seed=2)
    W = torch.where(W.abs() > 0.2, W, 0.0)
    dense = W.clone().requires_grad_()
    options = {"step": "polar", "tol": 1e-14, "extra_iter": 30, "max_iter": 500}
    (C * layer.sparse_stiefel(dense, 3, **options)).sum().backward()
    sparse = W.to_sparse().requires_grad_()
    (C * layer.sparse_stiefel(sparse, 3, **options)).sum().backward()
    expected = torch.where(W != 0, dense.grad, 0.0)
    assert expected.abs().max() > 1e-3
    torch.testing.assert_close(sparse.grad.to_dense(), expected, atol=1e-8, rtol=1e-6)
    values, where = W.to_sparse().coalesce().values().requires_grad_(), W.to_sparse().indices()

    def loss(values):
        # Second derivatives are not tested: torch's own sparse tensors have none.
        given = torch.sparse_coo_tensor(where, values, W.shape, check_invariants=False)
        U = layer.sparse_stiefel(given, 3, **options)
        return (C @ C.mT * (U @ U.mT)).sum()

    assert gradcheck(loss, values)


def settled(U):
    h = U.mT @ U**2
    return (h - h.mT).abs().max() < 1e-12


@pytest.mark.parametrize("name", SPECTRA)
def test_implicit_and_unrolled_gradients_agree_after_convergence(name):
    W, C = with_spectrum(*SPECTRA[name]), normal(6, 3, seed=2)
    grads = []
    for gradient in ("implicit", "unroll"):
        given = W.clone().requires_grad_()
        U = layer.two_stage(given, 3, gradient=gradient, rotation_iter=ROTATIONS)
        assert settled(U)
        grads.append(torch.autograd.grad((C * U).sum(), given)[0])
    assert grads[0].abs().max() > 1e-2
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("step", ["gradient", "polar", "none"])
def test_algorithm_1_has_the_gradient_of_its_projector(name, step):
    W, C = with_spectrum(*SPECTRA[name]), normal(6, 6, seed=2)
    grads = []
    for gradient in ("implicit", "unroll"):
        given = W.clone().requires_grad_()
        U = layer.sparse_stiefel(given, 3, step=step, tol=1e-14, max_iter=500, extra_iter=20, gradient=gradient)
        grads.append(torch.autograd.grad((C * (U @ U.mT)).sum(), given)[0])
    assert grads[0].abs().max() > 1e-2
    torch.testing.assert_close(*grads, atol=1e-4, rtol=1e-4)


def test_sinkhorn():
    S = normal(2, 3, 5, seed=7).requires_grad_()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    C = normal(2, 3, 5, seed=8)

    def scaled(S):
        return layer.sinkhorn(2 * S, mask, tol=1e-13, max_iter=5000)

    assert gradcheck(scaled, S)
    assert gradgradcheck(lambda S: (C * scaled(S)).sum(), S)
    square = normal(4, 4, seed=9).requires_grad_()
    assert gradcheck(lambda S: layer.sinkhorn(S, tol=1e-13, max_iter=5000), square)


def test_the_whole_layer():
    X = torch.rand(3, 3, 3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    X = 0.3 * X + torch.eye(3, dtype=torch.float64)
    sizes, C = [3, 2, 3], normal(3, 3, 3, seed=1)

    def pairs(X):
        P = layer.synchronise(X, sizes, 3, tau=0.5, rotation_iter=40)
        return layer.pairwise(P)

    def sharp(X):  # Sinkhorn to rounding, which the layer's tolerance is not
        U = layer.universe_basis(X, sizes, 3, rotation_iter=40)
        return layer.sinkhorn(2 * U.unflatten(0, (3, 3)), tol=1e-13, max_iter=5000)

    assert gradcheck(lambda X: (C * sharp(X)).sum(), X.requires_grad_())
    # The layer stops Sinkhorn's iteration at 1e-4, which finite differences see.
    assert gradcheck(lambda X: (C * pairs(X)[0]).sum(), X, eps=1e-3, atol=1e-2)
    assert gradcheck(lambda X: layer.cycle_consistency_loss(X / 2, sizes), X)


KINDS = ("normal", "rank one", "equal pairs", "projector", "identity", "zero", "blocks", "tiny", "huge", "nearly equal")


def random_problems(kind, count, m, seed, dtype):
    A = normal(count, m, m, seed=seed)
    A = A + A.mT
    Q = torch.linalg.qr(A)[0]
    steps = torch.arange(m, dtype=torch.float64)
    of_kind = {
        "normal": lambda: A,
        "rank one": lambda: Q[..., :1] @ Q[..., :1].mT,
        "equal pairs": lambda: (Q * (steps // 2)) @ Q.mT,
        "projector": lambda: Q[..., : m // 2] @ Q[..., : m // 2].mT,
        "identity": lambda: torch.eye(m, dtype=torch.float64).expand(count, m, m),
        "zero": lambda: torch.zeros_like(A),
        "blocks": lambda: torch.ones(m, m, dtype=torch.float64) * (steps[:, None] // 3 == steps // 3) + 0 * A,
        "tiny": lambda: 1e-15 * A,
        "huge": lambda: 1e15 * A,
        "nearly equal": lambda: torch.eye(m, dtype=torch.float64) + 1e-9 * A,
    }
    return of_kind[kind]().to(dtype).clone()


@pytest.mark.filterwarnings("ignore::stiefelsync.errors.ConvergenceWarning")
@settings(max_examples=50)
@given(
    kind=st.sampled_from(KINDS),
    m=st.integers(4, 9),
    d=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_no_gradient_is_ever_other_than_finite(kind, m, d, seed, dtype):
    # 50 examples of 200 problems each: 10,000 problems, most of them with repeated eigenvalues or no gap.
    W = random_problems(kind, 200, m, seed, dtype).requires_grad_()
    U = layer.sparse_stiefel(W, d, max_iter=20)
    V = layer.two_stage(W, d, max_iter=20)
    C = normal(m, d, seed=seed, dtype=dtype)
    loss = (C * U).sum() + (U @ U.mT).pow(3).sum() + (C * V).sum()
    (grad,) = torch.autograd.grad(loss, W)
    assert U.isfinite().all()
    assert V.isfinite().all()
    assert grad.isfinite().all()
    X = W.detach().abs().clamp(max=1)[:, : m // 2 * 2, : m // 2 * 2].requires_grad_()
    P = layer.synchronise(X, [2] * (m // 2), max(d, 2), max_iter=20, sinkhorn_iter=50)
    loss = (P * P).sum() + layer.cycle_consistency_loss(X, [2] * (m // 2)).sum()
    assert P.isfinite().all()
    assert torch.autograd.grad(loss, X)[0].isfinite().all()


def saved_bytes(run):
    """Return the bytes of distinct storages that autograd keeps for the backward pass."""
    kept = {}

    def pack(tensor):
        parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)
        for part in parts:
            storage = part.untyped_storage()
            kept[storage.data_ptr()] = (storage.nbytes(), part)  # held, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    assert result.requires_grad
    return sum(size for size, _ in kept.values())


@pytest.mark.filterwarnings("ignore::stiefelsync.errors.ConvergenceWarning")
def test_memory_of_the_implicit_gradient_does_not_grow_with_the_iterations():
    m, d, k = 400, 5, 3
    rows = torch.arange(m).repeat_interleave(k)
    cols = (rows * 7 + torch.arange(k).repeat(m) * 13) % m
    values = torch.rand(m * k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    W = torch.sparse_coo_tensor(torch.stack([rows, cols]), values, (m, m), check_invariants=False).coalesce()

    def kept(iterations, gradient):
        given = W.clone().requires_grad_()
        return saved_bytes(
            lambda: layer.sparse_stiefel(given, d, step="polar", tol=1e-300, max_iter=iterations, gradient=gradient)
        )

    few, many = kept(5, "implicit"), kept(80, "implicit")
    assert few == many
    # A few arrays of m·d numbers, and the matrix with its pattern: never m² (1.28 MB) of them.
    assert many < 8 * (10 * m * d + 20 * W._nnz())
    assert math.prod(W.shape) * 8 > 2 * many
    assert kept(80, "unroll") > 10 * many
