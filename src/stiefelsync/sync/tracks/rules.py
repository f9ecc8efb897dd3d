"""Evidence that two clusters of points are the same universe point, from strong to weak.

Every rule takes a quotient whose edges are free of conflict and returns one number per edge: 0
where it has nothing to say, else in (0, 1], and the larger the sooner the edge should be merged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call
from stiefelsync.sync.tracks.clusters import Quotient

__all__ = ["Rule", "few_choices", "rule_gain", "squares", "triangle_counts", "triangles"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rule = Callable[[Quotient], Floats]

# Neighbours beyond which a cluster is left out of squares, whose cost is their square.
_MAX_NEIGHBOURS_OF_SQUARES = 64


def rule_gain(q: Quotient, rule: Rule) -> Floats:
    """Return the evidence of one rule, with parallel matches before everything else; shape (E,).

    Where two or more matches run between the clusters the evidence is 1 plus their density, weight
    / (|A| |B|).

    Notes
    -----
    O(E) beside the rule. A cycle of matches of any length ends as such a bundle once the rest of it
    is merged.
    """
    gain = rule(q)
    call("prefer_parallel", q.A, q.B, q.count, q.weight, q.n_edges, q.start, gain)
    return gain


def triangles(q: Quotient) -> Floats:
    """Third clusters have matches with both.

    The entries of W∘W², counted by :func:`triangle_counts`.
    """
    return _graded(q, triangle_counts(q.A, q.B, q.n))


def triangle_counts(A: Ints, B: Ints, n: int) -> Ints:
    """Count the triangles through every edge of a graph.

    Parameters
    ----------
    A, B : (E,) int64
        Edges between n vertices, A < B, sorted by (A, B), each once.

    Notes
    -----
    O(Σ_{(a,c)} deg(c)) over edges a < c.

    Examples
    --------
    >>> triangle_counts(np.array([0, 0, 1, 2]), np.array([1, 2, 2, 3]), 4).tolist()
    [1, 1, 1, 0]
    """
    support = np.zeros(len(A), dtype=np.int64)
    call("count_edge_triangles", A, B, len(A), n, support)
    return support


def squares(q: Quotient) -> Floats:
    """The edge lies on cycles of four clusters, opposite ones free of conflict.

    Notes
    -----
    O(Σ deg²) over the clusters with at most 64 neighbours; the few with more are left out.
    """
    support = np.zeros(q.n_edges, dtype=np.int64)
    call("count_edge_squares", q.A, q.B, q.n_edges, q.n, _MAX_NEIGHBOURS_OF_SQUARES, q.objects, q.start, support)
    return _graded(q, support)


def few_choices(q: Quotient, most: int = 1) -> Floats:
    """The smaller cluster has no candidate but the larger, or at most `most` in all.

    The evidence is the density weight / (|A| |B|) shared among the candidates: a single match into
    a long track leaves many absent ones unexplained.

    Notes
    -----
    O(E). A point all of whose matches but one contradict the tracks most likely belongs where that
    one leads.
    """
    gain = np.empty(q.n_edges)
    call("weigh_choices", q.A, q.B, q.weight, q.n_edges, q.start, q.n, most, gain)
    return gain


def _graded(q: Quotient, support: Ints) -> Floats:
    """Map support to [0, 1), weighed by how reliable the matches are."""
    graded = np.empty(q.n_edges)
    call("grade_support", support, q.count, q.weight, q.n_edges, graded)
    return graded
