"""What a method returns is checked before anything is claimed about it, and labels are numbered in one place."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stiefelsync import METHODS, InputError, Matchings, datasets, synchronise
from stiefelsync.sync.method import Details, Outcome, register
from stiefelsync.sync.outcome import by_first_appearance

PROBLEM = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
OTHER = Matchings.from_labels([0, 1, 0], [2, 1])

BAD = {
    "shared": ([0, 0, 1, 2, 1, 2], "method 'wrong' gave points 0 and 1 of object 0 the same label, 0"),
    "shared late": ([5, 6, 5, 6, 9, 9], "points 0 and 1 of object 2 the same label, 9"),
    "negative": ([0, 1, 1, 0, 0, -7], "method 'wrong' gave the label -7; the least is -1, unmatched"),
    "short": ([0, 1, 1], r"method 'wrong' must label 6 points by whole numbers, got int64 of shape \(3,\)"),
    "fractions": ([0.0, 1, 1, 0, 0, 1], r"by whole numbers, got float64 of shape \(6,\)"),
}


@pytest.fixture
def enter():
    """Enter a method for the time of a test."""
    names = []

    def add(name, answer, consistent=True):
        names.append(name)
        words = dict.fromkeys(("summary", "cost", "reference", "choose"), "a test")

        @register(name, consistent=consistent, **words)
        def run(matchings, universe, /, *, rng, callback=None):
            return answer

        return name

    yield add
    for name in names:
        del METHODS[name]


@pytest.mark.parametrize("case", BAD)
def test_labels_that_are_no_answer_are_refused(case, enter):
    labels, message = BAD[case]
    enter("wrong", Outcome(labels=np.array(labels)))
    with pytest.raises(InputError, match=message):
        synchronise(PROBLEM, 2, method="wrong")


def test_other_answers_that_are_none(enter):
    with pytest.raises(InputError, match="method 'numbers' must return an Outcome, got int"):
        synchronise(PROBLEM, 2, method=enter("numbers", 3))
    with pytest.raises(InputError, match="method 'elsewhere' returned matchings of objects of other sizes"):
        synchronise(PROBLEM, 2, method=enter("elsewhere", Outcome(matchings=OTHER), consistent=False))
    with pytest.raises(InputError, match="method 'pairs' must return Matchings, got dict"):
        synchronise(PROBLEM, 2, method=enter("pairs", Outcome(matchings={}), consistent=False))
    with pytest.raises(InputError, match=r"method 'dictionary' must give Details, got the details \{'value': 3\}"):
        synchronise(PROBLEM, 2, method=enter("dictionary", Outcome(labels=np.arange(6), details={"value": 3})))


@dataclass(frozen=True, eq=False, repr=False)
class Found(Details):
    """Details of an own method."""

    eigenvalues: np.ndarray
    route: str = "dense"


def test_outcomes_compare_print_and_travel():
    outcome, same, other = (Outcome(labels=np.arange(6), details=Found(np.arange(n))) for n in (3, 3, 4))
    assert outcome == same == pickle.loads(pickle.dumps(outcome))
    assert outcome == replace(outcome, timings={"start": 3.0})
    assert outcome != other
    assert Found(np.arange(3)) != Details()
    assert outcome != Outcome(labels=np.zeros(6, dtype=np.int64), details=Found(np.arange(3)))
    assert "details=Found(eigenvalues=array of shape (3,), route='dense')" in repr(outcome)
    assert "labels=array of shape (6,)" in repr(outcome)


@pytest.mark.filterwarnings("ignore::stiefelsync.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(METHODS))
def test_details_are_documented_and_travel(name):
    problem, _ = datasets.synthetic(8, 6, observed=0.6, error=0.3, rng=3)
    result = synchronise(problem, 12, method=name)
    details = result.outcome.details
    assert pickle.loads(pickle.dumps(details)) == details
    json.dumps(details.figures(problem))
    words = set(re.findall(r"\w+", (type(details).__doc__ or "").partition("Attributes")[2]))
    assert {f.name for f in fields(details)} <= words


@given(st.lists(st.integers(-1, 6)))
def test_numbering_is_by_first_appearance_and_keeps_who_belongs_together(labels):
    numbered = by_first_appearance(np.array(labels, dtype=np.int64)).tolist()
    seen: dict[int, int] = {}
    for label in labels:
        if label >= 0:
            seen.setdefault(label, len(seen))
    assert numbered == [seen.get(label, -1) for label in labels]


@pytest.mark.filterwarnings("ignore::stiefelsync.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(n for n in METHODS if METHODS[n].consistent))
def test_every_method_numbers_by_first_appearance_without_holes(name):
    problem, _ = datasets.synthetic(8, 6, observed=0.6, error=0.3, rng=3)
    result = synchronise(problem, 12, method=name)
    np.testing.assert_array_equal(result.labels, by_first_appearance(result.labels))
    assert result.labels.max() < result.universe_size
    firsts = [tuple(track[0]) for track in result.tracks()]
    assert firsts == sorted(firsts)


def test_results_are_equal_if_problem_and_answer_are():
    one, two, other = (synchronise(PROBLEM, 2, method=name) for name in ("fast", "fast", "union-find"))
    assert one == two
    assert one != other
    assert one != synchronise(OTHER, 2, method="fast")
    assert repr(one).startswith("Synchronisation(fast, Matchings(3 objects, 6 points")


def own(matchings, universe, /, *, rng, callback=None, first: int = 0):
    """Give every point a label of its own."""
    return Outcome(labels=first + np.arange(matchings.n_points))


def test_a_function_is_a_method():
    result = synchronise(PROBLEM, 2, method=own, first=3)
    assert result.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert (result.method, result.universe_size) == ("own", 6)
    assert "own" in result.summary()
    with pytest.raises(InputError, match="unknown option of method 'own' 'frist'; did you mean 'first'"):
        synchronise(PROBLEM, 2, method=own, frist=3)
    with pytest.raises(InputError, match="option first of method 'own' must be a whole number, got 'x'"):
        synchronise(PROBLEM, 2, method=own, first="x")


def plain_labels(matchings):
    """Give every point a label of its own. And no more."""
    return list(range(matchings.n_points))


def plain_matchings(matchings, universe):
    assert universe == 2
    return matchings


def with_a_generator(matchings, *, rng, times: int = 1):
    return times * rng.permutation(matchings.n_points)


def test_a_function_has_few_obligations():
    assert synchronise(PROBLEM, 2, method=plain_labels).labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert synchronise(PROBLEM, 2, method=plain_matchings).matchings() == PROBLEM
    assert synchronise(PROBLEM, 2, method=lambda matchings: np.arange(6)).method == "<lambda>"
    result = synchronise(PROBLEM, 2, method=with_a_generator, times=3)
    assert result.labels.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="unknown option of method 'with_a_generator' 'time'"):
        synchronise(PROBLEM, 2, method=with_a_generator, time=3)


def test_a_name_is_enough_to_register():
    try:
        register("plain")(plain_labels)
        known = METHODS["plain"]
        assert (known.summary, known.consistent) == ("Give every point a label of its own. And no more", False)
        assert synchronise(PROBLEM, 2, method="plain").consistent
        assert synchronise(PROBLEM, 2, method=known.run).method == "plain"
    finally:
        METHODS.pop("plain", None)


def test_a_registered_function_stands_for_its_method():
    assert synchronise(PROBLEM, 2, method=METHODS["union-find"].run).method == "union-find"
    assert synchronise(PROBLEM, 2, method=METHODS["union-find"]).method == "union-find"


def test_a_name_is_registered_once(enter):
    words = dict.fromkeys(("summary", "cost", "reference", "choose"), "a test")
    enter("taken", Outcome(labels=np.arange(6)))
    with pytest.raises(InputError, match="a method 'taken' is registered already; choose another name, or"):
        register("taken", consistent=True, **words)(own)
    assert register("taken", consistent=True, replace=True, **words)(own) is own
    assert METHODS["taken"].run is own
    register("taken", consistent=True, **words)(own)  # the same definition again, as in a notebook
