"""Graphs of networkx in and out."""

from __future__ import annotations

import pytest

from stiefelsync import InputError, Matchings, synchronise
from stiefelsync.matching import networks

networkx = pytest.importorskip("networkx")


def test_graphs_go_out_and_come_back():
    named = Matchings.from_pairs({(0, 1): [[0, 1]]}, [1, 2], names=["a", "b"], weights={(0, 1): [0.5]})
    graph = named.to_networkx()
    assert graph.edges[("a", 0), ("b", 1)]["weight"] == 0.5
    assert len(graph) == 3
    assert Matchings.from_networkx(graph) == named
    answer = synchronise(named)
    assert answer.to_networkx().number_of_edges() == answer.matchings().n_matches
    units = networkx.Graph([(("day 2", "u7"), ("day 1", 3))])
    problem = Matchings.from_networkx(units)
    assert problem.names == ("day 1", "day 2")
    assert problem.records.ids.tolist() == [3, "u7"]
    assert problem.weights is None
    with pytest.raises(InputError, match=r"every node must be \(object, point\), got 'a'"):
        Matchings.from_networkx(networkx.Graph([("a", "b")]))
    twice = networkx.Graph([(("a", 1), ("b", 1)), (("a", 1), ("b", 2))])
    with pytest.raises(InputError):
        Matchings.from_networkx(twice)
    assert Matchings.from_networkx(twice, one_to_many="repair").n_matches == 1


def test_nodes_are_objects_and_points():
    assert networks.nodes(Matchings.from_labels([0, 0], [1, 1])) == [(0, 0), (1, 0)]
