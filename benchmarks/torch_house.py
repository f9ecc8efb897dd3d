"""Learn six-number descriptors of the house's keypoints through the layer, and compare with learning from pairs.

``python -m benchmarks.torch_house`` trains for five seeds (a few minutes on one core) and writes
``docs/results/torch-house.csv`` and ``docs/images/torch-house.png``. It needs the extra ``torch``, matplotlib and
``house/house_features.mat`` below STIEFELSYNC_DATA.

A linear map takes each 60-bin shape context to six numbers; it starts at the six principal components of the training
frames. Two maps are trained with the same steps on the same frames: one on the soft matches of pairs, one on the
matches that :func:`stiefelsync.torch.synchronise` makes of them. A third of the frames, drawn afresh for each seed, is
held out. There the pairs are matched by linear assignment, and synchronised by the layer in groups of twelve frames.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import numpy as np
import torch
from scipy.io import loadmat
from scipy.optimize import linear_sum_assignment

import stiefelsync.torch as layer

POINTS, HELD_OUT, NUMBERS = 30, 37, 6
# First guesses that trained stably, chosen on seeds 0 to 2; reported are the seeds below, which had not been looked at.
GROUP, STEPS, RATE, TAU, TEST_GROUP = 8, 80, 0.01, 0.2, 12
SEEDS = range(10, 15)
ROWS = {
    "untrained, 60 numbers": ("raw", False), "untrained, 60 numbers, synchronised": ("raw", True),
    "untrained": ("untrained", False), "(a) untrained, synchronised": ("untrained", True),
    "(b) trained on pairs": ("pairs", False), "(c) trained on pairs, synchronised": ("pairs", True),
    "(b) with 4 × the steps": ("pairs, longer", False),
    "(c) with 4 × the steps": ("pairs, longer", True),
    "trained through the layer, pairs": ("layer", False), "(d) trained through the layer": ("layer", True),
}  # fmt: skip


def descriptors() -> torch.Tensor:
    """Return the shape contexts, shape (111, 30, 60), scaled to a mean sum of five."""
    content = loadmat(Path(os.environ["STIEFELSYNC_DATA"]) / "house" / "house_features.mat")
    F = torch.tensor(np.stack([np.asarray(cell, dtype=np.float32) for cell in content["scf"].ravel()]))
    return 5 * F / F.sum(-1).mean()


def shuffled(F: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the frames with their points in random order, and that order: unshuffled, the truth is the identity."""
    order = torch.stack([torch.randperm(POINTS, generator=generator) for _ in F])
    return torch.take_along_dim(F, order[..., None], 1), order


def distances(F: torch.Tensor, L: torch.Tensor) -> torch.Tensor:
    """Return squared distances after the map L between the points of all frames, shape (k, k, 30, 30)."""
    Y = (F @ L).flatten(0, 1)
    return layer.to_blocks(torch.cdist(Y, Y) ** 2, len(F))


def soft_matches(F: torch.Tensor, L: torch.Tensor) -> torch.Tensor:
    """Return doubly stochastic matches of all pairs, shape (k, k, 30, 30)."""
    return layer.sinkhorn(-distances(F, L), max_iter=60)


def truth_of(order: torch.Tensor) -> torch.Tensor:
    return order[:, None, :, None] == order[None, :, None, :]


def train(F: torch.Tensor, L: torch.Tensor, seed: int, through_layer: bool, steps: int = STEPS) -> torch.Tensor:
    """Return the map after training on groups of frames.

    Through the layer the loss is the mean −log(10⁻³ + match) of true matches. For pairs it is the cross-entropy of each
    point's partner among the others, both ways, which trains more stably than the same loss on Sinkhorn's matches.
    """
    generator = torch.Generator().manual_seed(seed)
    L = L.clone().requires_grad_()
    optimiser = torch.optim.Adam([L], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    apart = ~torch.eye(GROUP, dtype=torch.bool)
    for _ in range(steps):
        X, order = shuffled(F[torch.randperm(len(F), generator=generator)[:GROUP]], generator)
        right = truth_of(order)[apart]
        if through_layer:
            matches = layer.pairwise(layer.synchronise(soft_matches(X, L), None, POINTS, tau=TAU))
            loss = -(matches[apart][right] + 1e-3).log().mean()
        else:
            scores = -distances(X, L)[apart]
            loss = -(scores.log_softmax(-1) + scores.log_softmax(-2))[right].mean() / 2
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([L], 1.0)
        optimiser.step()
        schedule.step()
    return L.detach()


def fscore(F: torch.Tensor, L: torch.Tensor, seed: int, synchronised: bool) -> float:
    """Return the mean fscore over groups of held-out frames: as every point is matched, the share of right ones."""
    X, order = shuffled(F, torch.Generator().manual_seed(1000 + seed))
    scores = []
    for part in range(0, len(F) - TEST_GROUP + 1, TEST_GROUP):
        frames = slice(part, part + TEST_GROUP)
        soft = soft_matches(X[frames], L)
        hard = torch.eye(POINTS).repeat(TEST_GROUP, TEST_GROUP, 1, 1)
        for i in range(TEST_GROUP):
            for j in range(i):
                hard[i, j] = torch.eye(POINTS)[linear_sum_assignment(soft[i, j].numpy(), maximize=True)[1]]
                hard[j, i] = hard[i, j].T
        if synchronised:
            labels = torch.from_numpy(layer.hard_labels(layer.synchronise(hard, None, POINTS, tau=TAU)))
            hard = truth_of(labels).float()
        apart = ~torch.eye(TEST_GROUP, dtype=torch.bool)
        scores.append(hard[apart][truth_of(order[frames])[apart]].mean().item())
    return float(np.mean(scores))


def run(F: torch.Tensor, seed: int) -> dict[str, float]:
    frames = torch.randperm(len(F), generator=torch.Generator().manual_seed(seed))
    test, training = F[frames[:HELD_OUT]], F[frames[HELD_OUT:]]
    flat = training.flatten(0, 1)
    start = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)[2][:NUMBERS].T.contiguous()
    maps = {
        "raw": torch.eye(F.shape[-1]),
        "untrained": start,
        "pairs": train(training, start, seed, through_layer=False),
        "pairs, longer": train(training, start, seed, through_layer=False, steps=4 * STEPS),
        "layer": train(training, start, seed, through_layer=True),
    }
    return {name: fscore(test, maps[which], seed, sync) for name, (which, sync) in ROWS.items()}


def draw(table: dict[str, list[float]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    for y, (name, values) in enumerate(reversed(table.items())):
        synchronised = ROWS[name][1]
        axes.plot(values, [y] * len(values), "o", ms=4, alpha=0.5, color="tab:blue" if synchronised else "tab:orange")
        axes.plot(np.mean(values), y, "|", ms=16, mew=2.5, color="tab:blue" if synchronised else "tab:orange")
    axes.set_yticks(range(len(table)), list(reversed(table)))
    axes.set_xlabel("share of right matches, held-out frames (bar: mean)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)


def main() -> None:
    root = Path(__file__).parents[1] / "docs"
    F, table = descriptors(), {name: [] for name in ROWS}
    started = time.process_time()
    for seed in SEEDS:
        for name, value in run(F, seed).items():
            table[name].append(value)
        print(seed, {name: round(values[-1], 4) for name, values in table.items()}, flush=True)
    with open(root / "results" / "torch-house.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["row", *(f"seed {seed}" for seed in SEEDS), "mean"])
        for name, values in table.items():
            writer.writerow([name, *(f"{value:.4f}" for value in values), f"{np.mean(values):.4f}"])
    print(f"{'':46}  mean   gain of (d) ± standard error")
    best = np.array(table["(d) trained through the layer"])
    for name, values in table.items():
        gain = best - np.array(values)
        print(f"{name:46}  {np.mean(values):.4f}  {gain.mean():+.4f} ± {gain.std(ddof=1) / len(gain) ** 0.5:.4f}")
    print(f"{time.process_time() - started:.0f} s of processor time")
    draw(table, root / "images" / "torch-house.png")


if __name__ == "__main__":
    main()
