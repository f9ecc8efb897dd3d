"""Cost of the PyTorch layer: backward against forward, batch against loop, implicit against unrolled.

``python -m benchmarks.torch_layer`` prints how many operations a small step takes, and its time with one
thread and with all; then ratios of processor time measured in one run on one thread, of which the first
rows need the house data below STIEFELSYNC_DATA.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import stiefelsync.torch as layer
from stiefelsync import datasets, io

_REPEATS = 3


def seconds(run: Callable[[], object]) -> float:
    """Return the least processor time of some runs, after one to warm up."""
    run()
    taken = []
    for _ in range(_REPEATS):
        started = time.process_time()
        run()
        taken.append(time.process_time() - started)
    return min(taken)


def backward_against_forward(folder: Path) -> None:
    problem, _ = datasets.house(40, path=folder)
    dense = torch.tensor(problem.to_matrix().toarray())
    sizes, d = problem.sizes, 30
    rows: dict[str, tuple[torch.Tensor, Callable[[torch.Tensor], torch.Tensor]]] = {
        "sparse_stiefel, dense": (dense, lambda W: layer.sparse_stiefel(W, d)),
        "sparse_stiefel, sparse": (dense.to_sparse(), lambda W: layer.sparse_stiefel(W, d)),
        "sparse_stiefel, unrolled": (dense.to_sparse(), lambda W: layer.sparse_stiefel(W, d, gradient="unroll")),
        "two_stage, dense": (dense, lambda W: layer.two_stage(W, d)),
        "two_stage, sparse": (dense.to_sparse(), lambda W: layer.two_stage(W, d)),
        "synchronise, dense": (dense, lambda W: layer.synchronise(W, sizes, d)),
        "synchronise, sparse": (dense.to_sparse(), lambda W: layer.synchronise(W, sizes, d)),
    }
    print("house, k = 40, d = 30, float64            forward s  backward s  backward / forward")
    for name, (W, function) in rows.items():
        given = W.clone().requires_grad_()
        forward = seconds(lambda function=function, given=given: function(given))
        out = function(given)
        C = torch.randn(out.shape, generator=torch.Generator().manual_seed(0), dtype=out.dtype)
        loss = (C * out).sum()
        backward = seconds(lambda loss=loss, given=given: torch.autograd.grad(loss, given, retain_graph=True))
        print(f"{name:40} {forward:10.3f} {backward:11.3f} {backward / forward:14.2f}", flush=True)


def batch_against_loop() -> None:
    print("\nsynchronise, 32 problems, with gradient      loop s  batch s  loop / batch")
    for k, d in ((5, 8), (8, 10), (10, 20)):
        tensors, sizes = [], []
        for seed in range(32):
            problem, _ = datasets.synthetic(d, k, observed=0.8, error=0.3, rng=seed)
            X = np.zeros((k, k, d, d))
            n = int(problem.sizes.max())
            X[:, :, :n, :n] = io.to_tensor(problem)
            tensors.append(X)
            sizes.append(problem.sizes.astype(np.int64))
        for dtype in (torch.float64, torch.float32):
            X, counts = torch.tensor(np.array(tensors), dtype=dtype), torch.tensor(np.array(sizes))
            given = X.requires_grad_()

            def step(X: torch.Tensor, counts: torch.Tensor, d: int = d) -> None:
                layer.synchronise(X, counts, d).square().sum().backward()

            together = seconds(lambda given=given, counts=counts, step=step: step(given, counts))
            loop = seconds(lambda given=given, counts=counts, step=step: [step(given[b], counts[b]) for b in range(32)])
            name = f"k = {k}, d = {d}, m ≈ {0.8 * k * d:.0f}, {str(dtype)[6:]}"
            print(f"{name:42} {loop:8.3f} {together:8.3f} {loop / together:13.1f}", flush=True)


class Counting(TorchDispatchMode):
    """Counts the operations that torch is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


def learn(steps: int) -> None:
    """Take gradient steps with the soft matches of 6 objects of 10 points, towards matches that agree."""
    noise = torch.randn(6, 6, 10, 10, generator=torch.Generator().manual_seed(0))
    W = (3 * torch.eye(10) + 0.5 * noise).softmax(-1).requires_grad_()
    for _ in range(steps):
        (gradient,) = torch.autograd.grad((layer.synchronise(W, None, 10) - torch.eye(10)).square().sum(), W)
        W = (W.detach() - 0.1 * gradient).clamp(min=0).requires_grad_()


def operations_and_threads(threads: int) -> None:
    """Print operations of one step, and wall-clock seconds of 60 steps with one thread and with all."""
    with Counting() as counted:
        learn(1)
    print(f"\n6 objects of 10 points: {counted.count:,} operations a step, forward, backward and update")
    for number in (1, threads):
        torch.set_num_threads(number)
        taken = []
        for _ in range(_REPEATS):
            started = time.perf_counter()
            learn(60)
            taken.append(time.perf_counter() - started)
        print(f"60 steps with threads: {number}{min(taken):10.2f} s", flush=True)
    torch.set_num_threads(1)


def main() -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    operations_and_threads(threads)
    folder = os.environ.get("STIEFELSYNC_DATA")
    if folder:
        backward_against_forward(Path(folder))
    batch_against_loop()


if __name__ == "__main__":
    main()
