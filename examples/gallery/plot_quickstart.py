"""
Contradicting matches in, one labelling out
===========================================

Thirty objects see 60 % of 25 points each; half of the rows of every pairwise matching are permuted at random. All
pairs together still say which point is which.
"""

from stiefelsync import datasets, plotting, score, synchronise

problem, truth = datasets.synthetic(universe=25, objects=30, observed=0.6, error=0.5, rng=0)
result = synchronise(problem)
print(result.summary())
print(f"fscore {score(problem, truth).fscore:.3f} before, {score(result.labels, truth).fscore:.3f} after")

# %%
# The matrix of all matches before and after. Consistent matches form blocks of permutations that agree around every
# cycle.

figure = plotting.overview(result)
