"""
How the solver converges
========================

Algorithm 1 raises the primary objective tr(UᵀWU) as orthogonal iteration does, and the secondary one, g(U) = Σ U³, on
the way. The primary objective settles first: where a sparse basis is what you want, ask for both
(``criterion="both"``) or use ``two_stage``.
"""

import matplotlib.pyplot as plt

from stiefelsync import datasets, sparse_stiefel

problem, truth = datasets.synthetic(universe=25, objects=30, observed=0.8, error=0.5, rng=0)
W = problem.to_matrix()

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for step in ("none", "gradient", "line-search", "polar"):
    result = sparse_stiefel(W, 25, step=step, extra_iter=20, rng=0)
    axes[0].plot(result.history.objective, label=step)
    axes[1].plot(result.history.secondary, label=step)
    print(f"{step:12} {result.n_iter:3} iterations, g(U) = {result.secondary:.2f}: {result.status.value}")
axes[0].set(title="primary objective tr(UᵀWU)", xlabel="iteration")
axes[1].set(title="secondary objective g(U)", xlabel="iteration")
axes[1].legend(title="step")
plt.show()
