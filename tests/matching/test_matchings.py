"""Matchings: round trips, canonical form, slicing, repair, large indices, memory."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stiefelsync import InputError
from stiefelsync.matching import Matchings, Repair
from tests.matching.strategies import labellings, problems


@given(problems())
def test_matrix_round_trip(problem: Matchings) -> None:
    again = Matchings.from_matrix(
        problem.to_matrix(),
        problem.sizes,
        weighted=problem.weights is not None,
        names=problem.names,
        coordinates=problem.coordinates,
    )
    assert again == problem


@given(problems())
def test_pairs_round_trip(problem: Matchings) -> None:
    weights = None
    if problem.weights is not None:
        cuts = np.split(problem.weights, problem.pair_start[1:-1])
        weights = dict(zip(problem.pairs(), cuts, strict=False))
    again = Matchings.from_pairs(
        problem.pairs(), problem.sizes, weights=weights, names=problem.names, coordinates=problem.coordinates
    )
    assert again == problem


@given(problems())
def test_pickling(problem: Matchings) -> None:
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem
    assert not again.indices.flags.writeable


@given(problems(), st.randoms(use_true_random=False))
def test_order_and_orientation_do_not_matter(problem: Matchings, random: object) -> None:
    order = list(range(problem.n_matches))
    random.shuffle(order)  # type: ignore[attr-defined]
    objects, points = problem.pair_objects[problem.match_pairs[order]].copy(), problem.indices[order].copy()
    flip = np.arange(len(order)) % 2 == 0
    objects[flip], points[flip] = objects[flip, ::-1], points[flip, ::-1]
    weights = None if problem.weights is None else problem.weights[order]
    again = Matchings.from_arrays(
        objects, points, problem.sizes, weights=weights, names=problem.names, coordinates=problem.coordinates
    )
    assert again == problem


@given(problems())
def test_matrix_is_the_definition(problem: Matchings) -> None:
    W = np.eye(problem.n_points)
    for (i, j), block in problem.pairs().items():
        for t, (a, b) in enumerate(block):
            w = 1.0
            if problem.weights is not None:
                w = problem.weights[problem.pair_start[list(problem.pairs()).index((i, j))] + t]
            W[problem.offsets[i] + a, problem.offsets[j] + b] = w
            W[problem.offsets[j] + b, problem.offsets[i] + a] = w
    np.testing.assert_array_equal(problem.to_matrix().toarray(), W)


@given(problems(), st.data())
def test_slicing_is_a_submatrix(problem: Matchings, data: st.DataObject) -> None:
    chosen = data.draw(st.permutations(range(problem.n_objects)))
    chosen = chosen[: data.draw(st.integers(0, problem.n_objects))]
    part = problem[chosen]
    rows = np.concatenate([[], *(np.arange(problem.offsets[o], problem.offsets[o + 1]) for o in chosen)]).astype(int)
    np.testing.assert_array_equal(part.to_matrix().toarray(), problem.to_matrix().toarray()[np.ix_(rows, rows)])
    assert part.names == (None if problem.names is None else tuple(problem.names[o] for o in chosen))
    if problem.coordinates is not None:
        np.testing.assert_array_equal(part.coordinates, problem.coordinates[rows])
    assert problem[: problem.n_objects] == problem


@given(problems(), st.data())
def test_keep_keeps_exactly_the_mask(problem: Matchings, data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=problem.n_matches, max_size=problem.n_matches)), bool)
    part = problem.keep(mask)
    np.testing.assert_array_equal(part.endpoints, problem.endpoints[mask])
    np.testing.assert_array_equal(part.match_weights, problem.match_weights[mask])
    np.testing.assert_array_equal(part.sizes, problem.sizes)


@given(labellings())
def test_labels_make_consistent_matchings(drawn: tuple[np.ndarray, list[int]]) -> None:
    labels, sizes = drawn
    problem = Matchings.from_labels(labels, sizes)
    same = (labels[:, None] == labels) & (labels >= 0)
    np.testing.assert_array_equal(problem.to_matrix().toarray(), same | np.eye(len(labels), dtype=bool))


def greedy(rows: list[tuple[int, int, int, int, float]]) -> tuple[set[tuple[int, int, int, int]], int, int]:
    """Return kept matches, duplicates and conflicts, one match after another from the heaviest."""
    kept: set[tuple[int, int, int, int]] = set()
    used: set[tuple[int, int, int]] = set()
    order = sorted(range(len(rows)), key=lambda t: (-rows[t][4], t))
    for t in order:
        i, a, j, b, _ = rows[t] if rows[t][0] < rows[t][2] else (*rows[t][2:4], *rows[t][:2], rows[t][4])
        if (i, j, a) not in used and (j, i, b) not in used:
            kept.add((i, a, j, b))
            used |= {(i, j, a), (j, i, b)}
    different = {(i, a, j, b) if i < j else (j, b, i, a) for i, a, j, b, _ in rows}
    return kept, len(rows) - len(different), len(different) - len(kept)


match_rows = st.tuples(
    st.integers(0, 2), st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.0])
).filter(lambda row: row[0] != row[2])


@given(st.lists(match_rows, min_size=1, max_size=25), st.booleans())
def test_repair_is_greedy(rows: list[tuple[int, int, int, int, float]], weighted: bool) -> None:
    if not weighted:
        rows = [(*row[:4], 1.0) for row in rows]
    table = np.array([row[:4] for row in rows])
    problem = Matchings.from_arrays(
        table[:, [0, 2]],
        table[:, [1, 3]],
        [4, 4, 4],
        weights=[row[4] for row in rows] if weighted else None,
        one_to_many="repair",
    )
    kept, duplicates, conflicts = greedy(rows)
    found = {(i, a, j, b) for (i, j), block in problem.pairs().items() for a, b in block.tolist()}
    assert found == kept
    assert (problem.repair or Repair()) == Repair(duplicates, conflicts)
    if weighted:
        best = {}
        for i, a, j, b, w in rows:
            key = (i, a, j, b) if i < j else (j, b, i, a)
            best[key] = max(w, best.get(key, 0))
        listed = [(i, a, j, b) for (i, j), block in problem.pairs().items() for a, b in block.tolist()]
        assert problem.weights is not None
        assert problem.weights.tolist() == [best[key] for key in listed]


@pytest.mark.parametrize("size", [70_000, 3_000_000, 700_000_000])
def test_indices_past_16_bits(size: int) -> None:
    # The last size makes (object, object, point, point) too large for one 64-bit sorting key.
    objects = [[1, 2], [2, 0], [0, 1], [0, 1]]
    points = [[65_536, size - 1], [0, 69_999], [size - 1, 65_535], [65_535, size - 1]]
    problem = Matchings.from_arrays(objects, points, [size] * 3)
    assert problem.indices.dtype == np.int32
    assert problem.pair(0, 1).tolist() == [[65_535, size - 1], [size - 1, 65_535]]
    assert problem.pair(0, 2).tolist() == [[69_999, 0]]
    assert problem.endpoints.max() == 3 * size - 1
    assert Matchings.from_pairs(problem.pairs(), problem.sizes) == problem


def test_no_objects_and_empty_objects() -> None:
    nothing = Matchings.from_pairs({}, [])
    assert (nothing.n_objects, nothing.n_points, nothing.n_matches) == (0, 0, 0)
    assert nothing.to_matrix().shape == (0, 0)
    hollow = Matchings.from_pairs({(1, 3): [[0, 1]]}, [0, 1, 0, 2])
    assert hollow.point_objects.tolist() == [1, 3, 3]
    assert hollow[[0, 2]].n_points == 0
    assert Matchings.from_matrix(hollow.to_matrix(), hollow.sizes) == hollow


def test_equality_looks_at_everything() -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])
    assert problem == Matchings.from_pairs({(1, 0): [[1, 1], [0, 0]]}, [2, 2])
    assert problem != Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]]}, [2, 2])
    assert problem != Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 3])
    assert problem != Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2], names=["a", "b"])
    assert problem != problem.with_weights([1.0, 1.0])
    assert problem != "something else"


@pytest.mark.parametrize("dtype", ["float32", np.float32, ">f4", "float64", np.dtype(float)])
def test_matrix_has_the_precision_asked_for(dtype: object) -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], weights={(0, 1): [0.1]})
    W = problem.to_matrix(dtype)
    assert W.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(W.toarray(), np.array([[1, 0.1], [0.1, 1]], dtype=W.dtype))


@pytest.mark.parametrize("dtype", ["float16", np.float16, int, "flaot32", "(", 32, "longdouble"])
def test_precision_is_float32_or_float64(dtype: object) -> None:
    with pytest.raises(InputError, match=r"unknown dtype .*: float32, float64"):
        Matchings.from_labels([0, 0], [1, 1]).to_matrix(dtype)


@pytest.mark.parametrize("weight", [1e39, 1e-46])
def test_weights_beyond_float32_are_named(weight: float) -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], weights={(0, 1): [weight]})
    assert problem.to_matrix()[0, 1] == weight
    with pytest.raises(InputError) as caught:
        problem.to_matrix("float32")
    assert str(caught.value) == f"weight 0 is {weight}, which float32 cannot hold"


def test_arrays_are_read_only_and_inputs_stay_as_they_are() -> None:
    objects, points = np.array([[1, 0], [0, 1]]), np.array([[0, 1], [0, 1]])
    before = objects.copy(), points.copy()
    weights = np.array([1.0, 2.0])
    problem = Matchings.from_arrays(objects, points, [2, 2], weights=weights)
    for array in (problem.sizes, problem.indices, problem.pair_objects, problem.pair_start):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    np.testing.assert_array_equal(objects, before[0])
    np.testing.assert_array_equal(points, before[1])
    objects[0], weights[0] = 1, 5.0
    assert problem.match_weights.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("sort_first", [True, False])
def test_the_callers_arrays_are_not_frozen(sort_first: bool) -> None:
    points = np.array([[0, 0], [1, 1]], dtype=np.int32)[:: 1 if sort_first else -1].copy()
    objects, sizes, weights = np.array([[0, 1], [0, 1]], dtype=np.int32), np.array([2, 2], dtype=np.int32), np.ones(2)
    problem = Matchings.from_arrays(objects, points, sizes, weights=weights)
    for array in (points, objects, sizes, weights):
        array[...] = 1
    assert problem.pair(0, 1).tolist() == [[0, 0], [1, 1]]
    assert problem.sizes.tolist() == [2, 2]


def test_from_arrays_needs_few_copies() -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    objects = np.tile(np.array([[3, 1]], dtype=np.int32), (n, 1))
    points = np.stack([rng.permutation(n), rng.permutation(n)], axis=1).astype(np.int32)
    tracemalloc.start()
    try:
        problem = Matchings.from_arrays(objects, points, [0, n, 0, n])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problem.n_matches == n
    # The result takes 8 bytes a match, objects and points together 16; one gigabyte for five million matches is 200.
    assert peak / n < 120


def test_the_largest_and_the_smallest_weight_of_a_precision_are_kept() -> None:
    limits = np.finfo(np.float32)
    problem = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])
    for extreme in (limits.max, limits.smallest_subnormal):
        W = problem.with_weights([float(extreme), 1.0]).to_matrix("float32")
        assert W.max(axis=None) == max(extreme, 1)
        assert W[[0], [2]][0] == extreme


def test_views_of_pairs() -> None:
    problem = Matchings.from_pairs({(2, 0): [[1, 0]]}, [2, 2, 2])
    assert problem.pair(0, 2).tolist() == [[0, 1]]
    assert problem.pair(2, 0).tolist() == [[1, 0]]
    assert problem.pair(0, 1).shape == (0, 2)
    with pytest.raises(InputError, match=r"^unknown object 3; there are 3 objects, numbered from 0$"):
        problem.pair(0, 3)
    assert repr(problem) == "Matchings(3 objects, 6 points, 1 match in 1 of 3 pairs)"


@pytest.mark.parametrize("pairs", [[0, 2, 5], [4], [], [0, 1, 2, 3, 4, 5]])
def test_some_pairs_alone(pairs: list[int]) -> None:
    rng = np.random.default_rng(0)
    problem = Matchings.from_labels(np.concatenate([rng.permutation(6)[:4] for _ in range(4)]), [4] * 4)
    problem = problem.with_weights(rng.random(problem.n_matches) + 0.1)
    chosen = problem.only_pairs(np.array(pairs, dtype=np.int64))
    assert chosen == problem.keep(np.isin(problem.match_pairs, pairs))


def test_nothing_that_is_kept_can_be_changed():
    """Four cached arrays could, and what was made of them later was wrong."""
    problem = Matchings.from_pairs({(0, 1): [[0, 1]], (1, 2): [[1, 0]]}, [1, 2, 1], weights={(0, 1): [1], (1, 2): [2]})
    for name in ("sizes", "indices", "offsets", "point_objects", "match_pairs", "endpoints", "match_keys", "weights"):
        for one in (problem, pickle.loads(pickle.dumps(problem)), problem.keep([True, False]), problem[[0, 1]]):
            assert not getattr(one, name).flags.writeable, name
