"""How many universe points there are, from the matches alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from scipy.special import betaincinv

from stiefelsync._border import typed
from stiefelsync.matching.graph import components, conflicts, triangle_support
from stiefelsync.matching.matchings import Matchings

__all__ = ["UniverseEstimate", "estimate_universe"]

_CLEAR_GAP = 3.0  # a gap is clear when it is so many times the next largest
# A gap is sought up to this multiple of the eigenvalues' sum, which rather exceeds d.
_SOUGHT = 1.25
_MARGIN = 1.1  # too small a universe cannot be repaired, too large a one can
_MAX_DENSE_POINTS = 1_000  # points of a component up to which all its eigenvalues are computed
# A count by eigenvalues below this share of their sum has taken look-alikes for one point.
_SHORT = 0.98
_SAMPLED_OBJECTS = 128  # objects, evenly spaced, that say who is seen beyond comparisons
# Up to here s and the spread of degrees are so near 1 that eigenvalues still count.
_FEW_MISSING = 1.1
_EVERYWHERE = 0.9  # above this r is 1 but for chance
# Third objects lie between far ones but beside near ones, so that r falls about half as fast as
# sight does.
_FALL = 2
_SURE_IN_DEVIATIONS = 4.0  # standard deviations by which degrees must differ more than chance

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class UniverseEstimate:
    """An estimate of the universe size d.

    Attributes
    ----------
    size
        The estimate; at least `floor`.
    floor
        Points of the largest object, below which no labelling exists.
    sure
        Whether the data speak clearly; if not, `size` is meant to err on the large side.
    reason
        Why, in a sentence.
    """

    size: int
    floor: int
    sure: bool
    reason: str


@typed
def estimate_universe(matchings: Matchings) -> UniverseEstimate:
    """Estimate the universe size d from the pairs of objects that were compared.

    Those were compared that share a match.

    Connected components are counted separately. One without a conflict is a single universe point.
    For one with conflicts let λ_1 ≥ λ_2 ≥ … be the eigenvalues of D^-½ W D^-½ (one minus those of
    the normalised Laplacian), D the row sums of W. If all objects were compared and there is no
    noise, d of them are 1 and the others 0, so a clear gap after λ_c says d = c. Without a clear
    gap the sum of all of them, ``tr D^-½ W D^-½ = Σ_a 1 / D_aa``, still says d: a universe point
    that n points show has n rows of degree n. Wrong matches move eigenvalues but hardly their sum,
    and missing matches make it larger. Ten per cent are then added. Two things are allowed for:

    * Objects that were not compared. A point is expected in s times as many objects as it was
      compared with and is seen in, D_aa = 1 + s·(number of matches). s follows from r, the rate at
      which third objects see a point in two objects that were not compared, relative to two that
      were: r = 1 where everybody may see everything, and less where a point is only seen near by.
      Objects t comparisons away count r^(t−1).
    * Points that are seen by very different numbers of objects. Wrong matches even the degrees out;
      their spread, divided by the share of right matches (from the triangles that matches close),
      is put back.

    Notes
    -----
    O(M) besides the eigenvalues, which only components of at most 1,000 points get, at O(n³), and
    the triangles, O(Σ deg²), which are only counted if degrees differ by more than chance. Weights
    are ignored.

    Examples
    --------
    >>> estimate_universe(Matchings.from_labels([0, 1, 1, 2, 0, 2], [2, 2, 2]))
    UniverseEstimate(size=3, floor=2, sure=True, reason='the matches are consistent')
    """
    floor = int(matchings.sizes.max(initial=0))
    n, component = components(matchings)
    found = conflicts(matchings, component)
    if not found.count:
        return UniverseEstimate(n, floor, True, "the matches are consistent")
    matches = np.bincount(matchings.endpoints.ravel(), minlength=matchings.n_points)
    compared = _compared(matchings)
    partners = np.diff(compared.indptr)
    complete = bool((partners[matchings.sizes > 0] == np.count_nonzero(matchings.sizes) - 1).all())
    beyond = 1.0 if complete else _beyond(matchings, compared)
    # The trace of every component, corrected for who was not compared and for how unevenly points
    # are seen.
    share = _shares(matchings, matches, partners, beyond)
    trace = np.bincount(component, weights=share, minlength=n)
    spread = _spread(matchings, matches, partners)
    clear, vague, n_vague = n - found.count, 0.0, 0
    order = np.argsort(component, kind="stable")
    start = np.append(0, np.cumsum(np.bincount(component, minlength=n)))
    # One block for each component, cut out of one matrix, if eigenvalues can say anything.
    W = matchings.to_matrix()[order][:, order] if beyond < _FEW_MISSING and spread < _FEW_MISSING else None
    for c in found.which:
        here = slice(start[c], start[c + 1])
        least = int(np.bincount(matchings.point_objects[order[here]]).max())
        # A clear gap counts exactly; else the trace, which wrong matches hardly change, is taken
        # and a margin added.
        count = None if W is None else _count(W, here, least, float(trace[c]))
        if count is None:
            vague += max(trace[c] * spread, least)
            n_vague += 1
        else:
            clear += count
    if not n_vague:
        reason = "the matches are consistent but for conflicts that the eigenvalues of the match graph resolve clearly"
        return UniverseEstimate(max(clear, floor), floor, True, reason)
    size = min(max(clear + math.ceil(_MARGIN * vague), floor), matchings.n_points)
    reason = (
        f"{n_vague} of {n} connected components have conflicts and no clear gap in their eigenvalues;"
        " the sum of the eigenvalues was taken and a tenth added"
    )
    return UniverseEstimate(size, floor, False, reason)


def _shares(matchings: Matchings, matches: Ints, partners: Ints, beyond: float) -> Floats:
    """Return for every point what it adds to the trace, 1 / D_aa; shape (m,)."""
    share = np.asarray(1 / (1 + beyond * matches))
    if beyond > 1:
        # Chance in few comparisons makes the mean of inverses exceed the inverse of the mean.
        rows = float(partners @ matchings.sizes)
        missed = rows / max(float(matches.sum()), 1.0) - 1
        share = share / (1 + missed * matchings.n_points / rows * (1 - 1 / beyond))
    return share


def _compared(matchings: Matchings) -> Any:
    """Return the 0/1 matrix of compared objects, CSR of shape (k, k)."""
    # The only kind that SciPy before 1.15 accepts for shortest paths.
    i, j = matchings.pair_objects.T.astype(np.int32)
    k = matchings.n_objects
    return sparse.csr_array((np.ones(2 * len(i)), (np.append(i, j), np.append(j, i))), shape=(k, k))


def _beyond(matchings: Matchings, compared: Any) -> float:
    """Return s: in how many objects a point is expected, per compared one that sees it.

    Point b of a third object is matched in both i and l or not. How often it is, among all points
    of objects that were compared with i and l, is the rate of the pair (i, l). The rate of pairs
    that were not compared over that of pairs that were is r.
    """
    m, k = matchings.n_points, matchings.n_objects
    a, b = matchings.endpoints.T
    owner = matchings.point_objects.astype(np.int64)
    seen = sparse.csr_array((np.ones(2 * len(a)), (np.append(a, b), owner[np.append(b, a)])), shape=(m, k))
    some = np.flatnonzero(np.diff(compared.indptr))
    # A sample of objects, evenly spaced, is enough for a rate and keeps the products small.
    some = some[np.linspace(0, len(some) - 1, min(len(some), _SAMPLED_OBJECTS)).astype(np.int64)]
    here = compared[:, some].toarray()
    both = np.asarray(seen.T @ seen[:, some].toarray())
    chances = np.asarray(compared @ (matchings.sizes[:, None] * here))
    distance = shortest_path(compared, unweighted=True, indices=some).T
    near, far = distance == 1, distance == 2
    if not far.any() or not chances[near].sum():
        return 1.0
    rate = [float(both[which].sum() / max(chances[which].sum(), 1e-12)) for which in (near, far)]
    r = min(rate[1] / max(rate[0], 1e-12), 1.0)
    # What is seen falls off with every further comparison in between.
    reached = np.isfinite(distance) & (distance > 0)
    fall = 1.0 if r > _EVERYWHERE else r**_FALL
    return float((fall ** (distance[reached] - 1)).sum() / near.sum())


def _spread(matchings: Matchings, matches: Ints, partners: Ints) -> float:
    """Return by which factor the sum of 1 / degree grows when the degrees' spread is put back.

    It is 1 if their spread is chance.

    The share x of compared objects that see a point is taken to be beta distributed over all
    points, with the mean and the variance beyond chance observed, the latter divided by the square
    of the share of right matches. Points are seen in proportion to x: where it is Beta(α, β) over
    universe points it is Beta(α + 1, β) over points. So the first parameter is 1 at least, without
    which the few points that hardly anybody sees would count for too much.
    """
    n = partners[matchings.point_objects].astype(np.float64)
    used = n > 1
    x, n = matches[used] / n[used], n[used]
    mean = float(x.mean()) if len(x) else 0.0
    if not 0 < mean < 1:
        return 1.0
    # Binomial variance is chance; only what exceeds it by far is taken for a spread.
    chance = mean * (1 - mean) / n
    excess = float(np.mean((x - mean) ** 2 - chance))
    if excess <= _SURE_IN_DEVIATIONS * float(np.mean(2 * chance**2)) ** 0.5 / math.sqrt(len(x)):
        return 1.0
    right = max(_closure(matchings), 0.05) ** (1 / 3)
    size = float(n.mean()) + 1

    def inverse(variance: float) -> float:
        """Mean of 1 / (1 + binomial(size - 1, x)), x beta distributed.

        Of (1 - (1 - x)^size) / (size·x).
        """
        kappa = max(mean * (1 - mean) / variance - 1, 1 / mean)
        grid = betaincinv(kappa * mean, kappa * (1 - mean), (np.arange(400) + 0.5) / 400).clip(1e-9, 1)
        return float(np.mean((1 - (1 - grid) ** size) / (size * grid)))

    return max(inverse(excess / right**2) / inverse(excess), 1.0)


def _closure(matchings: Matchings) -> float:
    """Return the share of two matches in a row that a third match closes.

    All three objects were compared.
    """
    a, b = matchings.endpoints.T
    owner = matchings.point_objects.astype(np.int64)
    m, k = matchings.n_points, matchings.n_objects
    seen = sparse.csr_array((np.ones(2 * len(a)), (np.append(a, b), owner[np.append(b, a)])), shape=(m, k))
    wedges = float(seen.multiply(seen @ _compared(matchings)).sum()) / 2
    return float(triangle_support(matchings).sum()) / max(wedges, 1.0)


def _count(W: Any, here: slice, least: int, trace: float) -> int | None:
    """Return the number of universe points in one conflicted component, None if not clear.

    The component is the rows `here` of W.
    """
    if trace <= least + 0.5:
        # The sum rather exceeds d, and d is at least the number of points one object has here.
        return least
    points = here.stop - here.start
    most = min(math.ceil(_SOUGHT * trace) + 1, points - 1)
    if most - least < 2 or points > _MAX_DENSE_POINTS:
        return None
    block = W[here, here]
    block.data[:] = 1.0
    # Eigenvalues of the normalised block: those near 1 are universe points.
    scale = 1 / np.sqrt(block.sum(axis=1))
    values = np.linalg.eigvalsh((block * scale).multiply(scale[:, None]).toarray())[::-1][: most + 1]
    gaps = (values[:-1] - values[1:])[least - 1 : most]
    second, first = np.partition(gaps, -2)[-2:]
    count = least + int(gaps.argmax())
    return count if first >= _CLEAR_GAP * second and count >= _SHORT * trace else None
