"""Tables of scored pairs become problems, whatever library they are of and however their columns are named."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from stiefelsync import datasets
from stiefelsync.errors import InputError
from stiefelsync.matching._assignment import best_pairs
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.table import columns_of, edge_columns

SPLINK = {
    "match_weight": [3.0, 1.0, -2.0],
    "match_probability": [0.9, 0.6, 0.2],
    "source_dataset_l": ["a", "a", "b"],
    "source_dataset_r": ["b", "b", "b"],
    "unique_id_l": [1, 2, 1],
    "unique_id_r": [1, 1, 3],
}
TWO = {"id_left": ["x", "y"], "id_right": ["p", "p"], "score": [0.9, 0.8]}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (list(SPLINK), (("unique_id_l", "unique_id_r"), "match_probability", ("source_dataset_l", "source_dataset_r"))),
        (["id_left", "id_right", "score"], (("id_left", "id_right"), "score", None)),
        (["id1", "id2", "Probability"], (("id1", "id2"), "Probability", None)),
        (["left_id", "right_id", "left_source", "right_source", "similarity"],
         (("left_id", "right_id"), "similarity", ("left_source", "right_source"))),
        (["left", "right", "score"], (("left", "right"), "score", None)),
        (["unique_id_l", "unique_id_r", "match_weight"], (("unique_id_l", "unique_id_r"), "match_weight", None)),
    ],
)  # fmt: skip
def test_columns_are_found_by_name(names, found):
    columns = edge_columns(names)
    assert (columns.id, columns.score, columns.source) == found


def test_columns_that_tell_nothing():
    assert edge_columns(["id_left", "id_right"]) is None
    assert edge_columns(["object_a", "point_a", "object_b", "point_b", "weight"]) is None
    with pytest.raises(InputError, match="no columns of ids and scores among a, b; the usual names are unique_id_l"):
        Matchings.from_table({"a": [1], "b": [2]})
    with pytest.raises(InputError, match="there is no column 'q'; there are a, b"):
        Matchings.from_table({"a": [1], "b": [2]}, columns="a,b,q")
    with pytest.raises(InputError, match="columns names id,id,score or source,id,source,id,score, got 2 names"):
        Matchings.from_table({"a": [1], "b": [2]}, columns="a,b")


def test_sources_with_scored_pairs_inside_may_hold_duplicates():
    problem = Matchings.from_table(SPLINK)
    assert problem.sizes.tolist() == [1, 1, 1, 1]
    assert problem.n_matches == 3
    assert problem.records.sources == ("a", "b")
    assert problem.records.ids.tolist() == [1, 2, 1, 3]
    assert problem.records.duplicate_free.tolist() == [True, False]
    assert Matchings.from_table(SPLINK, duplicates=True).records.duplicate_free.tolist() == [False, False]
    assert Matchings.from_table(SPLINK, duplicates="a").records.duplicate_free.tolist() == [False, True]


def test_clean_sources_are_objects_and_their_pairs_one_to_one():
    problem = Matchings.from_table(SPLINK, duplicates=False)
    assert problem.sizes.tolist() == [2, 2]
    assert problem.names == ("a", "b")
    assert problem.pair(0, 1).tolist() == [[0, 0]]
    assert problem.weights.tolist() == [0.9]
    assert problem.repair.second_partners == 1


def test_two_columns_of_different_sources():
    problem = Matchings.from_table(TWO, sources="left,right")
    assert problem.sizes.tolist() == [2, 1]
    assert problem.records.ids.tolist() == ["x", "y", "p"]
    # The same without names are records of one source, any two of which may be the same.
    assert Matchings.from_table(TWO).sizes.tolist() == [1, 1, 1]
    same = {"id_left": [5], "id_right": [5], "score": [0.9]}
    with pytest.raises(InputError, match=r"record 5 is paired with itself; .* sources=left,right"):
        Matchings.from_table(same)
    assert Matchings.from_table(same, sources=("l", "r")).n_matches == 1


def test_sources_before_ids():
    table = {"id_l": ["a-__-1", "b-__-1"], "id_r": ["b-__-1", "c-__-x"], "score": [0.9, 0.8]}
    problem = Matchings.from_table(table, prefix="-__-")
    assert problem.records.sources == ("a", "b", "c")
    assert problem.records.ids.tolist() == ["1", "1", "x"]
    assert problem.sizes.tolist() == [1, 1, 1]
    with pytest.raises(InputError, match="the id 'a-__-1' has no source before '/'"):
        Matchings.from_table(table, prefix="/")
    table["id_r"][1] = "c"
    with pytest.raises(InputError, match="the id 'c' has no source before '-__-'") as caught:
        Matchings.from_table(table, prefix="-__-")
    assert caught.value.match == 1


def test_a_pair_listed_twice_counts_once_with_its_highest_score():
    table = {"id1": ["a", "b", "a"], "id2": ["b", "a", "c"], "score": [0.4, 0.7, 0.1]}
    problem = Matchings.from_table(table)
    assert problem.n_matches == 2
    assert problem.weights.tolist() == [0.7, 0.1]
    assert problem.repair.duplicates == 1


def test_match_weights_are_bits():
    table = {"unique_id_l": [1, 1], "unique_id_r": [2, 3], "match_weight": [2.0, -2.0]}
    assert Matchings.from_table(table).weights.tolist() == pytest.approx([0.8, 0.2])


@pytest.mark.parametrize(
    ("scores", "message", "row"),
    [
        ([0.5, 1.5], "score is 1.5; scores are taken for probabilities", 1),
        ([np.nan, 0.5], "score is empty", 0),
        (["a", "b"], "the column 'score' does not hold numbers", None),
    ],
)
def test_scores_that_are_none(scores, message, row):
    with pytest.raises(InputError, match=message) as caught:
        Matchings.from_table({"id1": [1, 2], "id2": [3, 4], "score": scores})
    assert caught.value.match == row


def test_empty_ids_and_wrong_thresholds():
    with pytest.raises(InputError, match="id2 is empty") as caught:
        Matchings.from_table({"id1": ["a", "b"], "id2": ["c", None], "score": [0.5, 0.5]})
    assert caught.value.match == 1
    with pytest.raises(InputError, match="threshold must be a probability of at least 0 and below 1, got 2"):
        Matchings.from_table(TWO, threshold=2)
    with pytest.raises(InputError, match="duplicates names 'q', which is no source; there are a, b"):
        Matchings.from_table(SPLINK, duplicates="q")
    with pytest.raises(InputError, match="a single source without duplicates"):
        Matchings.from_table(TWO, duplicates=False)
    with pytest.raises(InputError, match="a table is a dict of columns, or a frame of pandas"):
        Matchings.from_table(7)


@pytest.mark.parametrize(
    "ids", [[3, 5, 9], ["c", "e", "z"], [0.5, 2.5, 9.0], [3, "x", 4.5], [("a", 1), ("b", 2), ("c", 3)]]
)
def test_ids_of_any_type_are_kept(ids):
    left, right = np.empty(2, dtype=object), np.empty(2, dtype=object)
    left[:], right[:] = ids[:2], ids[1:]
    problem = Matchings.from_table({"id1": left, "id2": right, "score": [0.9, 0.8]})
    assert sorted(problem.records.ids.tolist(), key=str) == sorted(ids, key=str)


def test_the_order_of_rows_and_sides_does_not_matter():
    rng = np.random.default_rng(3)
    pairs = datasets.records(60, sources=3, duplicates=0.2, rng=0).pairs
    first = Matchings.from_table(pairs)
    order = rng.permutation(len(pairs["match_probability"]))
    swapped = {
        name: pairs[name[:-2] + {"_l": "_r", "_r": "_l"}[name[-2:]] if name[-2:] in ("_l", "_r") else name][order]
        for name in pairs
    }
    again = Matchings.from_table(swapped)
    assert again == first
    assert again.records.ids.tolist() == first.records.ids.tolist()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "duckdb"])
def test_frames_of_every_library_give_the_same_problem(library):
    module = pytest.importorskip(library)
    pyarrow = pytest.importorskip("pyarrow")
    pairs = datasets.records(40, sources=3, rng=0).pairs
    first = Matchings.from_table(pairs)
    make = {
        "pandas": lambda: module.DataFrame(pairs),
        "polars": lambda: module.DataFrame(pairs),
        "pyarrow": lambda: pyarrow.table(pairs),
        "duckdb": lambda: module.from_arrow(pyarrow.table(pairs)),
    }
    problem = Matchings.from_table(make[library]())
    assert problem == first
    assert problem.records.ids.tolist() == first.records.ids.tolist()
    assert problem.records.sources == first.records.sources


def test_frames_without_an_interface_are_read_by_their_columns():
    class Frame:
        columns = ("id1", "id2", "score")

        def __getitem__(self, name):
            return {"id1": [1], "id2": [2], "score": [0.5]}[name]

    assert list(columns_of(Frame())) == ["id1", "id2", "score"]
    assert Matchings.from_table(Frame()).n_matches == 1


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_the_best_one_to_one(seed):
    rng = np.random.default_rng(seed)
    n = 60
    keys = np.unique(rng.integers(0, n * n, 130))
    rows, columns = np.divmod(keys, n)
    gain = rng.uniform(0.01, 0.7, len(keys))
    chosen = best_pairs(rows, columns, gain)
    S = np.zeros((n, n))
    S[rows, columns] = gain
    assert gain[chosen].sum() == pytest.approx(S[linear_sum_assignment(S, maximize=True)].sum())
    assert len(set(rows[chosen])) == len(set(columns[chosen])) == chosen.sum()


def test_many_small_conflicts_are_solved_in_little_time():
    n = 20_000
    rows = np.concatenate([np.arange(n), np.arange(0, n, 2)])
    columns = np.concatenate([np.arange(n), np.arange(1, n + 1, 2)])
    gain = np.concatenate([np.full(n, 0.5), np.full(n // 2, 0.9)])
    chosen = best_pairs(rows, columns, gain)
    assert chosen.sum() == n  # two at .5 are better than one at .9
