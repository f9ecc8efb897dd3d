"""Ten lines: contradicting pairwise matches in, one consistent labelling out."""

from stiefelsync import datasets, score, synchronise

problem, truth = datasets.synthetic(universe=25, objects=30, observed=0.6, error=0.5, rng=0)
print(problem)

result = synchronise(problem)
print(result.summary())

before, after = score(problem, truth), score(result.labels, truth)
print(f"fscore {before.fscore:.3f} → {after.fscore:.3f}")
assert after.fscore > before.fscore
