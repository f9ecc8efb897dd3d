"""
Descriptors learned through the layer
=====================================

A linear map shortens the 60-bin shape contexts of the house sequence to six numbers. It is trained on the matches that
come *out of* :func:`stiefelsync.torch.synchronise`, on two thirds of the frames; the picture shows how many matches
between held-out frames are right as training goes on, before and after synchronisation. The comparison with training
on pairs, over five seeds, is ``python -m benchmarks.torch_house``. Needs the extra ``torch`` and ``house_features.mat``
below STIEFELSYNC_DATA.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.io import loadmat


def main(path, steps=60, group=8, points=30):
    """Train for some steps and draw the share of right matches on the way."""
    import torch

    from stiefelsync.torch import hard_labels, pairwise, sinkhorn, synchronise, to_blocks

    contexts = np.stack([np.asarray(cell, dtype=np.float32) for cell in loadmat(path)["scf"].ravel()])
    F = 5 * torch.tensor(contexts) / contexts.sum(-1).mean()
    generator = torch.Generator().manual_seed(0)
    frames = torch.randperm(len(F), generator=generator)
    held_out, training = F[frames[:12]], F[frames[37:]]

    def soft_matches(F, L):  # of all pairs, shape (k, k, 30, 30)
        Y = (F @ L).flatten(0, 1)
        return sinkhorn(to_blocks(-(torch.cdist(Y, Y) ** 2), len(F)), max_iter=60)

    def share_right(L):
        order = np.random.default_rng(0).permuted(np.tile(np.arange(points), (len(held_out), 1)), axis=1)
        shuffled = torch.take_along_dim(held_out, torch.from_numpy(order)[..., None], 1)
        truth = order[:, None, :, None] == order[None, :, None, :]
        soft = soft_matches(shuffled, L)
        nearest = soft.argmax(-1, keepdim=True).numpy()
        labels = hard_labels(synchronise(soft, None, points, tau=0.2))
        same = labels[:, None, :, None] == labels[None, :, None, :]
        apart = ~np.eye(len(held_out), dtype=bool)
        return np.take_along_axis(truth, nearest, -1)[apart].mean(), (same & truth).sum(-1)[apart].mean()

    flat = training.flatten(0, 1)
    L = torch.linalg.svd(flat - flat.mean(0), full_matrices=False)[2][:6].T.clone().requires_grad_()
    optimiser = torch.optim.Adam([L], lr=0.01)
    apart = ~torch.eye(group, dtype=torch.bool)
    curve = [share_right(L.detach())]
    for step in range(steps):
        batch = training[torch.randperm(len(training), generator=generator)[:group]]
        matches = pairwise(synchronise(soft_matches(batch, L), None, points, tau=0.2))
        # In the authors' order point r of every frame is universe point r; nothing here depends on the order.
        loss = -(matches[apart].diagonal(dim1=-2, dim2=-1) + 1e-3).log().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 10 == 9:
            curve.append(share_right(L.detach()))
    print(f"right after training: {curve[-1][0]:.3f} of the pairs' matches, {curve[-1][1]:.3f} after the layer")
    plt.plot(range(0, steps + 1, 10), [c[0] for c in curve], "o-", label="nearest, pair by pair")
    plt.plot(range(0, steps + 1, 10), [c[1] for c in curve], "s-", label="after the layer")
    plt.xlabel("training steps")
    plt.ylabel("share of right matches, held-out frames")
    plt.legend()
    plt.show()
    return curve


features = Path(os.environ.get("STIEFELSYNC_DATA", "")) / "house" / "house_features.mat"
if find_spec("torch") is None:
    print('this example needs PyTorch: pip install "stiefelsync[torch]"')
elif not features.is_file():
    print("this example needs house/house_features.mat below the folder STIEFELSYNC_DATA")
else:
    curve = main(features)
