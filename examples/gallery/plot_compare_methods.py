"""
Comparing methods
=================

Every method, ours and the rivals, has one signature, so a comparison is one call. Five seeds: one seed means nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import compare, datasets

METHODS = ["accurate", "fast", "sparse-stiefel", "two-stage", "matcheig", "spectral", "projected-power"]

scores = {method: [] for method in METHODS}
for seed in range(5):
    problem, truth = datasets.synthetic(universe=25, objects=20, observed=0.6, error=0.6, rng=seed)
    for row in compare(problem, METHODS, universe=25, truth=truth):
        scores[row.method].append(row.fscore)

for method, values in scores.items():
    print(f"{method:16} {np.mean(values):.3f}   " + " ".join(f"{value:.3f}" for value in values))

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
for at, values in enumerate(reversed(scores.values())):
    axis.scatter(values, np.full(len(values), at), s=18, alpha=0.6, color="tab:blue")
    axis.plot(np.mean(values), at, marker="|", markersize=16, color="black")
axis.set(
    yticks=range(len(METHODS)), yticklabels=METHODS[::-1], xlabel="fscore, five seeds and their mean", xlim=(0, 1.02)
)
plt.show()
