"""Problems with very many objects cost what their points and matches cost: memory is measured, never time."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, cycle_error, estimate_universe, inspect, score
from stiefelsync.matching.graph import components, conflicts, triangle_support
from stiefelsync.sync.confidence import match_confidence

K = 1_000_000
MANY = Matchings.from_pairs({(3, K - 1): [[0, 0]]}, np.isin(np.arange(K), (3, K - 1)).astype(int))
VERBS = {
    "repr": repr,
    "inspect": inspect,
    "cycle_error": cycle_error,
    "estimate_universe": estimate_universe,
    "components": components,
    "conflicts": conflicts,
    "triangle_support": triangle_support,
    "to_matrix": Matchings.to_matrix,
    "some objects": lambda problem: problem[5:],
    "others": lambda problem: problem[[K - 1, 3]],
    "keep": lambda problem: problem.keep([True]),
    "labels": lambda problem: Matchings.from_labels([0, 0], problem.sizes),
    "endpoints": lambda problem: Matchings.from_endpoints([[1, 0]], problem.sizes),
    "score": lambda problem: score(problem, [0, 0]),
    "confidence": lambda problem: match_confidence(problem, [0, 0]),
}


def test_many_points_and_objects_make_no_table_of_partners():
    problem = Matchings.from_labels(np.zeros(9, dtype=int), [1] * 9)
    many = Matchings.from_pairs(problem.pairs(), np.append(np.ones(9, dtype=int), np.full(2_991, 10)))
    assert cycle_error(many) == cycle_error(problem)
    tracemalloc.start()
    try:
        cycle_error(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * many.n_points  # bytes; the table would have 3,000 entries for every point


@pytest.mark.parametrize("verb", VERBS)
def test_a_million_empty_objects_make_no_table_of_object_pairs(verb):
    tracemalloc.start()
    try:
        VERBS[verb](MANY)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150 * K  # bytes; a table of pairs would have K² entries


def test_the_name_given_twice_is_found_without_comparing_all_with_all():
    compared = 0

    class Name(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

        def __str__(self) -> str:
            return self

    names = [Name(f"image {i}") for i in range(3000)]
    names[-1] = Name("image 7")
    with pytest.raises(InputError, match=r"^two objects are named 'image 7'; "):
        Matchings.from_pairs({}, np.zeros(3000, dtype=int), names=names)
    assert 0 < compared < 20 * len(names)
