"""
People across cameras
=====================

Eight cameras see some of thirty people; a network describes every detection by a vector. Detections of two cameras
are matched by the similarity of their descriptors. The worse the descriptors, the more the cameras contradict each
other.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import Matchings, score, synchronise

CAMERAS, PEOPLE, LENGTH = 8, 30, 32


def detections(noise, rng):
    """Return descriptors per camera and who was detected."""
    people = rng.standard_normal((PEOPLE, LENGTH))
    seen = [rng.permutation(PEOPLE)[: rng.integers(12, 25)] for _ in range(CAMERAS)]
    views = [people[who] + noise * rng.standard_normal((len(who), LENGTH)) for who in seen]
    return [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views], np.concatenate(seen)


noises = [0.6, 0.9, 1.2, 1.5, 1.8]
curves = {"in pairs": [], "union-find": [], "made consistent": []}
for noise in noises:
    rows = []
    for seed in range(3):
        views, truth = detections(noise, np.random.default_rng(seed))
        scores = {(i, j): views[i] @ views[j].T for i, j in combinations(range(CAMERAS), 2)}
        problem = Matchings.from_scores(scores, threshold=0.2)
        answers = (problem, synchronise(problem, method="union-find").labels, synchronise(problem).labels)
        rows.append([score(answer, truth).fscore for answer in answers])
    for values, mean in zip(curves.values(), np.mean(rows, axis=0), strict=True):
        values.append(mean)
    print(f"noise {noise}: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in curves.items()))

# %%
# One row per person, one column per camera: the table of the last, hardest problem.

table = synchronise(problem).table()
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, values in curves.items():
    axes[0].plot(noises, values, marker="o", label=name)
axes[0].set(xlabel="noise of the descriptors", ylabel="fscore, mean of three seeds", ylim=(0, 1.02))
axes[0].legend()
axes[1].imshow(table >= 0, aspect="auto", cmap="Greys", interpolation="nearest")
axes[1].set(xlabel="camera", ylabel="person found", title="who is seen where")
plt.show()
