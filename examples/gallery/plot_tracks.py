"""
Tracks through many images
==========================

Structure-from-motion programs connect all matches and delete every track with two keypoints of one image. A single
wrong match deletes two good tracks, so a few per cent of wrong matches leave almost nothing. ``tracks`` keeps the
consistent part. 20,000 keypoints in 100 images, more and more matches wrong.
"""

import matplotlib.pyplot as plt

from stiefelsync import datasets, score, synchronise

shares = [0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5]
curves = {"matches as they are": [], "union-find": [], "kept by tracks": []}
for wrong in shares:
    problem, truth = datasets.scene(4_000, 100, 200, 400, wrong, 0.3, rng=0)
    curves["matches as they are"].append(score(problem, truth).fscore)
    curves["union-find"].append(score(synchronise(problem, method="union-find").labels, truth).fscore)
    curves["kept by tracks"].append(score(synchronise(problem, method="tracks").labels, truth).fscore)
    print(f"{wrong:4.0%} wrong: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in curves.items()))

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
for name, values in curves.items():
    axis.plot(shares, values, marker="o", label=name)
axis.set(xlabel="share of wrong matches", ylabel="fscore", ylim=(0, 1.02))
axis.legend()
plt.show()
