"""Every method has one signature, so a comparison is a loop; this one comes with the package."""

from stiefelsync import compare, datasets

problem, truth = datasets.synthetic(universe=25, objects=30, observed=0.6, error=0.6, rng=0)
methods = ["accurate", "fast", "sparse-stiefel", "sparse-stiefel:extra_iter=10", "matcheig", "spectral", "union-find"]

for row in compare(problem, methods, universe=25, truth=truth, certificate=True):
    mark = "" if row.consistent else "  (not cycle-consistent)"
    print(f"{row.method:30} fscore {row.fscore:.3f}  gap {row.gap:6.1%}  {row.seconds:.2f} s{mark}")
