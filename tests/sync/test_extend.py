"""Problems that grow, shrink or change after they were solved."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, datasets, score, synchronise
from stiefelsync.datasets import shapes
from stiefelsync.sync.changes import carry_over, changed_points
from stiefelsync.sync.extend import ExtendDetails


def _scene(wrong: float = 0.3, *, named: bool = False) -> tuple[Matchings, np.ndarray]:
    problem, truth = datasets.scene(1_000, 40, 200, 400, wrong, 0.3, rng=7)
    if named:
        objects = problem.pair_objects[problem.match_pairs]
        names = [f"image {i:03d}" for i in range(40)]
        problem = Matchings.from_arrays(objects, problem.indices, problem.sizes, names=names)
    return problem, truth


def test_an_unchanged_problem_keeps_its_labels() -> None:
    problem, _ = _scene()
    before = synchronise(problem, method="tracks")
    np.testing.assert_array_equal(before.extend(problem.with_weights(None)).labels, before.labels)


@pytest.mark.parametrize("wrong", [0.1, 0.3])
def test_a_further_object_finds_its_tracks_and_leaves_the_others_alone(wrong: float) -> None:
    problem, truth = _scene(wrong)
    before = synchronise(problem[:39], method="tracks")
    after = before.extend(problem)
    anew = score(synchronise(problem, method="tracks").labels, truth).fscore
    assert score(after.labels, truth).fscore > anew - 0.002
    m = problem.offsets[39]
    assert (after.labels[m:] >= 0).mean() > 0.9
    Matchings.from_labels(after.labels, problem.sizes)  # no object twice in a track
    touched = np.zeros(len(truth), dtype=bool)
    new = problem.endpoints[problem.pair_objects[problem.match_pairs][:, 1] == 39]
    touched[new] = True
    # Whose track has no new match, and no match with a track that has one, keeps its label.
    labels = np.append(before.labels, np.full(len(truth) - m, -1))
    near = np.isin(labels, labels[touched]) & (labels >= 0) | touched
    a, b = problem.endpoints.T
    near |= np.isin(labels, labels[np.unique(np.concatenate([a[near[b]], b[near[a]]]))])
    assert 0.1 < near[:m].mean() < 0.9
    np.testing.assert_array_equal(after.labels[:m][~near[:m]], before.labels[~near[:m]])


def test_objects_one_by_one_end_where_all_at_once_end() -> None:
    problem, truth = _scene()
    answer = synchronise(problem[:20], method="tracks")
    for n in range(21, 41):
        answer = answer.extend(problem[:n])
    assert (
        score(answer.labels, truth).fscore > score(synchronise(problem, method="tracks").labels, truth).fscore - 0.005
    )


def test_objects_in_random_order_are_not_merged_on_less_evidence_than_at_once() -> None:
    problem, truth = datasets.scene(4_000, 200, 200, 400, 0.5, 0.3, rng=100)
    order = np.random.default_rng(0).permutation(200)
    problem, truth = problem[order], truth.reshape(200, 200)[order].ravel()
    answer = synchronise(problem[:140], method="tracks")
    for n in range(141, 151):
        answer = answer.extend(problem[:n])
    assert isinstance(answer.outcome.details, ExtendDetails)
    anew = synchronise(problem[:150], method="tracks")
    found, expected = (score(result.labels, truth[:30_000]).fscore for result in (answer, anew))
    assert found > expected - 0.005


def test_what_was_decided_on_little_evidence_is_decided_again_in_time() -> None:
    problem, _ = _scene(0.5)
    answer, anew, whole = synchronise(problem[:20], method="tracks"), 0, 0
    for n in range(21, 41):
        before, answer = answer, answer.extend(problem[:n])
        details = answer.outcome.details
        if isinstance(details, ExtendDetails):
            assert anew < details.placed_anew <= problem.offsets[n] / 2
            anew = details.placed_anew
            continue
        whole, anew = whole + 1, 0
        at_once = synchronise(problem[:n], method="tracks").labels
        assert score(answer.labels, at_once).fscore == 1
        # Tracks that come out the same keep their labels.
        known = before.labels >= 0
        same = score(before.labels[known], at_once[: len(before.labels)][known]).fscore
        assert (answer.labels[: len(before.labels)] == before.labels)[known].mean() > 0.8 * same
    assert 1 <= whole < 20


def test_matches_that_go_take_their_tracks_along() -> None:
    problem, _ = _scene(0.1)
    before = synchronise(problem, method="tracks")
    rest = problem.keep((problem.pair_objects[problem.match_pairs] != 5).all(axis=1))
    after = before.extend(rest)
    assert (after.labels[problem.offsets[5] : problem.offsets[6]] == -1).all()
    assert score(after.labels, synchronise(rest, method="tracks").labels).fscore > 0.998


def test_objects_are_told_by_name_and_may_go() -> None:
    problem, truth = _scene(named=True)
    order = np.random.default_rng(0).permutation(40)
    before = synchronise(problem[order[:30]], method="tracks")
    after = before.extend(problem[5:])
    left = truth[problem.offsets[5] :]
    assert (
        score(after.labels, left).fscore > score(synchronise(problem[5:], method="tracks").labels, left).fscore - 0.005
    )


def test_changes_are_the_ends_of_matches_that_differ() -> None:
    rng = np.random.default_rng(0)
    problem, _ = datasets.scene(200, 12, 50, 100, 0.3, 0.3, rng=0)
    problem = problem.with_weights(rng.random(problem.n_matches) + 0.1)
    for _ in range(20):
        one, two = (problem.keep(rng.random(problem.n_matches) < 0.99) for _ in range(2))
        weights = two.weights * np.where(rng.random(two.n_matches) < 0.01, 2, 1)
        two = two.with_weights(weights)
        sets = [{(*end, w) for end, w in zip(p.endpoints.tolist(), p.weights, strict=True)} for p in (one, two)]
        expected = sorted({point for a, b, _ in sets[0] ^ sets[1] for point in (a, b)})
        found = changed_points(carry_over(one, np.full(one.n_points, -1), two), two)
        assert np.flatnonzero(found).tolist() == expected


@pytest.mark.parametrize("option", [{"copies": -1.0}, {"copies": np.nan}, {"doubt": -5.0}, {"neighbours": -1}])
def test_options_out_of_range_are_refused(option: dict[str, float]) -> None:
    problem, _ = _scene()
    before = synchronise(problem[:39], method="tracks")
    with pytest.raises(InputError, match="it must be 0"):
        before.extend(problem, **option)


def test_without_names_objects_cannot_go() -> None:
    problem, _ = _scene()
    with pytest.raises(InputError, match="had 40 objects and has 39 now"):
        synchronise(problem, method="tracks").extend(problem[:39])


@pytest.mark.parametrize("method", ["accurate", "fast"])
def test_dense_methods_go_on_from_their_labels(method: str) -> None:
    problem, truth = (
        shapes.ring(60, 25, observed=0.6, error=0.3, reach=5, rng=0)  # which "fast" does not solve
        if method == "accurate"
        else datasets.synthetic(25, 60, 0.6, 0.3, rng=0)
    )
    before = synchronise(problem[:59], 25, method=method)
    after = before.extend(problem)
    anew = synchronise(problem, 25, method=method)
    assert after.method == method
    # Answers that are decided from samples differ by chance.
    chance = 0.005 if method == "accurate" else 0.002
    assert score(after.labels, truth).fscore > score(anew.labels, truth).fscore - chance
    assert (after.labels[: len(before.labels)] == before.labels).mean() > 0.9


def test_objects_that_join_one_by_one_are_labelled_as_well_as_all_at_once() -> None:
    problem, truth = datasets.synthetic(25, 40, 0.8, 0.3, rng=0)
    answer = synchronise(problem[:34], 25)
    for n in range(35, 41):
        before, answer = answer, answer.extend(problem[:n])
        assert (answer.labels[: len(before.labels)] == before.labels).mean() > 0.98
    assert score(answer.labels, truth).fscore > score(synchronise(problem, 25).labels, truth).fscore - 0.002
    Matchings.from_labels(answer.labels, problem.sizes)
