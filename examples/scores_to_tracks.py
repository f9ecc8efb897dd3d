"""From scores of every pair of points to a table of tracks, by a method of one's own, several problems at once."""

from __future__ import annotations

import joblib
import numpy as np
from numpy.typing import NDArray

from stiefelsync import Matchings, compare, rotate, round_labels, score, synchronise
from stiefelsync.methods import Callback, Outcome, register

OBJECTS, POINTS, FEATURES = 8, 12, 24


def similarities(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return noisy scores, shape (k, k, n, n), of points with features, and the truth, shape (k·n,)."""
    rng = np.random.default_rng(seed)
    universe = rng.standard_normal((POINTS, FEATURES))
    order = np.stack([rng.permutation(POINTS) for _ in range(OBJECTS)])
    seen = universe[order] + 1.2 * rng.standard_normal((OBJECTS, POINTS, FEATURES))
    return np.einsum("iaf,jbf->ijab", seen, seen), order.ravel()


@register(
    "rotated-eigenvectors",
    summary="the dominant eigenvectors of W, turned sparse, rounded object by object",
    consistent=True,
    cost="O(m³)",
    reference="an example",
    choose="to see how a method is written",
)
def rotated_eigenvectors(
    matchings: Matchings, universe: int, /, *, rng: np.random.Generator, callback: Callback | None = None
) -> Outcome:
    """Return the labels of the rotated basis of the dominant subspace."""
    _, vectors = np.linalg.eigh(matchings.to_matrix().toarray())
    return Outcome(labels=round_labels(rotate(vectors[:, -universe:]), matchings.sizes))


def solve(seed: int) -> tuple[float, float, NDArray[np.int64]]:
    """Return the fscore of the input, that of the answer, and the table of tracks of one problem."""
    scores, truth = similarities(seed)
    problem = Matchings.from_scores(scores, threshold=0.0)
    # The function itself, not its name: workers have not run the registration.
    result = synchronise(problem, POINTS, method=rotated_eigenvectors)
    return score(problem, truth).fscore, score(result.labels, truth).fscore, result.table()


def main() -> None:
    """Solve four problems on two workers and print the table of the first."""
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(solve)(seed) for seed in range(4))
    for seed, (before, after, _) in enumerate(found):
        print(f"problem {seed}: fscore {before:.3f} of the pairwise matches → {after:.3f}")
    table = found[0][2]
    print(
        f"{len(table)} tracks × {table.shape[1]} objects; row t holds the point of track t in every object, -1 = none"
    )
    print(table)
    assert all(after > before for before, after, _ in found)
    # Here the name is known, so the method stands beside all others.
    scores, truth = similarities(0)
    for row in compare(Matchings.from_scores(scores), ["rotated-eigenvectors", "fast"], universe=POINTS, truth=truth):
        print(f"{row.method:20} fscore {row.fscore:.3f}")


if __name__ == "__main__":
    main()
