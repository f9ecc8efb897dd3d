"""Ways to build Matchings beside pairs: endpoints, blocks, scores; the class itself."""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

from stiefelsync import InputError
from stiefelsync.io import in_memory
from stiefelsync.matching import Matchings
from stiefelsync.matching._canonical import sort_matches
from tests.matching.strategies import problems

SCORES = Matchings.from_scores
BLOCKS = Matchings.from_blocks


def _fields(problem: Matchings) -> list[Any]:
    return [getattr(problem, at.name) for at in fields(problem) if at.init]


def _writable(problem: Matchings) -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in _fields(problem)]


@given(problems())
def test_endpoints_and_blocks_are_ways_there_and_back(problem):
    about = {"names": problem.names, "coordinates": problem.coordinates}
    ends = problem.endpoints[::-1, ::-1]
    flipped = None if problem.weights is None else problem.weights[::-1]
    assert Matchings.from_endpoints(ends, problem.sizes, weights=flipped, **about) == problem
    W, at = problem.to_matrix().toarray(), problem.offsets
    for orders in (itertools.combinations, itertools.permutations):  # one block of every pair, or both
        blocks = {(i, j): W[at[i] : at[i + 1], at[j] : at[j + 1]] for i, j in orders(range(problem.n_objects), 2)}
        again = BLOCKS(blocks, problem.sizes, weighted=problem.weights is not None, **about)
        assert again == problem
        assert BLOCKS(
            {key: sparse.csr_array(block) for key, block in blocks.items()}, problem.sizes, weighted=True
        ) == (problem.with_weights(problem.match_weights)._with(names=None, coordinates=None))


@given(problems())
def test_keys_and_agreement_are_what_they_say(problem):
    m = problem.n_points
    ends = problem.endpoints.tolist()
    assert problem.match_keys.tolist() == [a * m + b for a, b in ends]
    labels = np.random.default_rng(0).integers(-1, 3, size=m)
    assert problem.agreeing(labels).tolist() == [labels[a] == labels[b] != -1 for a, b in ends]
    part = problem.keep(np.arange(problem.n_matches) % 3 == 0)
    assert problem.shared_with(part).tolist() == [t % 3 == 0 for t in range(problem.n_matches)]
    assert part.shared_with(problem).all()


@given(problems())
def test_parts_are_as_if_built_anew(problem):
    mask = np.arange(problem.n_matches) % 2 == 0
    weights = None if problem.weights is None else problem.weights[mask]
    about = {"names": problem.names, "coordinates": problem.coordinates}
    assert problem.keep(mask) == Matchings.from_endpoints(
        problem.endpoints[mask], problem.sizes, weights=weights, **about
    )
    for chosen in (list(range(0, problem.n_objects, 2)), list(range(problem.n_objects))[::-1]):
        part = problem[chosen]
        assert Matchings(*_fields(part)) == part  # in canonical order
        assert part.sizes.tolist() == problem.sizes[chosen].tolist()
        for (i, a), (j, b) in itertools.combinations(enumerate(chosen), 2):
            assert part.pair(i, j).tolist() == sorted(problem.pair(a, b).tolist())
        if problem.coordinates is not None:
            rows = [problem.coordinates[problem.offsets[o] : problem.offsets[o + 1]].tolist() for o in chosen]
            assert part.coordinates.tolist() == [row for block in rows for row in block]
        if problem.weights is not None:
            old = dict(zip(map(tuple, _named(problem, range(problem.n_objects))), problem.weights, strict=True))
            assert [old[key] for key in map(tuple, _named(part, chosen))] == part.weights.tolist()


def _named(problem, objects):
    """Return every match as a sorted pair of (object of the whole problem, point)."""
    listed = list(objects)
    for (i, j), (a, b) in zip(
        problem.pair_objects[problem.match_pairs].tolist(), problem.indices.tolist(), strict=True
    ):
        yield sorted([(listed[i], a), (listed[j], b)])


@given(problems())
def test_the_class_takes_its_own_arrays_and_leaves_the_callers_alone(problem):
    given_arrays = _writable(problem)
    again = Matchings(*given_arrays)
    assert again == problem
    for mine, theirs in zip(_fields(again), given_arrays, strict=True):
        if isinstance(mine, np.ndarray):
            assert theirs.flags.writeable
            assert not mine.flags.writeable
            assert not np.shares_memory(mine, theirs)
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_the_class_takes_lists():
    assert Matchings([2, 2], [[0, 1]], [0, 2], [[0, 1], [1, 0]]) == Matchings.from_pairs(
        {(0, 1): [[1, 0], [0, 1]]}, [2, 2]
    )


LAYOUT = "pairs (i < j) and their matches must be sorted; Matchings.from_arrays takes any order"
RISE = "pair_start must rise from 0 to the number of matches, 2, at every pair"
APART = "blocks (0, 1) and (1, 0) are not each other's transpose; give one of them, or their mean"
CASES: list[tuple[str, Callable[[], Any]]] = [
    (LAYOUT, lambda: Matchings([2, 2], [[0, 1]], [0, 2], [[1, 0], [0, 1]])),
    (LAYOUT, lambda: Matchings([2, 2], [[1, 0]], [0, 2], [[0, 1], [1, 0]])),
    (LAYOUT, lambda: Matchings([1, 1, 1], [[1, 2], [0, 1]], [0, 1, 2], [[0, 0], [0, 0]])),
    (LAYOUT, lambda: Matchings([2, 2], [[0, 1], [0, 1]], [0, 1, 2], [[0, 0], [1, 1]])),
    (
        "point 0 of object 0 is matched to more than one point of object 1"
        " (1 of 2 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: Matchings([2, 2], [[0, 1]], [0, 2], [[0, 0], [0, 1]]),
    ),
    (
        "point 2 of object 0 does not exist; it has 2 points, numbered from 0",
        lambda: Matchings([2, 2], [[0, 1]], [0, 1], [[2, 0]]),
    ),
    (RISE, lambda: Matchings([2, 2], [[0, 1]], [0, 1], [[0, 0], [1, 1]])),
    (RISE, lambda: Matchings([2, 2], [[0, 1]], [1, 2], [[0, 0], [1, 1]])),
    (RISE, lambda: Matchings([2, 2, 2], [[0, 1], [0, 2]], [0, 2, 2], [[0, 0], [1, 1]])),
    ("1 object pairs need 2 whole numbers in pair_start", lambda: Matchings([2, 2], [[0, 1]], [0, 1, 2], [[0, 0]] * 2)),
    ("1 object pairs need 2 whole numbers in pair_start", lambda: Matchings([2, 2], [[0, 1]], [0.0, 1.0], [[0, 0]])),
    ("2 matches need 2 weights, got shape (1,)", lambda: Matchings([2, 2], [[0, 1]], [0, 2], [[0, 0], [1, 1]], [1.0])),
    (
        "names must be one word per object, got the single word 'ab'",
        lambda: Matchings.from_pairs({}, [1, 1], names="ab"),
    ),
    ("weights must be real numbers, got complex128", lambda: _one(weights={(0, 1): [1j]})),
    ("weights must be real numbers, got <U1", lambda: _one(weights={(0, 1): ["1"]})),
    (
        "18,446,744,073,709,551,619 points are more than the 2,147,483,647 this package can index",
        lambda: Matchings.from_pairs({}, [2**63 - 1, 2**63 - 1, 5]),
    ),
    ("point 4 does not exist; there are 4 points, numbered from 0", lambda: Matchings.from_endpoints([[0, 4]], [2, 2])),
    (
        "point -1 does not exist; there are 4 points, numbered from 0",
        lambda: Matchings.from_endpoints([[-1, 3]], [2, 2]),
    ),
    (
        "pair (0, 0) matches object 0 with itself; only pairs of different objects are allowed",
        lambda: Matchings.from_endpoints([[0, 1]], [2, 2]),
    ),
    ("2 points need 2 labels, got shape (1,)", lambda: _one().agreeing([0])),
    ("the two have objects of different sizes", lambda: _one().shared_with(Matchings.from_pairs({}, [1]))),
    ("block (0, 1) must be binary, found 0.5; pass weighted=True for weights", lambda: BLOCKS({(0, 1): [[0.5]]})),
    (
        "weight 0 is -1.0; weights must be positive (drop the match instead)",
        lambda: BLOCKS({(0, 1): [[-1]]}, weighted=True),
    ),
    ("block (0, 1) holds NaN or infinite entries", lambda: BLOCKS({(0, 1): [[np.nan]]}, weighted=True)),
    ("block (0, 1) must hold real numbers, got complex128", lambda: BLOCKS({(0, 1): [[1j]]}, weighted=True)),
    ("block (0, 1) must hold real numbers, got <U1", lambda: BLOCKS({(0, 1): [["1"]]})),
    ("block (0, 1) must hold real numbers, got object", lambda: SCORES({(0, 1): [[None]]})),
    ("block (0, 1) must form an array, but the rows given have different lengths", lambda: BLOCKS({(0, 1): [[1], []]})),
    (
        "the matching matrix must hold real numbers, got complex128",
        lambda: Matchings.from_matrix(np.eye(2) * 1j, [1, 1]),
    ),
    (
        "the matching matrix must hold real numbers, got complex128",
        lambda: Matchings.from_matrix(sparse.csr_array(np.eye(2) * 1j), [1, 1]),
    ),
    ("matches must form an array, but the rows given have different lengths", lambda: _one_pair([[0, 0], [1]])),
    ("names must be one word per object, got the single word 'ab'", lambda: _one(names=np.array("ab"))),
    ("block (0, 1) must be a matrix, got shape (2,)", lambda: BLOCKS({(0, 1): [1, 0]})),
    (
        "block (0, 2) says that object 0 has 2 points, another block 1",
        lambda: BLOCKS({(0, 1): [[1]], (0, 2): [[1], [0]]}),
    ),
    ("the blocks of object 1 have 2 points, but sizes say 3", lambda: BLOCKS({(0, 1): [[1, 0]]}, [1, 3])),
    (
        "the blocks of object 2 have 1 points, but there are sizes for 2 objects",
        lambda: BLOCKS({(0, 2): [[1]]}, [1, 1]),
    ),
    (APART, lambda: BLOCKS({(0, 1): [[1, 0]], (1, 0): [[0], [1]]})),
    (APART, lambda: BLOCKS({(0, 1): sparse.csr_array([[1, 0]]), (1, 0): sparse.csr_array([[0], [1]])})),
    (APART, lambda: SCORES(np.arange(16).reshape(2, 2, 2, 2))),
    ("keys must be pairs of object numbers, got 'ab'", lambda: BLOCKS({"ab": [[1]]})),
    ("keys must be pairs of object numbers, got (0, 1, 2)", lambda: BLOCKS({(0, 1, 2): [[1]]})),
    ("keys must be pairs of different object numbers from 0 on, got (1, 1)", lambda: BLOCKS({(1, 1): [[1]]})),
    ("keys must be pairs of different object numbers from 0 on, got (-1, 1)", lambda: BLOCKS({(-1, 1): [[1]]})),
    ("expected {(i, j): matrix} or a tensor of shape (k, k, n, n), got shape (2, 2)", lambda: SCORES(np.eye(2))),
    ("expected {(i, j): matrix} or a tensor of shape (k, k, n, n), got object", lambda: SCORES(object())),
    ("the tensor needs 2 sizes between 0 and 3", lambda: SCORES(np.zeros((2, 2, 3, 3)), [3, 4])),
    ("the tensor needs 2 sizes between 0 and 3", lambda: SCORES(np.zeros((2, 2, 3, 3)), [3])),
    (
        "block (0, 1) holds NaN or infinite scores; mark what is impossible with -inf",
        lambda: SCORES({(0, 1): [[np.inf]]}),
    ),
    (
        "block (0, 1) holds NaN or infinite scores; mark what is impossible with -inf",
        lambda: SCORES({(0, 1): [[np.nan]]}),
    ),
    ("threshold must be a finite number, got nan", lambda: SCORES({}, threshold=np.nan)),
    (
        "unknown assign 'hungarain'; did you mean 'hungarian'? Known: hungarian, mutual",
        lambda: SCORES({}, assign="hungarain"),  # type: ignore[arg-type]
    ),
    ("the permutation of pair (0, 1) needs 2 weights, got shape (1,)", lambda: _vectors(weights={(0, 1): [1.0]})),
    ("weights must have exactly the object pairs that the permutations have", lambda: _vectors(weights={})),
    (
        "the sizes are [2, 3], but the vectors have lengths [2, 2]",
        lambda: in_memory.from_permutations([[0, 1]] * 2, [2, 3]),
    ),
    (
        "weights belong to pairs of objects; give the permutations as {(i, j): vector}, too",
        lambda: in_memory.from_permutations([[0, 1]] * 2, weights={}),
    ),
]


def _one(**options: Any) -> Matchings:
    return Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1], **options)


def _one_pair(rows: Any) -> Matchings:
    return Matchings.from_pairs({(0, 1): rows}, [2, 2])


def _vectors(**options: Any) -> Matchings:
    return in_memory.from_permutations({(0, 1): [1, 0]}, **options)


@pytest.mark.parametrize(("message", "call"), CASES, ids=[message[:45] for message, _ in CASES])
def test_message(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        call()


def best_matching(S, threshold):
    """Return the largest total of S - threshold over all partial matchings, by trying every one of them."""
    n_rows, n_columns = S.shape
    best = 0.0
    for size in range(min(S.shape) + 1):
        for rows in itertools.combinations(range(n_rows), size):
            for columns in itertools.permutations(range(n_columns), size):
                best = max(best, sum(S[r, c] - threshold for r, c in zip(rows, columns, strict=True)))
    return best


@pytest.mark.parametrize("threshold", [-0.4, 0.0, 0.3])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (1, 1), (0, 3)])
def test_scores_are_assigned_as_well_as_can_be(threshold, shape):
    for seed in range(5):
        S = np.random.default_rng(seed).normal(size=shape)
        found = SCORES({(0, 1): S}, threshold=threshold)
        chosen = [S[a, b] for a, b in found.pair(0, 1)]
        assert all(value > threshold for value in chosen)
        assert sum(chosen) - threshold * len(chosen) == pytest.approx(best_matching(S, threshold))
        shift = min(threshold, 0)
        assert found.match_weights == pytest.approx([value - shift for value in chosen])
        bare = SCORES({(0, 1): S}, threshold=threshold, weighted=False)
        assert bare.weights is None
        assert np.array_equal(bare.indices, found.indices)
        mutual = SCORES({(0, 1): S}, threshold=threshold, assign="mutual").pair(0, 1).tolist()
        assert mutual == [
            [a, b] for a, b in np.ndindex(shape)
            if S[a, b] > threshold and S[a, b] == S[a].max() and S[a, b] == S[:, b].max()
        ]  # fmt: skip


def test_of_equal_scores_the_mutual_best_is_the_first():
    assert SCORES({(0, 1): np.ones((3, 3))}, assign="mutual").pair(0, 1).tolist() == [[0, 0]]


def test_impossible_scores_stay_unmatched():
    S = np.full((2, 2), -np.inf)
    S[0, 1] = 2.0
    assert SCORES({(0, 1): S}).pair(0, 1).tolist() == [[0, 1]]


def test_a_tensor_of_scores_is_the_same_as_its_blocks():
    rng = np.random.default_rng(0)
    k, n, sizes = 4, 5, [5, 3, 0, 4]
    S = rng.normal(size=(k, k, n, n))
    upper = np.array([[i < j for j in range(k)] for i in range(k)])
    S = np.where(upper[:, :, None, None], S, 0)
    full = S + S.transpose(1, 0, 3, 2)
    full[range(k), range(k)] = 7.0  # of an object with itself: ignored
    blocks = {(i, j): S[i, j, : sizes[i], : sizes[j]] for i, j in itertools.combinations(range(k), 2)}
    expected = SCORES(blocks, sizes)
    assert SCORES(full, sizes) == expected
    assert SCORES(S, sizes) == expected  # the upper half alone
    assert SCORES(full).sizes.tolist() == [n] * k
    assert expected.sizes.tolist() == sizes


def test_the_lower_half_of_pairs_is_turned():
    assert BLOCKS({(1, 0): [[0, 1, 0]]}).pair(0, 1).tolist() == [[1, 0]]
    assert BLOCKS({(2, 0): [[1]]}).sizes.tolist() == [1, 0, 1]
    assert SCORES({(1, 0): [[0, 0.5, 0]]}).pair(0, 1).tolist() == [[1, 0]]


def test_truth_values_are_ones():
    eye = np.eye(2, dtype=bool)
    assert BLOCKS({(0, 1): eye}) == BLOCKS({(0, 1): eye.astype(int)}) == SCORES({(0, 1): eye}, weighted=False)
    W = np.tile(eye, (2, 2))
    assert (
        Matchings.from_matrix(W, [2, 2]) == Matchings.from_matrix(sparse.csr_array(W), [2, 2]) == BLOCKS({(0, 1): eye})
    )


def test_blocks_are_repaired_on_request():
    block = [[0.5, 0.75], [0.0, 0.25]]
    found = BLOCKS({(0, 1): block}, weighted=True, one_to_many="repair")
    assert found.pair(0, 1).tolist() == [[0, 1]]
    assert found.repair.second_partners == 2


def test_exchange_functions_take_weights_sizes_and_repair():
    assert in_memory.from_dict({(0, 1): [[0, 0]]}, [1, 2], weights={(0, 1): [0.5]}).weights.tolist() == [0.5]
    named = in_memory.from_dict({("b", "a"): [[0, 1]]}, {"a": 2, "b": 3}, weights={("b", "a"): [2.0]})
    assert (named.sizes.tolist(), named.weights.tolist(), named.pair(0, 1).tolist()) == ([2, 3], [2.0], [[1, 0]])
    vectors = {(0, 1): [1, -1, 0]}
    problem = in_memory.from_permutations(vectors, [3, 5], weights={(0, 1): [0.5, 9.0, 0.25]})
    assert (problem.sizes.tolist(), problem.weights.tolist()) == ([3, 5], [0.5, 0.25])
    twice = in_memory.from_permutations({(0, 1): [1, 1]}, weights={(0, 1): [0.5, 0.75]}, one_to_many="repair")
    assert twice.pair(0, 1).tolist() == [[1, 1]]
    X = np.zeros((2, 2, 2, 2))
    X[0, 1], X[1, 0] = [[1, 1], [0, 0]], [[1, 0], [1, 0]]
    assert in_memory.from_tensor(X, one_to_many="repair", names=["x", "y"]).pair(0, 1).tolist() == [[0, 0]]


def test_keys_too_long_for_one_number_are_sorted_by_columns():
    # k²·n² ≥ 2⁶³ here: pairs and points no longer fit one 64-bit key, and those of the last pair would wrap.
    sizes = [2**30, 2**29, 2**28, 2**20]
    rng = np.random.default_rng(0)
    objects = np.array([[0, 1], [1, 2], [0, 2], [2, 3]])[rng.integers(4, size=60)]
    points = np.stack([rng.permutation(2**20)[:60], rng.permutation(2**20)[:60]], axis=1)
    points[:, 0] //= 2**17  # many equal first points, as the last column of the order needs
    rows = sorted({(*o, *p) for o, p in zip(objects.tolist(), points.tolist(), strict=True)})
    found = Matchings.from_arrays(objects, points, sizes, one_to_many="repair")
    kept = [
        (*o, *p) for o, p in zip(found.pair_objects[found.match_pairs].tolist(), found.indices.tolist(), strict=True)
    ]
    assert kept == sorted(kept)
    assert set(kept) <= set(rows)
    small = Matchings.from_arrays(objects, points, [2**20] * 4, one_to_many="repair")
    assert np.array_equal(small.indices, found.indices)
    assert np.array_equal(small.pair_objects, found.pair_objects)
    turned = found.with_weights(np.arange(1.0, 1 + found.n_matches))
    order = rng.permutation(found.n_matches)
    again = Matchings.from_arrays(
        turned.pair_objects[turned.match_pairs][order][:, ::-1], turned.indices[order][:, ::-1], sizes,
        weights=turned.weights[order],
    )  # fmt: skip
    assert again == turned


def test_what_is_sorted_already_is_not_sorted_again() -> None:
    objects, points = np.array([[[0, 1], [0, 1], [0, 2]], [[0, 1], [0, 1], [1, 0]]])
    for turned in ([0, 1, 2], [2, 0, 1]):
        pairs, start, indices, order = sort_matches(
            objects[turned], points[turned], np.array([2, 2, 1], dtype=np.int32)
        )
        assert (pairs.tolist(), start.tolist()) == ([[0, 1], [0, 2]], [0, 2, 3])
        np.testing.assert_array_equal(indices, points)
        assert (order is None) == (turned == [0, 1, 2])
