"""The solver in PyTorch gives what the NumPy solver gives, for every kind of input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from stiefelsync import InputError, datasets
from stiefelsync import sparse_stiefel as numpy_sparse_stiefel
from stiefelsync import two_stage as numpy_two_stage
from stiefelsync.stiefel import dominant_subspace

torch = pytest.importorskip("torch", reason='PyTorch is not installed; run: pip install "stiefelsync[torch]"')
layer = pytest.importorskip("stiefelsync.torch")


def problems():
    """Partial problems of different sizes as dense matrices with d."""
    for seed, (d, k, observed, error) in enumerate([(8, 6, 0.7, 0.2), (12, 9, 0.6, 0.4), (6, 12, 0.9, 0.5)]):
        problem, truth = datasets.synthetic(d, k, observed=observed, error=error, rng=seed)
        # Weights, so that no two eigenvalues are equal and every answer is unique.
        W = problem.to_matrix().toarray() * np.random.default_rng(seed).uniform(0.5, 1, size=(len(truth), len(truth)))
        yield W + W.T, len(np.unique(truth))


def test_algorithm_1_agrees_iterate_by_iterate():
    for W, d in problems():
        ours, theirs = [], []
        result = numpy_sparse_stiefel(W, d, rng=3, callback=lambda state, to=theirs: to.append(state.U.copy()))
        U = layer.sparse_stiefel(torch.tensor(W), d, rng=3, callback=lambda U, to=ours: to.append(U.numpy().copy()))
        assert len(ours) == len(theirs) == result.n_iter
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-8)
        np.testing.assert_allclose(U.numpy(), result.U, atol=1e-8)


@pytest.mark.data
def test_house_agrees(data_dir):
    W = datasets.house(20, path=data_dir)[0].to_matrix()
    dense = torch.tensor(W.toarray())
    result = numpy_sparse_stiefel(W, 30, rng=1)
    for given in (dense, dense.to_sparse()):
        np.testing.assert_allclose(layer.sparse_stiefel(given, 30, rng=1).numpy(), result.U, atol=1e-6)
    V = dominant_subspace(W, 30, method="eigh").V
    for given in (dense, dense.to_sparse()):
        U = layer.two_stage(given, 30, U0=torch.tensor(V))
        np.testing.assert_allclose(U.numpy(), numpy_two_stage(W, 30).U, atol=1e-6)


@pytest.mark.filterwarnings("ignore::stiefelsync.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "options", [{}, {"step": "polar"}, {"step": "none"}, {"extra_iter": 7}, {"p": 4}, {"sense": "min"}]
)
def test_options_agree(options):
    W, d = next(problems())
    U0 = np.random.default_rng(5).standard_normal((len(W), d))
    expected = numpy_sparse_stiefel(W, d, U0=U0, rng=0, **options).U
    got = layer.sparse_stiefel(torch.tensor(W), d, U0=torch.tensor(U0), rng=0, **options)
    np.testing.assert_allclose(got.numpy(), expected, atol=1e-6)
    unrolled = layer.sparse_stiefel(torch.tensor(W), d, U0=torch.tensor(U0), rng=0, gradient="unroll", **options)
    np.testing.assert_allclose(unrolled.numpy(), expected, atol=1e-6)


def test_two_stage_agrees_from_the_same_basis():
    for W, d in problems():
        expected = numpy_two_stage(W, d).U
        V = torch.tensor(dominant_subspace(W, d, method="eigh").V)
        for by in ("eigh", "orthogonal-iteration"):
            np.testing.assert_allclose(layer.two_stage(torch.tensor(W), d, U0=V, subspace_by=by), expected, atol=1e-6)


def test_padded_batch_of_different_sizes_agrees_with_each_alone():
    some = [W for W, _ in problems()]
    d, m = 5, max(map(len, some)) + 2
    batch = torch.zeros(2, len(some), m, m, dtype=torch.float64)
    rows = torch.zeros(2, len(some), m, dtype=torch.bool)
    for b, W in enumerate(some):
        batch[:, b, : len(W), : len(W)], rows[:, b, : len(W)] = torch.tensor(W), True
    U, V = layer.sparse_stiefel(batch, d, rows=rows, rng=0), layer.two_stage(batch, d, rows=rows)
    assert U.shape == (2, len(some), m, d)
    for b, W in enumerate(some):
        np.testing.assert_allclose(U[1, b, : len(W)], numpy_sparse_stiefel(W, d, rng=0).U, atol=1e-6)
        np.testing.assert_allclose(V[0, b, : len(W)], layer.two_stage(torch.tensor(W), d), atol=1e-6)
        assert not U[:, b, len(W) :].any()
        assert not V[:, b, len(W) :].any()


def csr(dense):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls CSR a beta feature
        return dense.to_sparse_csr()


def test_dense_coo_and_csr_agree_also_in_batches_and_when_not_symmetric():
    W, d = next(problems())
    generator = torch.Generator().manual_seed(0)
    one = torch.tensor(W) * torch.rand(len(W), len(W), generator=generator, dtype=torch.float64)
    pair = torch.stack([one, torch.tensor(W)])
    for dense, forms in ((one, (one.to_sparse(), csr(one))), (pair, (pair.to_sparse(),))):
        expected = layer.sparse_stiefel(dense, d)
        for given in forms:
            np.testing.assert_allclose(layer.sparse_stiefel(given, d), expected, atol=1e-8)
            np.testing.assert_allclose(
                layer.two_stage(given, d, U0=expected), layer.two_stage(dense, d, U0=expected), atol=1e-6
            )


def test_single_precision_stays_single_and_agrees():
    W, d = next(problems())
    single = layer.two_stage(torch.tensor(W, dtype=torch.float32), d)
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, layer.two_stage(torch.tensor(W), d), atol=1e-4)


def test_rotate_depends_on_the_subspace_alone():
    W, d = next(problems())
    V = torch.tensor(dominant_subspace(W, d, method="eigh").V)
    R = torch.linalg.qr(torch.randn(d, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[0]
    np.testing.assert_allclose(layer.rotate(V @ R), layer.rotate(V), atol=1e-9)
    np.testing.assert_allclose(layer.rotate(V), layer.two_stage(torch.tensor(W), d, subspace_by="eigh"), atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layer.sparse_stiefel(np.eye(3), 1), "W must be a torch.Tensor, got ndarray"),
        (lambda: layer.sparse_stiefel(torch.ones(3, 4), 1), "W must hold square matrices"),
        (lambda: layer.sparse_stiefel(torch.eye(3).int(), 1), "W must be of type float32 or float64"),
        (lambda: layer.sparse_stiefel(torch.eye(3), 3), "d must be between 1 and m - 1 = 2, got 3"),
        (lambda: layer.sparse_stiefel(torch.full((3, 3), torch.nan), 1), "W holds NaN or infinite entries"),
        (lambda: layer.sparse_stiefel(torch.eye(3), 1, step="gradeint"), "did you mean 'gradient'"),
        (lambda: layer.sparse_stiefel(torch.eye(3), 1, gradient="unrol"), "did you mean 'unroll'"),
        (lambda: layer.sparse_stiefel(torch.eye(3), 1, U0=torch.ones(2, 1)), "U0 must be a tensor of shape"),
        (lambda: layer.sparse_stiefel(torch.eye(3), 1, tol=0), "tol must be positive"),
        (lambda: layer.sparse_stiefel(torch.eye(3), 1, p=2), "p must be a whole number of at least 3"),
        (lambda: layer.two_stage(torch.eye(3).to_sparse(), 1, subspace_by="eigh"), "eigh needs a dense W"),
        (lambda: layer.two_stage(torch.eye(3), 1, rotation_iter=0), "rotation_iter must be a positive whole number"),
        (
            lambda: layer.sparse_stiefel(torch.eye(3), 2, rows=torch.tensor([True, True, False])),
            "need more than 2 real",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        call()
