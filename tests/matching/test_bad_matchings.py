"""Bad input to Matchings: every message in full, as the user reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stiefelsync import InputError
from stiefelsync.matching import Matchings

PAIRS, MATRIX, ARRAYS, LABELS = (
    Matchings.from_pairs,
    Matchings.from_matrix,
    Matchings.from_arrays,
    Matchings.from_labels,
)
NAMES = ["left.jpg", "right.jpg"]
GOOD = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2])

CASES: list[tuple[str, Callable[[], Any]]] = [
    (
        "keys must be pairs of object numbers, got 'a.jpg'; io.from_dict takes pairs of names, too",
        lambda: PAIRS({("a.jpg", "b.jpg"): [[0, 0]]}, [1, 1]),
    ),
    (
        "two objects are named 'b'; files tell objects apart by name, rename one",
        lambda: PAIRS({(0, 1): [[0, 0]]}, [1, 1, 1], names=["a", "b", "b"]),
    ),
    ("unknown object 2; there are 2 objects, numbered from 0", lambda: PAIRS({(0, 2): [[0, 0]]}, [1, 1])),
    ("unknown object -1; there are 2 objects, numbered from 0", lambda: PAIRS({(-1, 1): [[0, 0]]}, [1, 1])),
    (
        "point 3 of object 1 does not exist; it has 3 points, numbered from 0",
        lambda: PAIRS({(0, 1): [[0, 3]]}, [1, 3]),
    ),
    (
        "point -1 of object 0 does not exist; it has 1 point, numbered from 0",
        lambda: PAIRS({(0, 1): [[-1, 0]]}, [1, 1]),
    ),
    (
        "the match of point 0 of object 0 with point 1 of object 1 is given twice"
        " (1 of 2 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: PAIRS({(0, 1): [[0, 1]], (1, 0): [[1, 0]]}, [2, 2]),
    ),
    (
        "point 0 of object 0 is matched to more than one point of object 1"
        " (1 of 2 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: PAIRS({(0, 1): [[0, 0], [0, 1]]}, [2, 2]),
    ),
    (
        "point 1 of object 1 is matched to more than one point of object 0"
        " (1 of 3 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: PAIRS({(0, 1): [[0, 1], [1, 1], [2, 0]]}, [3, 2]),
    ),
    (  # the same two numbers in another pair are another match
        "point 0 of object 0 is matched to more than one point of object 1"
        " (1 of 3 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: PAIRS({(0, 1): [[0, 0], [0, 1]], (0, 2): [[0, 1]]}, [2, 2, 2]),
    ),
    (
        "the match of point 0 of object 0 ('left.jpg') with point 1 of object 1 ('right.jpg') is given twice"
        " (1 of 2 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: PAIRS({(0, 1): [[0, 1]], (1, 0): [[1, 0]]}, [2, 2], names=NAMES),
    ),
    (
        "point 0 of object 0 ('left.jpg') is matched to more than one point of object 1 ('right.jpg')"
        " (1 of 2 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: MATRIX([[1, 1, 1], [1, 1, 0], [1, 0, 1]], [1, 2], names=NAMES),
    ),
    (
        "point 1 of object 1 ('right.jpg') is matched to more than one point of object 0 ('left.jpg')"
        " (1 of 3 matches have to go; one_to_many='repair' keeps the heaviest)",
        lambda: ARRAYS([[0, 1]] * 3, [[0, 1], [1, 1], [2, 0]], [3, 2], names=NAMES),
    ),
    (
        "point 3 of object 1 ('right.jpg') does not exist; it has 3 points, numbered from 0",
        lambda: PAIRS({(0, 1): [[0, 3]]}, [1, 3], names=NAMES),
    ),
    (
        "pair (1, 1) matches object 1 ('right.jpg') with itself; only pairs of different objects are allowed",
        lambda: PAIRS({(1, 1): [[0, 1]]}, [2, 2], names=NAMES),
    ),
    (
        "diagonal block (0, 0) matches object 0 ('left.jpg') with itself; it must be identity or zero",
        lambda: MATRIX([[1, 1, 0], [1, 1, 0], [0, 0, 1]], [2, 1], names=NAMES),
    ),
    ("two points of object 1 ('right.jpg') carry the same label 7", lambda: LABELS([0, 7, 7], [1, 2], names=NAMES)),
    (
        "pair (1, 1) matches object 1 with itself; only pairs of different objects are allowed",
        lambda: PAIRS({(1, 1): [[0, 1]]}, [2, 2]),
    ),
    (
        "diagonal block (0, 0) matches object 0 with itself; it must be identity or zero",
        lambda: MATRIX([[1, 1, 0], [1, 1, 0], [0, 0, 1]], [2, 1]),
    ),
    (
        "the matching matrix must be symmetric: block (j, i) is the transpose of block (i, j)",
        lambda: MATRIX([[1, 1], [0, 1]], [1, 1]),
    ),
    (
        "the matching matrix must be binary, found 0.5; pass weighted=True for weights",
        lambda: MATRIX([[1, 0.5], [0.5, 1]], [1, 1]),
    ),
    ("the matching matrix holds NaN or infinite entries", lambda: MATRIX([[1, np.nan], [np.nan, 1]], [1, 1])),
    ("the matching matrix must be square, got shape (1, 2)", lambda: MATRIX([[1, 0]], [1, 1])),
    ("sizes add up to 3 points but the matrix has 2 rows", lambda: MATRIX(np.eye(2), [1, 2])),
    ("sizes must be one number per object, got an array of shape (1, 2)", lambda: PAIRS({}, [[1, 2]])),
    ("sizes must be whole numbers, got float64", lambda: PAIRS({}, [1.5, 2])),
    ("object 1 has negative size -2", lambda: PAIRS({}, [1, -2])),
    (
        "6,000,000,000 points are more than the 2,147,483,647 this package can index",
        lambda: PAIRS({}, [3_000_000_000] * 2),
    ),
    ("weight 1 is nan; every weight must be a finite number", lambda: GOOD.with_weights([1.0, np.nan])),
    ("weight 0 is inf; every weight must be a finite number", lambda: GOOD.with_weights([np.inf, 1.0])),
    ("weight 1 is -2.0; weights must be positive (drop the match instead)", lambda: GOOD.with_weights([1.0, -2.0])),
    ("weight 0 is 0.0; weights must be positive (drop the match instead)", lambda: GOOD.with_weights([0.0, -2.0])),
    (
        "weight 1 is 1.7e+308; weights must be at most 1e+100 (only ratios count)",
        lambda: GOOD.with_weights([1.0, 1.7e308]),
    ),
    ("the coordinate -inf is too large", lambda: PAIRS({}, [1, 0], coordinates=[[0.0, -np.inf]])),
    ("2 matches need 2 weights, got shape (3,)", lambda: GOOD.with_weights([1.0, 1.0, 1.0])),
    (
        "weights must have exactly the object pairs that the matches have",
        lambda: PAIRS({(0, 1): [[0, 0]]}, [1, 1], weights={}),
    ),
    ("matches must come as an array of shape (K, 2), got (3,)", lambda: PAIRS({(0, 1): [0, 1, 2]}, [3, 3])),
    (
        "match indices must be whole numbers, got float64;"
        " a matrix for each pair of objects is for Matchings.from_blocks",
        lambda: PAIRS({(0, 1): np.eye(2)}, [2, 2]),
    ),
    (
        "match indices must be whole numbers, got bool; a matrix for each pair of objects is for Matchings.from_blocks",
        lambda: PAIRS({(0, 1): np.eye(2, dtype=bool)}, [2, 2]),
    ),
    (
        "matches must come as an array of shape (K, 2), got (3, 3);"
        " a matrix for each pair of objects is for Matchings.from_blocks",
        lambda: PAIRS({(0, 1): np.eye(3, dtype=int)}, [3, 3]),
    ),
    ("1 object pairs do not fit 2 point pairs", lambda: ARRAYS([[0, 1]], [[0, 0], [1, 1]], [2, 2])),
    ("2 objects need 2 names, got 1", lambda: PAIRS({}, [1, 1], names=["only"])),
    ("coordinates must have shape (2, 2), got (2, 3)", lambda: PAIRS({}, [1, 1], coordinates=np.zeros((2, 3)))),
    (
        "unknown one_to_many 'repare'; did you mean 'repair'? Known: error, repair",
        lambda: PAIRS({}, [1, 1], one_to_many="repare"),
    ),
    ("2 points need 2 labels, got shape (3,)", lambda: LABELS([0, 0, 0], [1, 1])),
    ("labels must be whole numbers, got float64", lambda: LABELS([0.0, 1.0], [1, 1])),
    ("two points of object 0 carry the same label 7", lambda: LABELS([7, 7], [2])),
    ("the mask must have one entry per match (2), got shape (1,)", lambda: GOOD.keep([True])),
    ("unknown object 2; there are 2 objects, numbered from 0", lambda: GOOD[[0, 2]]),
    ("unknown object -1; there are 2 objects, numbered from 0", lambda: GOOD[[0, -1]]),
    (
        "objects must be selected by a slice or by a list of different object numbers",
        lambda: GOOD[[0, 0]],
    ),
]


@pytest.mark.parametrize(("message", "call"), CASES, ids=[message[:45] for message, _ in CASES])
def test_message(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        call()
