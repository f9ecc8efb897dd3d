"""What others do with the probabilities that two detections are one, and measures of answers by the truth.

Every rival gets the candidates that ours gets, from the same registration, and takes a threshold. A label is an integer
per detection, -1 for one that is alone. The schemes are written from their descriptions; none is the program itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from stiefelsync import Matchings, synchronise
from stiefelsync.matching.graph import connected
from stiefelsync.registration import Candidates, greedy

__all__ = ["CELLS", "UNITS", "Rival", "fscores", "groups_of_unitmatch", "hdbscan_missing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rival = Callable[[Candidates, float], Ints]


def fscores(labels: Ints, truth: Ints, sizes: Ints) -> dict[str, float]:
    """Return precision, recall and F1 of all pairs of days, F1 of neighbouring days and of complete tracks.

    The last two are Track2p's measures. A complete track has one detection on every day; it counts as found if it is
    there as a whole: F1 = 2 found / (true complete tracks + complete tracks of the answer). NaN where there are none.
    """
    day = np.repeat(np.arange(len(sizes)), sizes)
    held = {"both": (labels >= 0) & (truth >= 0), "found": labels >= 0, "true": truth >= 0}
    columns = {"both": (labels, truth), "found": (labels,), "true": (truth,)}
    counts = {}
    for name, inside in held.items():
        _, row = np.unique(np.stack([of[inside] for of in columns[name]]), axis=1, return_inverse=True)
        shape = int(row.max(initial=-1)) + 1, len(sizes)
        table = np.bincount(row.ravel() * len(sizes) + day[inside], minlength=shape[0] * shape[1]).reshape(shape)
        pairs = (table.sum(axis=1) ** 2 - (table**2).sum(axis=1)).sum() / 2
        complete = int((table == 1).all(axis=1).sum())
        counts[name] = float(pairs), float((table[:, :-1] * table[:, 1:]).sum()), complete
    both, found, true = counts["both"], counts["found"], counts["true"]
    # A row of both is one label within one cell; a track is found as a whole if neither of the two has more.
    whole = _found_whole(labels, truth, len(sizes), day)
    tracks = found[2] + true[2]
    return {
        "precision": both[0] / found[0] if found[0] else 1.0,
        "recall": both[0] / true[0] if true[0] else 1.0,
        "F1": 2 * both[0] / (found[0] + true[0]),
        "neighbours": 2 * both[1] / (found[1] + true[1]),
        "complete": 2 * whole / tracks if tracks else float("nan"),
    }


def _found_whole(labels: Ints, truth: Ints, days: int, day: Ints) -> int:
    """Return how many cells of all days are one label, which holds nothing else."""
    whole = 0
    for cell in np.unique(truth[truth >= 0]):
        at = np.flatnonzero(truth == cell)
        if len(at) == days and len(np.unique(day[at])) == days and labels[at[0]] >= 0:
            whole += bool((labels[at] == labels[at[0]]).all()) and np.count_nonzero(labels == labels[at[0]]) == days
    return whole


def _components(m: int, ends: Ints) -> Ints:
    if not len(ends):
        return np.full(m, -1)
    labels = connected(m, ends)
    return np.where(np.bincount(labels)[labels] > 1, labels, -1)


def union_find(candidates: Candidates, threshold: float) -> Ints:
    """Return what one-to-one matches of all pairs of days connect."""
    found = candidates.matchings(threshold)
    return _components(found.n_points, found.endpoints)


def _of_pairs(candidates: Candidates, threshold: float, kept: Callable[[Ints, Ints], NDArray[np.bool_]]) -> Ints:
    found: Matchings = candidates.matchings(threshold)
    first, second = candidates.objects[found.endpoints].T
    return _components(found.n_points, found.endpoints[kept(first, second)])


def chaining(candidates: Candidates, threshold: float) -> Ints:
    """Return chains of one-to-one matches of neighbouring days (Track2p's scheme)."""
    return _of_pairs(candidates, threshold, lambda i, j: j == i + 1)


def to_reference(candidates: Candidates, threshold: float) -> Ints:
    """Return one-to-one matches of every day to the one in the middle."""
    middle = len(candidates.sizes) // 2
    return _of_pairs(candidates, threshold, lambda i, j: (i == middle) | (j == middle))


def growing_union(candidates: Candidates, threshold: float) -> Ints:
    """Return what comes of matching day after day to the latest detections of all cells so far (CaImAn's scheme)."""
    m, (a, b) = len(candidates.objects), candidates.ends.T
    P = sparse.coo_array((candidates.p, (a, b)), shape=(m, m)).tocsr()
    labels, latest = np.full(m, -1), np.empty(0, dtype=np.int64)
    for points in np.split(np.arange(m), np.cumsum(candidates.sizes)[:-1]):
        gain = np.maximum(P[latest][:, points].toarray() - threshold, 0)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        matched = gain[rows, columns] > 0
        labels[points[columns[matched]]] = rows[matched]
        latest[rows[matched]] = points[columns[matched]]
        new = np.setdiff1d(points, points[columns[matched]])
        labels[new] = len(latest) + np.arange(len(new))
        latest = np.concatenate([latest, new])
    return np.where(np.bincount(labels)[labels] > 1, labels, -1)


def hdbscan_missing() -> bool:
    """Return whether fast_hdbscan is not installed; it is no dependency."""
    try:
        import fast_hdbscan  # noqa: F401
    except ImportError:
        return True
    return False


def hdbscan(candidates: Candidates, threshold: float) -> Ints:
    """Return clusters of distances 1 - p up to 1 - threshold, never two of one day, with the settings of ROICaT.

    That is leaves of at least two and at most as many points as there are days, and clusters nearer than mean and
    standard deviation of the distances joined.
    """
    from fast_hdbscan import HDBSCAN

    m, above = len(candidates.objects), candidates.p > threshold
    (a, b), distance = candidates.ends[above].T, np.maximum(1 - candidates.p[above], 1e-6)
    entries = np.concatenate([distance, distance]), (np.concatenate([a, b]), np.concatenate([b, a]))
    graph = sparse.csr_array(sparse.coo_array(entries, shape=(m, m)))
    found = HDBSCAN(
        min_cluster_size=2, cluster_selection_method="leaf", max_cluster_size=len(candidates.sizes),
        cluster_selection_epsilon=float(distance.mean() + distance.std()), metric="precomputed",
        algorithm="kruskal", cannot_link_groups=candidates.objects.astype(np.int32),
    ).fit(graph.astype(np.float64))  # fmt: skip
    return np.asarray(found.labels_, dtype=np.int64)


def tracks(candidates: Candidates, threshold: float) -> Ints:
    """Return what method "tracks" makes of one-to-one matches: one of the two answers that ours weighs."""
    found = candidates.matchings(threshold)
    return synchronise(found, method="tracks").labels if found.n_matches else np.full(found.n_points, -1)


CELLS: dict[str, Rival] = {
    "tracks alone": tracks,
    "greedy alone": greedy,
    "HDBSCAN like ROICaT": hdbscan,
    "union-find": union_find,
    "growing union": growing_union,
    "middle day": to_reference,
    "chaining": chaining,
}
if hdbscan_missing():
    del CELLS["HDBSCAN like ROICaT"]


def groups_of_unitmatch(p: Floats, recording: Ints, threshold: float, rule: str) -> Ints:
    """Return UnitMatch's groups: pairs above the threshold in both directions, in order of mean probability.

    Parameters
    ----------
    p : (m, m)
        Its matrix, which is not symmetric.
    rule : {"conservative", "intermediate", "liberal"}
        A pair joins two groups if every member of the one matches every member of the other; only those of the same
        recording or the next one need to; or in any case.
    """
    mean, match = (p + p.T) / 2, np.minimum(p, p.T) > threshold
    a, b = np.nonzero(np.triu(match, 1))
    owner, members = np.arange(len(p)), {n: [n] for n in range(len(p))}
    for t in np.argsort(-mean[a, b], kind="stable"):
        one, other = owner[a[t]], owner[b[t]]
        if one == other:
            continue
        rows, columns = np.array(members[one]), np.array(members[other])
        fit = match[np.ix_(rows, columns)]
        if rule == "intermediate":
            fit = fit | (np.abs(recording[rows][:, None] - recording[columns]) > 1)
        if rule == "liberal" or fit.all():
            owner[columns] = one
            members[one] += members.pop(other)
    return np.where(np.bincount(owner)[owner] > 1, owner, -1)


def clean_graph(candidates: Candidates, threshold: float) -> Ints:
    """Return components of one-to-one matches in which a doubled recording loses its lightest edge once.

    That is how SpikeInterface cleans its graphs; what stays doubled is as it leaves it.
    """
    found = candidates.matchings(threshold)
    ends, weights, owner = found.endpoints, found.match_weights, candidates.objects
    part = connected(found.n_points, ends)
    kept = np.ones(len(ends), dtype=bool)
    for group in np.unique(part[ends[:, 0]]):
        inside = np.flatnonzero(part[ends[:, 0]] == group)
        nodes = np.unique(ends[inside])
        for session in np.flatnonzero(np.bincount(owner[nodes]) > 1):
            own = nodes[owner[nodes] == session]
            edges = inside[np.isin(ends[inside], own).any(axis=1) & kept[inside]]
            if len(edges):
                kept[edges[np.argmin(weights[edges])]] = False
    return _components(found.n_points, ends[kept])


UNITS: dict[str, Rival] = {"greedy": greedy, "clean graph": clean_graph, "union-find": union_find}
