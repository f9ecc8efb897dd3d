"""
From folders of suite2p to one table
====================================

A mouse was imaged on eight days, and suite2p found the cells of every day. Which of them are the
same cell? One call reads the folders, lays the days over each other, follows the cells, and writes
a table and a page.

The mouse is drawn here, so that there is something to compare with: 180 cells live for some weeks,
a fifth of them is not found on any one day, the field of view shifts and turns, and some
detections are no cells. The folders have suite2p's layout; name your own instead.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import Matchings, datasets, score, synchronise
from stiefelsync.following import follow

# %%
# Folders
# -------

root = Path(tempfile.mkdtemp())
days, truth = datasets.sessions(8, 180, difficulty="default", shape=(400, 400), folder=root / "mouse", rng=1)
for path in sorted(root.rglob("day01/**/*.npy")):
    print(path.relative_to(root))

# %%
# One call
# --------
# On the command line: ``stiefelsync sync mouse/*/ -o cells.csv --report cells.html``

found = follow(sorted((root / "mouse").iterdir()), root / "cells.csv", report=root / "cells.html", title="Mouse 1")
with (root / "cells.csv").open(newline="", encoding="utf-8") as file:
    for row in list(csv.reader(file))[:4]:
        print(",".join(row))

# %%
# How good is it?
# ---------------
# Of the pairs of detections in the table, how many are one cell (precision), and how many of the
# pairs of one cell are in it (recall)? Beside it what comes of matching every day to the next one
# only, as is often done, with the same probabilities: the chain ends on the first day on which a
# cell is not found.

part = found.parts[0]
sizes = [len(day) for day in days]
pairs = part.candidates.matchings(0.5).pairs()
chain = Matchings.from_pairs({pair: rows for pair, rows in pairs.items() if pair[1] == pair[0] + 1}, sizes)
chained = synchronise(chain, method="union-find").labels
for name, answer in (("followed", part.labels), ("day to day", chained)):
    told = score(answer, truth)
    print(f"{name:12} precision {told.precision:.3f}  recall {told.recall:.3f}  F1 {told.fscore:.3f}")

table = found.table
print(f"{(table.sessions_per_cell > 1).sum()} cells on two or more days, {(table.sessions_per_cell == 8).sum()} on all")

# %%
# The fields of view
# ------------------
# The same cell in the same colour on all days; grey: found on one day only; a cross: lost between
# two days on which it was found. The page shows this, too, and the least sure cells below.

colours = plt.get_cmap("hsv")(np.random.default_rng(0).permutation(len(table)) / len(table))
figure, axes = plt.subplots(2, 4, figsize=(12, 6.4), layout="constrained")
middle = len(days) // 2
for day, axis in enumerate(axes.flat):
    session = days[day]
    axis.imshow(session.image, cmap="gray", vmax=np.percentile(session.image, 99.8))
    for cell, index in enumerate(table.index[:, day].tolist()):
        known = np.flatnonzero(table.index[cell] >= 0)
        if index >= 0:
            y, x = np.divmod(session.footprints[[index]].indices, session.shape[1])
            axis.scatter(x, y, s=0.4, color=colours[cell] if len(known) > 1 else "0.6", alpha=0.6, linewidths=0)
        elif known[0] < day < known[-1]:
            near = int(known[np.argmin(abs(known - day))])
            pair = min(near, day), max(near, day)
            at = days[near].centroids[[table.index[cell, near]]]
            alignment = part.compared.alignments[pair]
            # The alignment of two days leads from the later one to the earlier one.
            back = np.linalg.inv(np.vstack([alignment.matrix, [0, 0, 1]]))
            at = alignment(at) if near > day else at @ back[:2, :2].T + back[:2, 2]
            axis.plot(*at[0], "x", color="red", markersize=3)
    axis.set(title=f"{table.names[day]}: {(table.index[:, day] >= 0).sum()} cells", xticks=[], yticks=[])
    axis.set(xlim=(0, 400), ylim=(400, 0))
plt.show()
