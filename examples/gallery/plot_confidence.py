"""
Which matches to trust
======================

``result.confidence`` says for every match of the input how many of its witnesses, the other members of the track in
objects that were compared, speak for it. Does a high confidence mean a right match? The share of right matches per
tenth of confidence, over five problems in which 40 % of the matches are wrong.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import datasets, synchronise

confidence, right = [], []
for seed in range(5):
    problem, truth = datasets.synthetic(universe=25, objects=12, observed=0.7, error=0.5, rng=seed)
    a, b = problem.endpoints.T
    confidence.append(synchronise(problem).confidence)
    right.append(truth[a] == truth[b])
confidence, right = np.concatenate(confidence), np.concatenate(right)

bins = np.linspace(0, 1, 11)
which = np.clip(np.digitize(confidence, bins) - 1, 0, 9)
count = np.bincount(which, minlength=10)
share = np.bincount(which, right, minlength=10) / np.maximum(count, 1)
for low, n, s in zip(bins, count, share, strict=False):
    print(f"confidence {low:.1f} to {low + 0.1:.1f}: {n:5} matches, {s:.0%} right")

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.bar(bins[:-1] + 0.05, share, width=0.09, alpha=0.8)
axis.plot([0, 1], [0, 1], color="0.5", linestyle="--")
axis.set(xlabel="confidence of a match", ylabel="share of right matches", xlim=(0, 1), ylim=(0, 1.02))
plt.show()
