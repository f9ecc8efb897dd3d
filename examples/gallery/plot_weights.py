"""
Scores as weights
=================

Many matchers say how sure they are. Where that means something it helps: weights are drawn from Beta(5, 2) for right
matches and from Beta(2, 5) for wrong ones, as by a matcher that knows a little.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import datasets, score, synchronise

errors = [0.4, 0.5, 0.6, 0.7, 0.8]
curves = {"input": [], "no weights": [], "weights that know": [], "weights at random": []}
for error in errors:
    rows = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        problem, truth = datasets.synthetic(universe=25, objects=12, observed=0.6, error=error, rng=rng)
        a, b = problem.endpoints.T
        knowing = np.where(truth[a] == truth[b], rng.beta(5, 2, len(a)), rng.beta(2, 5, len(a)))
        blind = rng.uniform(0.2, 1, len(a))
        answers = [problem, *(synchronise(problem.with_weights(w)).labels for w in (None, knowing, blind))]
        rows.append([score(answer, truth).fscore for answer in answers])
    for values, mean in zip(curves.values(), np.mean(rows, axis=0), strict=True):
        values.append(mean)
    print(f"{error:.0%} wrong: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in curves.items()))

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
for name, values in curves.items():
    axis.plot(errors, values, marker="o", label=name)
axis.set(xlabel="error rate", ylabel="fscore, mean of three seeds", ylim=(0, 1.02), title="twelve objects")
axis.legend()
plt.show()
