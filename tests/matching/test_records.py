"""Sources and own ids of points go where the points go."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from stiefelsync.errors import InputError
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.records import Records

RECORDS = Records(("a", "b"), np.array([0, 0, 1, 1]), np.array([7, 9, 7, 8]), np.array([True, False]))
PROBLEM = Matchings.from_labels([0, 1, 1, 0], [2, 2]).with_records(RECORDS)


def test_records_stay_with_their_points():
    assert PROBLEM.keep([True, False]).records is RECORDS
    assert PROBLEM.with_weights([0.5, 0.6]).records is RECORDS
    assert PROBLEM[[1]].records.ids.tolist() == [7, 8]
    assert PROBLEM[[1, 0]].records.ids.tolist() == [7, 8, 7, 9]
    assert PROBLEM[[1, 0]].records.source.tolist() == [1, 1, 0, 0]
    assert pickle.loads(pickle.dumps(PROBLEM)).records.ids.tolist() == [7, 9, 7, 8]
    assert PROBLEM.with_records(None).records is None


def test_records_are_no_part_of_the_problem():
    assert PROBLEM.with_records(None) == PROBLEM


def test_columns_and_what_must_stay_apart():
    assert {name: list(column) for name, column in RECORDS.columns().items()} == {
        "source_dataset": ["a", "a", "b", "b"],
        "unique_id": [7, 9, 7, 8],
    }
    assert RECORDS.apart.tolist() == [0, 0, -1, -1]
    alone = Records(("",), np.zeros(1, dtype=np.int64), np.array([5]), np.array([False]))
    assert list(alone.columns()) == ["unique_id"]


def test_records_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match="4 points need as many records, got 1"):
        PROBLEM.with_records(RECORDS[np.array([0])])
    with pytest.raises(InputError, match="2 sources of records do not fit 1 ids"):
        Records(("a",), np.array([0, 0]), np.array([1]), np.array([True]))
    with pytest.raises(InputError, match="1 sources need as many truth values, got 2"):
        Records(("a",), np.array([0]), np.array([1]), np.array([True, False]))
