"""
How many points are there?
==========================

Nobody tells how many distinct points there are across all objects. It is estimated from the matches, on the safe
side: a universe too large is harmless, one too small cannot be repaired.
"""

import matplotlib.pyplot as plt

from stiefelsync import datasets, estimate_universe, score, synchronise

errors = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
estimates, given, guessed = [], [], []
for error in errors:
    problem, truth = datasets.synthetic(universe=40, objects=25, observed=0.6, error=error, rng=0)
    estimates.append(estimate_universe(problem).size)
    given.append(score(synchronise(problem, 40).labels, truth).fscore)
    guessed.append(score(synchronise(problem).labels, truth).fscore)
    print(f"{error:.0%} wrong: {estimates[-1]} estimated, fscore {guessed[-1]:.3f}, knowing the size {given[-1]:.3f}")

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].plot(errors, estimates, marker="o")
axes[0].axhline(40, color="0.5", linestyle="--")
axes[0].set(xlabel="error rate", ylabel="estimated size", title="the universe has 40 points", ylim=(0, None))
axes[1].plot(errors, given, marker="o", label="size given")
axes[1].plot(errors, guessed, marker="x", label="estimated")
axes[1].set(xlabel="error rate", ylabel="fscore", ylim=(0, 1.02))
axes[1].legend()
plt.show()
