"""
The solver alone: a sparse basis of the dominant subspace
=========================================================

``sparse_stiefel`` solves max tr(UᵀWU) over orthonormal U and among all solutions, which are rotations of each other,
turns towards a sparse one. It knows nothing of matchings. On the left orthogonal iteration, in the middle Algorithm 1
of the paper, on the right ``two_stage``, which finds the subspace first and turns it until it is as sparse as it
gets.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import datasets, sparse_stiefel, two_stage

problem, truth = datasets.synthetic(universe=30, objects=5, observed=0.9, error=0.3, rng=0)
W, d = problem.to_matrix(), len(np.unique(truth))
results = {
    "orthogonal iteration": sparse_stiefel(W, d, step="none", rng=0),
    "sparse Stiefel": sparse_stiefel(W, d, rng=0),
    "two stages": two_stage(W, d, rng=0),
}

figure, axes = plt.subplots(1, 3, figsize=(10, 5), sharey=True, layout="constrained")
order = np.argsort(truth, kind="stable")
for axis, (name, result) in zip(axes, results.items(), strict=True):
    columns = np.argsort(np.abs(result.U[order]).argmax(axis=0))
    axis.imshow(np.abs(result.U[np.ix_(order, columns)]), aspect="auto", cmap="Blues", interpolation="nearest")
    axis.set(title=f"{name}\ntr(UᵀWU) = {result.objective:.2f}, g(U) = {result.secondary:.2f}", xlabel="column of U")
    print(f"{name:22} orthogonal to {result.orthogonality_error():.1e}, residual {result.residual(W):.1e}")
axes[0].set_ylabel("point, by universe point")
plt.show()
