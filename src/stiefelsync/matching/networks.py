"""Matches as graphs of networkx: a node is a point, (object, id), an edge a match."""

from __future__ import annotations

from typing import Any

import numpy as np

from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.matching._canonical import OneToMany
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.records import Records

__all__ = ["from_networkx", "nodes", "to_networkx"]


def from_networkx(graph: Any, *, weight: str = "weight", one_to_many: OneToMany = "error") -> Matchings:
    """Make matchings of a graph; what :meth:`Matchings.from_networkx` does."""
    listed = list(graph.nodes)
    if not all(isinstance(node, tuple) and len(node) == 2 for node in listed):
        wrong = next(node for node in listed if not (isinstance(node, tuple) and len(node) == 2))
        raise InputError(f"every node must be (object, point), got {wrong!r}")
    texts = {node: (str(node[0]), type(node[1]).__name__, node[1]) for node in listed}
    try:
        ordered = sorted(listed, key=texts.__getitem__)
    except TypeError:  # ids that cannot be compared
        ordered = sorted(listed, key=lambda node: (str(node[0]), repr(node[1])))
    names = sorted({str(node[0]) for node in listed})
    number = {name: i for i, name in enumerate(names)}
    place = {node: n for n, node in enumerate(ordered)}
    source = np.array([number[str(node[0])] for node in ordered], dtype=np.int64)
    edges = list(graph.edges(data=True))
    ends = np.array([(place[a], place[b]) for a, b, _ in edges], dtype=np.int64).reshape(-1, 2)
    weights = None
    if edges and all(weight in about for _, _, about in edges):
        weights = np.array([about[weight] for _, _, about in edges], dtype=np.float64)
    ids = np.empty(len(ordered), dtype=object)
    ids[:] = [node[1] for node in ordered]
    sizes = np.bincount(source, minlength=len(names))
    made = Matchings.from_endpoints(ends, sizes, weights=weights, names=names, one_to_many=one_to_many)
    return made.with_records(Records(tuple(names), source, ids, np.ones(len(names), dtype=bool)))


def nodes(matchings: Matchings) -> list[tuple[Any, Any]]:
    """Return (object, point) for every point: names or numbers of objects, own ids of records.

    Examples
    --------
    >>> nodes(Matchings.from_labels([0, 0], [1, 1], names=["a", "b"]))
    [('a', 0), ('b', 0)]
    """
    records = matchings.records
    if records is not None:
        ids = records.ids.tolist()
        return [(records.sources[s], own) for s, own in zip(records.source.tolist(), ids, strict=True)]
    names = matchings.names or range(matchings.n_objects)
    objects = matchings.point_objects
    numbers = (np.arange(matchings.n_points) - matchings.offsets[objects]).tolist()
    return [(names[o], n) for o, n in zip(objects.tolist(), numbers, strict=True)]


def to_networkx(matchings: Matchings) -> Any:
    """Return a `networkx.Graph`; what :meth:`Matchings.to_networkx` does."""
    try:
        import networkx
    except ImportError:
        raise MissingExtraError("a graph of networkx", "networkx", "tables") from None
    listed, graph = nodes(matchings), networkx.Graph()
    graph.add_nodes_from(listed)
    weights = matchings.match_weights.tolist()
    ends = matchings.endpoints.tolist()
    graph.add_weighted_edges_from((listed[a], listed[b], w) for (a, b), w in zip(ends, weights, strict=True))
    return graph
