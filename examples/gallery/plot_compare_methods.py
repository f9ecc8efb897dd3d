"""
Comparing methods, with error bars
==================================

Every method, ours, the rivals and one of your own, has one signature, so a comparison is one call. Several problems are
given at once: one seed means nothing.
"""

import matplotlib.pyplot as plt
import numpy as np

from stiefelsync import compare, datasets, plotting
from stiefelsync.matching.graph import components


# %%
# A method of one's own is a function of the matches. This one takes the connected components of the matches that close
# three triangles or more with others, and gives up those that hold two points of one object.
def triangles(matchings):
    """Connected components of the matches in triangles."""
    W = matchings.to_matrix().tocsr()
    a, b = matchings.endpoints.T
    two_steps = np.asarray((W @ W)[a, b]).ravel() - 2  # less the match itself, from either end
    labels = components(matchings.keep(two_steps >= 3))[1]
    own = labels * matchings.n_objects + matchings.point_objects
    _, where, count = np.unique(own, return_inverse=True, return_counts=True)
    return np.where(np.isin(labels, labels[count[where] > 1]), -1, labels)


drawn = [datasets.synthetic(universe=25, objects=20, observed=0.6, error=0.6, rng=seed) for seed in range(5)]
problems, truths = zip(*drawn, strict=True)
methods = ["accurate", "fast", "tracks", "sparse-stiefel", "matcheig", "spectral", "projected-power", triangles]
rows = compare(problems, methods, universe=25, truth=truths)

# %%
# The bars are standard deviations over the five problems; the star marks answers that are not cycle-consistent.
figure = plotting.comparison(rows)
plt.show()

# %%
# For a paper the same is a table of LaTeX; in a notebook the last line of a cell shows it, and ``rows.to_frame()`` is
# one for pandas or polars.
print(rows.to_latex())
