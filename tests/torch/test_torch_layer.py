"""The synchroniser as a layer: what it promises of its output, its forms, and its place in PyTorch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import stiefelsync
from stiefelsync import InputError, cycle_error, datasets, io, score
from stiefelsync.sync.methods._spectral_start import spectral_start
from stiefelsync.sync.rounding import project

torch = pytest.importorskip("torch", reason='PyTorch is not installed; run: pip install "stiefelsync[torch]"')
layer = pytest.importorskip("stiefelsync.torch")

SETTINGS = [(8, 10, 0.7, 0.2), (12, 12, 0.6, 0.4), (10, 8, 1.0, 0.3)]


def problem(number):
    d, k, observed, error = SETTINGS[number]
    matchings, truth = datasets.synthetic(d, k, observed=observed, error=error, rng=number)
    return matchings, truth, len(np.unique(truth))


def numbered(labels):
    """Number labels by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def dense(matchings):
    return torch.tensor(matchings.to_matrix().toarray())


@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("tau", [0.02, 0.1, 1.0])
def test_rows_sum_to_one_and_columns_of_an_object_to_at_most_one(number, tau):
    matchings, _, d = problem(number)
    P = layer.synchronise(dense(matchings), matchings.sizes, d, tau=tau)
    assert (P >= 0).all()
    torch.testing.assert_close(P.sum(1), torch.ones(len(P), dtype=P.dtype))
    for start, size in zip(matchings.offsets, matchings.sizes, strict=False):
        assert P[start : start + size].sum(0).max() <= 1 + 1e-3


@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_labels_are_those_of_the_numpy_package(number, dtype):
    matchings, truth, d = problem(number)
    W, sizes = dense(matchings).to(dtype), matchings.sizes
    published = stiefelsync.synchronise(matchings, d, method="sparse-stiefel", rng=4).labels
    for tau in (0.05, 0.3):
        P = layer.synchronise(W, sizes, d, tau=tau, solver="sparse-stiefel", normalise=False, rng=4)
        np.testing.assert_array_equal(numbered(layer.hard_labels(P, sizes)), numbered(published))
        P = layer.synchronise(W, sizes, d, tau=tau)
        A = matchings.to_matrix() - matchings.to_matrix().multiply(np.eye(len(W))).tocsr()
        A.eliminate_zeros()
        start = project(spectral_start(A, d, rng=np.random.default_rng(0)), sizes)
        np.testing.assert_array_equal(numbered(layer.hard_labels(P, sizes)), numbered(start))
    assert score(layer.hard_labels(P, sizes), truth).fscore > score(matchings, truth).fscore


def test_all_forms_of_input_agree():
    matchings, _, d = problem(0)
    sizes = matchings.sizes
    W, X = dense(matchings), torch.tensor(io.to_tensor(matchings))
    P = layer.synchronise(W, sizes, d)
    blocks = layer.synchronise(X, torch.tensor(sizes.astype(np.int64)), d)
    assert blocks.shape == (len(sizes), X.shape[-1], d)
    real = torch.arange(X.shape[-1]) < torch.tensor(sizes)[:, None]
    torch.testing.assert_close(blocks[real], P, atol=1e-3, rtol=0)
    assert not blocks[~real].any()
    torch.testing.assert_close(layer.synchronise(X, None, d, mask=real), blocks)
    torch.testing.assert_close(layer.synchronise(W.to_sparse(), sizes, d), P, atol=1e-4, rtol=0)
    # A point left out by a mask is as good as not there.
    mask = torch.ones(len(W), dtype=torch.bool)
    mask[sizes[0] - 1] = False
    fewer = sizes.copy()
    fewer[0] -= 1
    without = layer.synchronise(W[mask][:, mask], fewer, d)
    torch.testing.assert_close(layer.synchronise(W, sizes, d, mask=mask)[mask], without, atol=1e-3, rtol=0)


def test_padded_batches_give_what_each_problem_gives_alone():
    some = [problem(number)[0] for number in range(3)]
    d = 12
    k, n = max(p.n_objects for p in some), max(int(p.sizes.max()) for p in some)
    X, sizes = torch.zeros(3, k, k, n, n, dtype=torch.float64), torch.zeros(3, k, dtype=torch.int64)
    m = max(p.n_points for p in some)
    W = torch.zeros(3, m, m, dtype=torch.float64)
    for b, p in enumerate(some):
        T = torch.tensor(io.to_tensor(p))
        X[b, : T.shape[0], : T.shape[0], : T.shape[2], : T.shape[2]] = T
        W[b, : p.n_points, : p.n_points] = dense(p)
        sizes[b, : p.n_objects] = torch.tensor(p.sizes.astype(np.int64))
    P, Q = layer.synchronise(X, sizes, d), layer.synchronise(W, sizes, d)
    assert P.shape == (3, k, n, d)
    labels = layer.hard_labels(P)
    for b, p in enumerate(some):
        alone = layer.synchronise(dense(p), p.sizes, d)
        torch.testing.assert_close(P[b][torch.arange(n) < sizes[b][:, None]], alone, atol=1e-3, rtol=0)
        torch.testing.assert_close(Q[b, : p.n_points], alone, atol=1e-3, rtol=0)
        np.testing.assert_array_equal(labels[b][labels[b] >= 0], layer.hard_labels(alone, p.sizes))
    np.testing.assert_array_equal((labels >= 0).sum(axis=2), sizes)


def test_blocks_go_in_and_out():
    X = torch.rand(2, 3, 3, 4, 4)
    torch.testing.assert_close(layer.to_blocks(layer.to_matrix(X), 3), X)
    assert layer.to_matrix(X)[1, 4 + 2, 2 * 4 + 3] == X[1, 1, 2, 2, 3]
    matchings, truth, d = problem(1)
    answer = stiefelsync.synchronise(matchings, d)
    one_hot = torch.nn.functional.one_hot(torch.tensor(answer.labels).clamp(min=0), int(answer.labels.max()) + 1)
    one_hot = one_hot * torch.tensor(answer.labels >= 0)[:, None]
    P = torch.zeros(matchings.n_objects, int(matchings.sizes.max()), one_hot.shape[1])
    real = torch.arange(P.shape[1]) < torch.tensor(matchings.sizes)[:, None]
    P[real] = one_hot.to(P.dtype)
    assert len(truth) == len(answer.labels)
    if (answer.labels >= 0).all():
        np.testing.assert_array_equal(layer.pairwise(P), io.to_tensor(answer.matchings()))
    again = io.from_tensor(layer.pairwise(P).numpy(), matchings.sizes)
    assert score(again, answer.matchings()).fscore == 1


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_the_cycle_loss_of_hard_matches_is_the_cycle_error(number):
    matchings, truth, _ = problem(number)
    X = torch.tensor(io.to_tensor(matchings))
    expected = cycle_error(matchings).value
    assert expected > 0.05
    assert layer.cycle_consistency_loss(X, matchings.sizes).item() == pytest.approx(expected, rel=1e-12)
    assert layer.cycle_consistency_loss(dense(matchings), matchings.sizes).item() == pytest.approx(expected, rel=1e-12)
    consistent = stiefelsync.Matchings.from_labels(truth, matchings.sizes)
    assert layer.cycle_consistency_loss(dense(consistent), matchings.sizes).item() == 0


def test_the_module_trains_what_stands_before_it():
    torch.manual_seed(0)
    truth = torch.stack([torch.eye(4)[torch.randperm(4)] for _ in range(6)])
    target = layer.pairwise(truth)
    raw = (0.3 * target + torch.rand_like(target)).requires_grad_()
    synchronise = layer.Synchronise(4, tau=0.3)
    assert not list(synchronise.parameters())
    assert "tau=0.3" in repr(synchronise)
    losses = []
    optimiser = torch.optim.Adam([raw], lr=0.05)
    for _ in range(15):
        optimiser.zero_grad()
        loss = ((layer.pairwise(synchronise(raw)) - target) ** 2).mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]


def test_vmap_maps_values_and_gradients():
    X = torch.stack([torch.tensor(io.to_tensor(problem(2)[0])) for _ in range(3)])
    X = X + 0.1 * torch.rand(X.shape, generator=torch.Generator().manual_seed(0), dtype=X.dtype)

    def loss(X):
        return layer.pairwise(layer.synchronise(X, None, 10)).square().sum()

    torch.testing.assert_close(torch.func.vmap(loss)(X), torch.stack([loss(x) for x in X]), atol=1e-2, rtol=1e-3)
    mapped = torch.func.vmap(torch.func.grad(loss))(X)
    each = torch.stack([torch.func.grad(loss)(x) for x in X])
    torch.testing.assert_close(mapped, each, atol=1e-3, rtol=1e-3)
    W = layer.to_matrix(X)
    torch.testing.assert_close(
        torch.func.vmap(lambda W: layer.sparse_stiefel(W, 5))(W), layer.sparse_stiefel(W, 5), atol=1e-9, rtol=0
    )


@pytest.mark.filterwarnings("ignore")
def test_compile_breaks_the_graph_and_gives_the_same():
    X = torch.tensor(io.to_tensor(problem(2)[0]))

    def loss(X):
        return layer.pairwise(layer.synchronise(2 * X, None, 10)).square().sum()

    expected, compiled = X.clone().requires_grad_(), X.clone().requires_grad_()
    loss(expected).backward()
    torch.compile(loss, backend="eager")(compiled).backward()
    torch.testing.assert_close(compiled.grad, expected.grad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layer.synchronise(torch.eye(4), None, 2), "a matrix needs sizes"),
        (lambda: layer.synchronise(torch.eye(4), [2, 1], 2), "sizes add up to 3, but W has 4 rows"),
        (lambda: layer.synchronise(torch.eye(4), [3, 1], 2), "smaller than an object with 3"),
        (lambda: layer.synchronise(torch.eye(4), [2, 2], 4), "needs more than 4 points in every problem"),
        (lambda: layer.synchronise(torch.eye(4), [2, 2], 2, tau=0), "tau must be positive"),
        (lambda: layer.synchronise(torch.eye(4), [2, 2], 2, solver="fast"), "unknown solver 'fast'"),
        (lambda: layer.synchronise(torch.ones(2, 3, 2, 2), None, 2), "blocks must have shape"),
        (lambda: layer.synchronise(torch.ones(2, 2, 2, 2), [2, 3], 2), "sizes must be 2 numbers between 0 and 2"),
        (lambda: layer.synchronise(torch.ones(2, 2, 2, 2), None, 2, mask=torch.ones(2)), "mask must be boolean"),
        (lambda: layer.to_blocks(torch.eye(5), 2), "W must have shape"),
        (lambda: layer.hard_labels(torch.eye(2)), "unless sizes are given"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_only_the_layer_imports_torch():
    code = (
        "import sys, stiefelsync, stiefelsync.cli, stiefelsync.experiments\n"
        "stiefelsync.synchronise, stiefelsync.io, stiefelsync.datasets\n"
        "assert 'torch' not in sys.modules\n"
        "print(stiefelsync.torch.synchronise.__name__, 'torch' in sys.modules)"
    )
    run = run_python(code)
    assert run.stdout.split() == ["synchronise", "True"], run.stderr


def test_without_torch_the_error_names_the_extra():
    run = run_python("import sys; sys.modules['torch'] = None; import stiefelsync; stiefelsync.torch")
    assert 'stiefelsync.torch needs torch, which is not installed; run: pip install "stiefelsync[torch]"' in run.stderr


class Watching(torch.utils._python_dispatch.TorchDispatchMode):
    """Lists the operations that torch is asked for, and with how many threads."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append((function.overloadpacket.__name__, torch.get_num_threads()))
        return function(*args, **(kwargs or {}))


def test_a_small_step_takes_few_operations_on_one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        noise = torch.randn(6, 6, 10, 10, generator=torch.Generator().manual_seed(0))
        W = (3 * torch.eye(10) + 0.5 * noise).softmax(-1).requires_grad_()
        with Watching() as watched:
            (layer.synchronise(W, None, 10) - torch.eye(10)).square().sum().backward()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert len(watched.seen) < 28_439 / 10  # what version 0.2 took, by a tenth
    heavy = ("mm", "bmm", "_softmax", "_linalg_eigh", "_linalg_svd", "linalg_lu_factor_ex")
    threads = {number for name, number in watched.seen if name in heavy}
    assert threads == {1}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1, 10, 60])
def test_columns_of_sharp_scores_are_balanced_as_long_iterations_do(dtype, scale):
    S = scale * torch.rand(5, 7, 9, generator=torch.Generator().manual_seed(scale), dtype=torch.float64)
    P = layer.sinkhorn(S.to(dtype), tol=1e-5).double()
    # Two slack rows of equal scores, rows and columns scaled in turn, a hundred thousand times.
    b = torch.zeros(5, 1, 9, dtype=torch.float64)
    for _ in range(100_000):
        sums = torch.softmax(S + b, -1).sum(-2, keepdim=True) + 2 * torch.softmax(b, -1)
        b = b - sums.log()
        if (sums - 1).abs().max() < 1e-9:
            break
    torch.testing.assert_close(P, torch.softmax(S + b, -1), atol=2e-4, rtol=0)
