"""
Shapes: landmarks on outlines
=============================

Ten deformed, turned outlines with 24 landmarks each. Every landmark is described by the distances to all others,
sorted: a descriptor that does not change when a shape is turned. Matching by it confuses landmarks that look alike;
consistency helps as far as different pairs are confused differently.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import Matchings, score, synchronise

SHAPES, LANDMARKS = 10, 24
rng = np.random.default_rng(3)
angle = np.sort(rng.uniform(0, 2 * np.pi, LANDMARKS))
radius = 1 + 0.5 * rng.random(LANDMARKS)

outlines, truth, descriptors = [], [], []
for _ in range(SHAPES):
    order = rng.permutation(LANDMARKS)
    turned, r = angle + rng.uniform(0, 2 * np.pi), radius + 0.1 * rng.standard_normal(LANDMARKS)
    x = np.stack([r * np.cos(turned), r * np.sin(turned)], axis=1)[order]
    outlines.append(x)
    truth.append(order)
    descriptors.append(np.sort(np.linalg.norm(x[:, None] - x, axis=2), axis=1))
truth = np.concatenate(truth)

scores = {
    (i, j): 3.0 - np.linalg.norm(descriptors[i][:, None] - descriptors[j], axis=2)
    for i, j in combinations(range(SHAPES), 2)
}
problem = Matchings.from_scores(scores)
result = synchronise(problem, LANDMARKS)
print(f"fscore {score(problem, truth).fscore:.3f} in pairs, {score(result.labels, truth).fscore:.3f} made consistent")

# %%
# The first five shapes. Landmarks of one colour are one universe point.

labels = np.split(result.labels, np.cumsum(problem.sizes)[:-1])
figure, axes = plt.subplots(1, 5, figsize=(11, 2.6), layout="constrained")
for axis, x, label, order in zip(axes, outlines, labels, np.split(truth, SHAPES), strict=False):
    ring = x[np.argsort(order)]
    axis.plot(*np.concatenate([ring, ring[:1]]).T, color="0.8", zorder=0)
    axis.scatter(*x.T, c=label, cmap="hsv", s=30, vmin=0, vmax=LANDMARKS)
    axis.set(aspect="equal", xticks=[], yticks=[])
plt.show()
