"""
A referee without the truth
===========================

Six methods answer the same problems. The referee sees only the matches and the answers; the truth, which nobody has
in practice, is used to check what it says.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import Constraints, datasets, judge, score, synchronise

METHODS = ["accurate", "fast", "tracks", "clear", "quickmatch", "kruskal"]
ERRORS = [0.3, 0.5, 0.6]

figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for error, marker in zip(ERRORS, "os^", strict=True):
    problem, truth = datasets.synthetic(universe=20, objects=15, observed=0.7, error=error, rng=1)
    ours = synchronise(problem)
    print(f"{error:.0%} of the matches permuted")
    for number, method in enumerate(METHODS):
        answer = ours if method == "accurate" else synchronise(problem, method=method)
        verdict, true = judge(answer, problem, ours=ours), score(answer, truth)
        low, high = verdict.wrong.low, verdict.wrong.high
        axes[0].plot([1 - true.precision] * 2, [low, high], color=f"C{number}", alpha=0.5)
        label = method if error == ERRORS[0] else None
        axes[0].plot(1 - true.precision, verdict.wrong.value, marker, color=f"C{number}", label=label)
        axes[1].plot(true.fscore, verdict.fscore.value, marker, color=f"C{number}")
        print(f"  {method:12} wrong {verdict.wrong.value:.2f}, in truth {1 - true.precision:.2f};", end=" ")
        print(f"fscore {verdict.fscore.value:.2f}, in truth {true.fscore:.2f}")

for axis, name in zip(axes, ("share of wrong matches", "fscore"), strict=True):
    axis.plot([0, 1], [0, 1], color="grey", linewidth=0.8, zorder=0)
    axis.set(xlabel=f"true {name}", ylabel="as judged without the truth", xlim=(0, 1), ylim=(0, 1))
axes[0].legend()

# %%
# The worst tracks come with evidence. Somebody who knows looks at ten of them and says which points belong together;
# the next answer holds that, and other tracks become better, too.

problem, truth = datasets.synthetic(universe=20, objects=15, observed=0.6, error=0.75, rng=1)
answer = synchronise(problem, method="fast")
verdict = judge(answer, problem)
known = Constraints()
for track in verdict.worst[:10]:
    at = np.array(track.points)
    own = truth[problem.offsets[at[:, 0]] + at[:, 1]]
    known |= Constraints.split(*(at[own == label] for label in np.unique(own)))
print("the worst track:", verdict.worst[0].evidence)
corrected = synchronise(problem, method="fast", constraints=known)
print(f"fscore {score(answer, truth).fscore:.3f}, with ten corrections {score(corrected, truth).fscore:.3f}")
plt.show()
