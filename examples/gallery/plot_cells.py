"""
Cells across twenty imaging sessions
====================================

The same field of cells is imaged on twenty days. Tissue drifts and deforms from day to day, a third of the cells is
silent on any one day, and a few detections belong to no cell. Pairs of sessions are matched by position. Which
detections are the same cell?

Chaining (matching each session to the next only) loses a cell on its first silent day. Connecting all matches
(union-find) lets one wrong match join two cells, and the conflicting tracks are useless. Synchronisation uses every
pair and keeps what agrees.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from stiefelsync import Matchings, score, synchronise

SESSIONS, CELLS, FIELD = 20, 200, 512.0
REACH = 9.0  # pixels beyond which two detections are not matched


# %%
# Sessions with known cells
# -------------------------
# Registration removes most of the drift between two sessions; what is left grows with the days between them.


def sessions(rng: np.random.Generator) -> tuple[list[Any], list[Any], Any]:
    """Return positions and true cells of the detections of every session, and the field's smooth drift."""
    cells = rng.uniform(0, FIELD, (CELLS, 2))
    waves = rng.normal(size=(SESSIONS, 3, 2)).cumsum(axis=0)  # a random walk of three smooth modes
    positions, truth = [], []
    for modes in waves:
        seen = np.flatnonzero(rng.random(CELLS) < 0.67)
        x, y = cells[seen].T / FIELD * np.pi
        drift = np.stack([np.sin(x), np.sin(y), np.sin(x) * np.sin(y)], axis=1) @ modes
        found = cells[seen] + 0.8 * drift + rng.normal(scale=1.2, size=(len(seen), 2))
        stray = rng.uniform(0, FIELD, (6, 2))  # detections of no cell
        order = rng.permutation(len(found) + len(stray))
        positions.append(np.concatenate([found, stray])[order])
        truth.append(np.concatenate([seen, np.full(len(stray), -1)])[order])
    return positions, truth, cells


def match(a: Any, b: Any) -> Any:
    """Return one-to-one matches of nearby detections, rows (index in a, index in b)."""
    distance = cdist(a, b)
    rows, columns = linear_sum_assignment(np.minimum(distance, REACH))
    near = distance[rows, columns] < REACH
    return np.stack([rows[near], columns[near]], axis=1)


def problem(positions: list[Any], reach: int) -> Matchings:
    """Return the matches of all pairs of sessions at most `reach` days apart."""
    pairs = {
        (i, j): match(positions[i], positions[j])
        for i in range(SESSIONS)
        for j in range(i + 1, min(i + reach + 1, SESSIONS))
    }
    return Matchings.from_pairs(pairs, [len(p) for p in positions])


# %%
# Five fields of cells
# --------------------

rows: dict[str, list[float]] = {}
for seed in range(5):
    positions, truth, cells = sessions(np.random.default_rng(seed))
    answer = np.concatenate(truth)
    everything, chain = problem(positions, SESSIONS), problem(positions, 1)
    results = {
        "matches as they are": score(everything, answer),
        "chaining neighbours": score(synchronise(chain, method="union-find").labels, answer),
        "union-find, all pairs": score(synchronise(everything, method="union-find").labels, answer),
        "tracks": score(synchronise(everything, method="tracks").labels, answer),
        "accurate": score(synchronise(everything).labels, answer),
    }
    for name, found in results.items():
        rows.setdefault(name, []).append(found.fscore)

print("fscore over five seeds")
for name, values in rows.items():
    print(f"{name:24} {np.mean(values):.3f}   " + " ".join(f"{v:.3f}" for v in values))

# %%
# What a chain loses
# ------------------
# One line per true cell, one dot per session in which it was detected; its colour is the track it was given. A cell
# followed correctly has one colour.

labels = {"chaining": synchronise(chain, method="union-find").labels, "accurate": synchronise(everything).labels}
session = np.repeat(np.arange(SESSIONS), everything.sizes)
shown = np.arange(25)
figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharey=True, layout="constrained")
for axis, (name, found) in zip(axes, labels.items(), strict=True):
    for cell in shown:
        mine = np.flatnonzero(answer == cell)
        tracks, colour = np.unique(found[mine], return_inverse=True)
        colours = np.where((tracks < 0)[colour, None], [0.8, 0.8, 0.8, 1.0], plt.get_cmap("tab20")(colour % 20))
        axis.plot(session[mine], np.full(len(mine), cell), color="0.9", zorder=0)
        axis.scatter(session[mine], np.full(len(mine), cell), c=colours, s=18)
    axis.set(title=name, xlabel="session")
axes[0].set_ylabel("cell")
plt.show()
