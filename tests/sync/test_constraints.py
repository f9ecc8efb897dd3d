"""Constraints hold exactly, whatever the method, and cost as little as can be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stiefelsync import METHODS, Constraints, Matchings, datasets, io, score, synchronise
from stiefelsync._core.binding import call
from stiefelsync.errors import FormatError, InputError
from stiefelsync.matching.graph import connected
from stiefelsync.matching.records import Records
from stiefelsync.sync.constraints import constrain
from stiefelsync.sync.extend import extend
from stiefelsync.sync.methods.rivals._joining import join_in_order as literally

CONSISTENT = sorted(name for name, method in METHODS.items() if method.consistent and method.extra is None)


def rows(problem: Matchings, ends: np.ndarray) -> np.ndarray:
    """Pairs of global points as object, point, object, point."""
    owner = problem.point_objects[ends]
    return np.stack([owner, ends - problem.offsets[owner]], axis=2).reshape(-1, 4)


def drawn(problem: Matchings, count: int, seed: int) -> tuple[Constraints, np.ndarray, np.ndarray]:
    """Random must links, and random cannot links, that do not contradict each other: so many, if there are."""
    rng, m = np.random.default_rng(seed), problem.n_points
    unit, owners = np.arange(m), [{o} for o in problem.point_objects.tolist()]
    must, cannot = [], []
    for a, b in rng.integers(m, size=(20 * count, 2)):
        one, two = unit[a], unit[b]
        if len(must) < count and owners[one].isdisjoint(owners[two]):
            unit[unit == two] = one
            owners[one] |= owners[two]
            must.append((a, b))
    for a, b in rng.integers(m, size=(20 * count, 2)):
        if len(cannot) < count and unit[a] != unit[b]:
            cannot.append((a, b))
    pairs = tuple(np.array(x, dtype=np.int64).reshape(-1, 2) for x in (must, cannot))
    return Constraints(*(rows(problem, x) for x in pairs)), *pairs


def assert_held(labels: np.ndarray, must: np.ndarray, cannot: np.ndarray) -> None:
    a, b = labels[must].T
    assert ((a == b) & (a >= 0)).all()
    a, b = labels[cannot].T
    assert ((a != b) | (a < 0)).all()


def assert_labels(problem: Matchings, labels: np.ndarray) -> None:
    """No two points of an object share a label."""
    held = labels >= 0
    key = labels[held] * problem.n_objects + problem.point_objects[held]
    assert len(np.unique(key)) == len(key)


@pytest.mark.parametrize("seed", range(60))
def test_any_labels_are_changed_so_that_all_constraints_hold(seed: int):
    rng = np.random.default_rng(seed)
    problem, truth = datasets.synthetic(int(rng.integers(2, 9)), int(rng.integers(3, 9)), 0.7, 0.4, rng=seed)
    labels = truth if seed % 2 else np.where(rng.random(len(truth)) < 0.3, -1, truth)
    if seed % 3 == 0:  # labels that have nothing to do with the matches
        labels = np.concatenate([rng.permutation(9)[:n] for n in problem.sizes])
    known, must, cannot = drawn(problem, int(rng.integers(1, 6)), seed)
    found = constrain(problem, known).enforce(labels)
    assert_held(found, must, cannot)
    assert_labels(problem, found)
    # Whose track has nothing to do with a violated constraint stays with whom it was.
    ends = np.concatenate([must.ravel(), cannot.ravel()])
    free = ~np.isin(labels, labels[ends]) & (labels >= 0)
    np.testing.assert_array_equal(found[free], labels[free])
    # What holds already changes nothing.
    np.testing.assert_array_equal(constrain(problem, known).enforce(found), found)


@pytest.mark.parametrize("name", CONSISTENT)
def test_every_method_respects_them(name: str):
    problem, _ = datasets.synthetic(6, 8, 0.8, 0.3, rng=4)
    known, must, cannot = drawn(problem, 6, 1)
    result = synchronise(problem, 8, method=name, constraints=known)
    assert_held(result.labels, must, cannot)
    assert_labels(problem, result.labels)
    assert result.input is problem
    assert result.constraints == known
    assert len(result.confidence) == len(result.kept) == problem.n_matches


def test_a_method_without_tracks_refuses_them():
    problem, _ = datasets.synthetic(4, 5, 0.8, 0.3, rng=4)
    inconsistent = next(name for name, method in METHODS.items() if not method.consistent)
    with pytest.raises(InputError, match="gives no tracks that could hold constraints"):
        synchronise(problem, 5, method=inconsistent, constraints=Constraints(must=[[0, 0, 1, 0]]))


def test_tracks_that_must_be_one_become_one():
    """A must link between two tracks that share no object joins them whole."""
    problem = Matchings.from_labels([0, 0, 0, 1, 1, 1], [1] * 6)
    found = constrain(problem, Constraints(must=[[0, 0, 5, 0]])).enforce(np.array([0, 0, 0, 1, 1, 1]))
    assert len(set(found.tolist())) == 1


def test_a_point_takes_the_place_of_another():
    """Where a track has another point of the object already, that one gives way."""
    problem = Matchings.from_labels([0, 0, 0, 0, 1], [1, 1, 1, 2])
    found = constrain(problem, Constraints(must=[[0, 0, 3, 1]])).enforce(np.array([0, 0, 0, 0, 1]))
    assert found[0] == found[1] == found[2] == found[4]
    assert found[3] != found[0]


def test_a_track_falls_apart_where_its_matches_are_thin():
    """Two triangles that one match joins part there, not around a point."""
    ends = [[0, 1], [0, 2], [1, 2], [3, 4], [3, 5], [4, 5], [2, 3]]
    problem = Matchings.from_endpoints(ends, [1] * 6)
    found = constrain(problem, Constraints(cannot=[[0, 0, 5, 0]])).enforce(np.zeros(6, dtype=np.int64))
    assert found[0] == found[1] == found[2]
    assert found[3] == found[4] == found[5] != found[0]


@pytest.mark.parametrize("method", ["accurate", "fast", "tracks"])
def test_ten_corrections_raise_fscore(method: str):
    """Told of ten wrong tracks which of their points belong together, answers to hard problems are better."""
    for seed in (100, 101, 102):
        problem, truth = datasets.synthetic(30, 8, 0.5, 0.6, rng=seed)
        before = synchronise(problem, method=method)
        known = Constraints()
        for track in before.tracks():
            own = truth[problem.offsets[track[:, 0]] + track[:, 1]]
            parts = [track[own == label] for label in np.unique(own)]
            if len(parts) > 1 and len(known.cannot) < 10:
                known |= Constraints.split(*parts[:2])
        after = synchronise(problem, method=method, constraints=known)
        assert score(after, truth).fscore > score(before, truth).fscore


def test_extended_answers_go_on_holding():
    problem, _ = datasets.scene(300, 20, 100, 200, 0.1, 0.3, rng=0)
    small, names = problem[:19], [f"image {i}" for i in range(20)]
    known, must, cannot = drawn(small, 30, 0)
    for method in ("tracks", "fast"):
        solved = synchronise(small, method=method, constraints=known)
        more, must_too, cannot_too = drawn(problem, 3, 5)
        grown = extend(solved, problem)
        assert_held(grown.labels, must, cannot)
        grown = solved.extend(problem, constraints=more)
        assert_held(grown.labels, np.concatenate([must, must_too]), np.concatenate([cannot, cannot_too]))
        # Without its last objects, which are told by name.
        named = replace(grown, input=Matchings.from_endpoints(problem.endpoints, problem.sizes, names=names))
        shrunk = named.extend(named.input[:18])
        kept = (must < problem.offsets[18]).all(axis=1)
        assert_held(shrunk.labels, must[kept], cannot[(cannot < problem.offsets[18]).all(axis=1)])


CHAIN = "these constraints contradict each other: point 0 of 'a' must be point 0 of 'b', which must be "


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (Constraints([[0, 0, 1, 0], [1, 0, 0, 1]]), CHAIN + "point 1 of 'a'; but points 0 and 1 of 'a' are never one"),
        (
            Constraints([[0, 0, 1, 0], [1, 0, 2, 0]], [[2, 0, 0, 0]]),
            CHAIN + "point 0 of 'c'; but point 0 of 'a' cannot be point 0 of 'c'",
        ),
        # The longer way round is not told.
        (
            Constraints([[0, 0, 3, 0], [3, 0, 2, 0], [2, 0, 1, 0], [0, 0, 1, 0], [1, 0, 0, 1]]),
            CHAIN + "point 1 of 'a'; but points 0 and 1 of 'a' are never one",
        ),
        (
            Constraints(cannot=[[0, 0, 0, 0]]),
            "these constraints contradict each other: point 0 of 'a' is itself; but"
            " point 0 of 'a' cannot be point 0 of 'a'",
        ),
    ],
)
def test_contradictions_are_told_by_their_shortest_chain(known: Constraints, said: str):
    problem = Matchings.from_labels([0, 1, 0, 0, 0], [2, 1, 1, 1], names=["a", "b", "c", "d"])
    with pytest.raises(InputError) as error:
        synchronise(problem, constraints=known)
    assert str(error.value) == said


def test_the_shortest_chain_is_found_among_many():
    """A ring of a thousand objects closed wrongly is told by its chord."""
    k = 1000
    problem = Matchings.from_pairs({(0, 1): [[0, 0]]}, [2] + [1] * (k - 1))
    ring = [[i, 0, i + 1, 0] for i in range(k - 1)] + [[k - 1, 0, 0, 1], [500, 0, 0, 1]]
    with pytest.raises(InputError) as error:
        constrain(problem, Constraints(ring))
    # From point 1 of object 0 over the chord to object 500 and down to point 0 of object 0.
    assert str(error.value).count(" must be ") == 501


def test_sources_that_hold_everything_once():
    records = Records(("a", "b"), np.array([0, 0, 1]), np.array(["x", "y", "z"]), np.array([True, False]))
    problem = Matchings.from_labels([0, 1, 0], [1, 1, 1]).with_records(records)
    with pytest.raises(InputError, match="record x of 'a' and record y of 'a' are never one, as their source holds"):
        constrain(problem, Constraints(must=[[0, 0, 2, 0], [2, 0, 1, 0]]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[0, 0, 9, 0]], "a constraint is about object 9; there are 2"),
        ([[0, 7, 1, 0]], "a constraint is about point 7 of object 0, which has 2 points"),
        ([[0, 0, 1, -1]], "a constraint is about point -1 of object 1, which has 2 points"),
        ([[0.5, 0, 1, 0]], "must must hold rows of object, point, object, point; got float64 of shape (1, 4)"),
        ([[0, 0]], "must must hold rows of object, point, object, point; got int64 of shape (1, 2)"),
    ],
)
def test_constraints_about_nothing(given: list, said: str):
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2])
    with pytest.raises(InputError) as error:
        synchronise(problem, constraints=Constraints(must=given))
    assert str(error.value) == said


def test_the_kernel_joins_as_its_literal_twin():
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, owners = int(rng.integers(1, 60)), int(rng.integers(1, 12))
        owner, edges = rng.integers(owners, size=n), rng.integers(n, size=(int(rng.integers(0, 90)), 2))
        track = np.empty(n, dtype=np.int64)
        call("join_in_order", owner, n, owners, edges, len(edges), track)
        expected = literally(owner, edges)
        ends = np.stack([np.arange(n), track], axis=1), np.stack([np.arange(n), expected], axis=1)
        np.testing.assert_array_equal(connected(n, ends[0]), connected(n, ends[1]))


def test_files(tmp_path):
    problem, _ = datasets.synthetic(6, 4, 1.0, 0.2, rng=0)
    named = Matchings.from_endpoints(problem.endpoints, problem.sizes, names=["a,b", 'c"d', "é", "x"])
    records = Records(
        ("p", "q"), np.repeat([0, 1], 12), np.array([f"r{p % 12}" for p in range(24)]), np.array([True, True])
    )
    two = Matchings.from_labels(np.tile(np.arange(12), 2), [12, 12]).with_records(records)
    for number, about in enumerate([problem, named, two]):
        known, *_ = drawn(about, 3, number)
        io.write_constraints(known, about, tmp_path / f"{number}.csv")
        assert io.read_constraints(tmp_path / f"{number}.csv", about) == known
    assert (tmp_path / "2.csv").read_text().splitlines()[1].startswith(("must,p,r", "must,q,r"))


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("a,b\n", FormatError, "the first line of a file of constraints is kind,object_a,point_a,object_b,point_b"),
        ("HEAD\nmust,a,0,b\n", FormatError, "line 2: 4 columns where 5 are expected"),
        ("HEAD\nmaybe,a,0,b,0\n", FormatError, "line 2: a constraint is of kind must or cannot, not 'maybe'"),
        ("HEAD\nmust,a,0,z,0\n", InputError, "line 2: there is no object 'z'; names are those of the matches"),
        ("HEAD\nmust,a,0,b,one\n", FormatError, "line 2: 'one' is no number of a point"),
        ("HEAD\nmust,a,0,b,2\n", InputError, "line 2: 'b' has 2 points, none is 2"),
    ],
)
def test_bad_files(tmp_path, text: str, kind: type, said: str):
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a", "b"])
    file = tmp_path / "c.csv"
    file.write_text(text.replace("HEAD", "kind,object_a,point_a,object_b,point_b"))
    with pytest.raises(kind) as error:
        io.read_constraints(file, problem)
    assert str(error.value).endswith(said)
    with pytest.raises(InputError, match="does not exist"):
        io.read_constraints(tmp_path / "nowhere.csv", problem)
