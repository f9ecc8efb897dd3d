"""
Records of several sources
==========================

A record linkage program compares records in pairs and writes how probable it is that two are the same. Pairs contradict
each other, so clusters have to be made of them. Here five catalogues of music are drawn with their truth, once free of
duplicates and once with some, and the clusters are compared with connected components, the default of most programs,
which need a threshold.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import Matchings, datasets, synchronise
from stiefelsync.matching.graph import connected


def fscore(labels, truth):
    """Return the fscore of the pairs of records that share a label."""

    def pairs(*columns):
        count = np.unique(np.stack(columns), axis=1, return_counts=True)[1]
        return (count * (count - 1) // 2).sum()

    return 2 * pairs(labels, truth) / (pairs(labels) + pairs(truth))


# %%
# The table has the columns of Splink; a data frame of any library, or a file, would do as well. The answer is a table,
# too, with the ids that came in.
drawn = datasets.records(400, sources=5, duplicates=0.2, rng=1)
print({name: column[:2].tolist() for name, column in drawn.pairs.items()})
result = synchronise(Matchings.from_table(drawn.pairs))
frame = result.to_frame()
print({name: column[:3].tolist() for name, column in frame.items()})

# %%
# Connected components at each threshold, and our clusters, which need none.
thresholds = np.linspace(0.02, 0.98, 49)
figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), sharey=True, layout="constrained")
for axis, duplicates in zip(axes, (0.0, 0.2), strict=True):
    drawn = datasets.records(400, sources=5, duplicates=duplicates, rng=1)
    pairs = Matchings.from_table(drawn.pairs, duplicates=True)  # every record an object of its own, with all pairs
    truth = drawn.truth_of(*pairs.records.columns().values())
    chained = [fscore(connected(pairs.n_points, pairs.endpoints[pairs.match_weights >= t]), truth) for t in thresholds]
    result = synchronise(Matchings.from_table(drawn.pairs))
    alone = result.labels < 0
    ours = fscore(np.where(alone, result.labels.max() + np.cumsum(alone), result.labels), truth)
    axis.plot(thresholds, chained, color="tab:orange", label="connected components")
    axis.axhline(ours, color="tab:blue", label=f"ours ({result.method})")
    axis.set(title=f"{duplicates:.0%} duplicates inside sources", xlabel="threshold of components", ylim=(0, 1))
axes[0].set_ylabel("fscore of pairs")
axes[0].legend(loc="lower right", frameon=False)
plt.show()

# %%
# The confidence is a probability: of the records told to be right with so much, about so many are.
told, right = result.point_confidence, np.zeros(len(truth), dtype=bool)
for entity in np.unique(truth):
    clusters, count = np.unique(result.labels[truth == entity], return_counts=True)
    right |= (truth == entity) & (result.labels == clusters[count.argmax()])
for low, high in ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
    some = (told >= low) & (told < high)
    print(f"told {told[some].mean():.2f}, right {right[some].mean():.2f}, {some.sum()} records")
