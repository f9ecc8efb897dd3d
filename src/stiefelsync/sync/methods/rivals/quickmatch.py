"""QuickMatch (Tron, Zhou, Esteves and Daniilidis 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.method import Callback, Details, Outcome, Progress, Reporter, Stopwatch, register
from stiefelsync.sync.methods.rivals._joining import join_in_order, label_tracks
from stiefelsync.sync.options import option

__all__ = ["Options", "QuickMatchDetails", "run"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FARTHEST = 2.0  # squared distance of unit vectors at right angles
# Densities and similarities closer than this are equal, lest the last bit of a processor decide.
_DIGITS = 9


@dataclass(frozen=True)
class Options:
    """Options of quickmatch."""

    edge: float = option(
        1.0, "Longest edge of the tree that may join two tracks, as a share of the distinctiveness of both.", above=0
    )
    density: float = option(0.25, "Width of the kernel of the density, as a share of the distinctiveness.", above=0)


@dataclass(frozen=True, eq=False, repr=False)
class QuickMatchDetails(Details):
    """What QuickMatch tells.

    Attributes
    ----------
    density : (m,) float64
        Of every point, among the rows of W.
    """

    density: Floats


@register(
    "quickmatch",
    summary="density clustering: a tree towards denser points, broken by distance and distinctiveness",
    consistent=True,
    cost="O(Σ deg² + m log m), memory as many numbers as there are pairs of points with a common match",
    reference="Tron, Zhou, Esteves, Daniilidis: Fast multi-image matching via density-based clustering, ICCV 2017",
    choose="to compare with clustering; the universe size need not be known",
    sized=False,
    options=Options,
)
def run(
    matchings: Matchings,
    _universe: int,
    options: Options,
    /,
    *,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Outcome:
    """Cluster points by the density of their descriptors, never two points of an object together.

    With descriptors x_a, distances ``d_ab = ‖x_a − x_b‖`` and the *distinctiveness* σ_a, the
    distance of a to the nearest other point of its own object:

    1. density ``h_a = Σ_b exp(−d_ab² / 2(ρ σ_b)²)``, ρ = `density`;
    2. a tree: the parent of a is the nearest point of another object with a larger h;
    3. edges from the shortest to the longest: one joins the tracks at its ends unless these share
       an object or the edge is longer than `edge` times the least σ in either.

    The paper's descriptors come from images. Here there are matches only, so x_a is row a of W,
    scaled to length 1: points that are matched with the same points are alike, and points without a
    common partner are √2 apart.

    Notes
    -----
    Cycle-consistent. The similarities W Wᵀ are stored sparsely, O(Σ deg²) in time. Random numbers
    and the universe size play no part; weights count by W. Stopped by the callback it leaves what
    longer edges would join apart.

    This differs from the paper in: descriptors as above; parents of the same object, which could
    never be joined, are not considered; the defaults of `edge` and `density` are ours, because
    distances between rows of W spread less than those between image descriptors. They were chosen
    on ``synthetic(25, k, .6, σ)`` with k = 30, σ = .3 and .6, and k = 10, σ = .5, seeds 100 and
    101, where `edge` from 0.9 on makes no difference; it became 1 after 0.9 had failed on the crowd
    of ``benchmarks.shapes`` (.003; on seed 100 .002 against .362). The shape of the paper's kernel
    could not be confirmed; a Gaussian is used.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 1]]}, [2, 1, 2])
    >>> run(problem, 2, rng=np.random.default_rng(0)).labels.tolist()
    [0, 1, 0, 0, 1]
    """
    watch, report = Stopwatch(), Reporter(callback)
    owner = matchings.point_objects
    with watch("similarities"):
        S = _similarities(matchings)
    with watch("density"):
        rows = np.repeat(np.arange(S.shape[0]), np.diff(S.indptr))
        apart = np.maximum(_FARTHEST - 2 * S.data, 0.0)
        sigma = _distinctiveness(rows, S.indices, apart, owner)
        density = _density(rows, S.indices, apart, options.density**2 * sigma)
    with watch("tree"):
        child, parent, length = _tree(rows, S.indices, apart, density, owner)
    with watch("joining"):
        order = np.lexsort((child, length))
        least, bound = sigma.tolist(), (length[order] / options.edge**2).tolist()

        def allowed(edge: int, a: int, b: int) -> bool:
            if bound[edge] > min(least[a], least[b]):
                return False
            least[a] = least[b] = min(least[a], least[b])
            return True

        edges = np.stack([child, parent], axis=1)[order]
        stop = lambda done: report(Progress("edges", done, len(edges)))  # noqa: E731
        labels = label_tracks(join_in_order(owner, edges, allowed=allowed, stop=stop))
    return Outcome(labels=labels, status=report.status, timings=watch.seconds, details=QuickMatchDetails(density))


def _similarities(matchings: Matchings) -> Any:
    """Return the cosines between the rows of W, (m, m) sparse, without those of a point with itself."""
    W: Any = matchings.to_matrix()
    X = sparse.diags_array(1 / np.sqrt(np.asarray(W.multiply(W).sum(axis=1)).ravel())) @ W
    S = sparse.csr_array(X @ X.T)
    S.setdiag(0)
    S.eliminate_zeros()
    S.sort_indices()
    S.data = np.round(S.data, _DIGITS)
    return S


def _distinctiveness(rows: Ints, columns: NDArray[Any], apart: Floats, owner: NDArray[np.int32]) -> Floats:
    """Return the squared distance of every point to the nearest one of its own object; shape (m,)."""
    sigma = np.full(len(owner), _FARTHEST)
    own = owner[rows] == owner[columns]
    np.minimum.at(sigma, rows[own], apart[own])
    return np.asarray(np.maximum(sigma, 10.0**-_DIGITS))


def _density(rows: Ints, columns: NDArray[Any], apart: Floats, width: Floats) -> Floats:
    """Return the density at every point, (m,), but for what all have in common.

    A point b without a common partner is √2 away and adds the same to all; only the rest needs to
    be summed.
    """
    gain = np.exp(-apart / (2 * width[columns])) - np.exp(-_FARTHEST / (2 * width[columns]))
    alone = 1 - np.exp(-_FARTHEST / (2 * width))
    return np.asarray(np.round(alone + np.bincount(rows, gain, minlength=len(width)), _DIGITS))


def _tree(
    rows: Ints, columns: NDArray[Any], apart: Floats, density: Floats, owner: NDArray[np.int32]
) -> tuple[Ints, Ints, Floats]:
    """Return the edges of the density tree: children, parents and squared lengths, one per point that has a parent."""
    place = np.empty(len(density), dtype=np.int64)
    # Of equally dense points the first is denser.
    place[np.argsort(-density, kind="stable")] = np.arange(len(density))
    up = np.flatnonzero((place[columns] < place[rows]) & (owner[columns] != owner[rows]))
    rows, columns, apart = rows[up], columns[up], apart[up]
    start = np.flatnonzero(np.diff(rows, prepend=-1))
    if not len(start):
        return rows, columns.astype(np.int64), apart
    nearest = np.minimum.reduceat(apart, start)
    times = np.diff(start, append=len(rows))
    # Of the nearest points the densest.
    rank = np.where(apart == np.repeat(nearest, times), place[columns], len(density))
    best = np.minimum.reduceat(rank, start)
    return rows[start], np.argsort(place, kind="stable")[best], nearest
