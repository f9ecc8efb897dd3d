"""
In a notebook
=============

What matchings, answers and comparisons show as the last line of a cell, and the ways to the tables and graphs of other
libraries.
"""

import matplotlib.pyplot as plt

from stiefelsync import Matchings, compare, datasets, inspect, score, synchronise

# %%
# Matches of eight objects, half of them wrong. A problem shows what it is:
problem, truth = datasets.synthetic(universe=25, objects=8, observed=0.6, error=0.5, rng=3)
problem

# %%
# Before anything is solved: is it worth it?
inspect(problem)

# %%
# The answer, and how good it is, as here the truth is known:
result = synchronise(problem, 25)
print(score(result, truth))
result

# %%
# Several methods:
compare(problem, universe=25, truth=truth)

# %%
# An answer is a dict of columns. ``pandas.DataFrame(frame)``, ``polars.DataFrame(frame)`` and ``pyarrow.table(frame)``
# take it as it is; ``result.to_networkx()`` is a graph of it.
frame = result.to_frame()
print(frame)
print({name: column[:5].tolist() for name, column in frame.items()})

# %%
# In the other direction `Matchings.from_table` takes frames of scored pairs, here as plain lists.
table = {"id_left": ["a1", "a1", "a2"], "id_right": ["b1", "b2", "b2"], "score": [0.9, 0.4, 0.8]}
pairs = Matchings.from_table(table, sources="left,right")
print(synchronise(pairs).to_frame()["cluster_id"].tolist(), pairs.records.ids.tolist())

# %%
# The confidence of input matches, of those that are right and those that are wrong:
right = truth[problem.endpoints[:, 0]] == truth[problem.endpoints[:, 1]]
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for some, name, colour in ((right, "right matches", "tab:blue"), (~right, "wrong matches", "tab:orange")):
    axis.hist(result.confidence[some], bins=20, range=(0, 1), label=name, color=colour, alpha=0.7)
axis.set(xlabel="confidence of a match", ylabel="matches")
axis.legend(frameon=False)
plt.show()
