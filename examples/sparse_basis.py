"""The solver alone: among all bases of the dominant subspace of W, a sparse one."""

import numpy as np

from stiefelsync import datasets, sparse_stiefel

problem, truth = datasets.synthetic(universe=30, objects=5, observed=0.9, error=0.3, rng=0)
W, d = problem.to_matrix(), len(np.unique(truth))

for name, step in (("Orthogonal Iteration", "none"), ("sparse Stiefel", "gradient")):
    result = sparse_stiefel(W, d, step=step, rng=0)
    size = np.abs(result.U)
    near_zero = (size < 0.1 * size.max()).mean()
    print(f"{name:20}  objective {result.objective:.4f}  g(U) {result.secondary:5.2f}  {near_zero:.0%} near zero")

# The answer can be verified without the solver.
print(f"max |UᵀU − I| = {result.orthogonality_error():.1e}, residual of the subspace = {result.residual(W):.1e}")
