"""Correlation clustering: sums are exact, moves gain, what must stay apart does, and duplicates are found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stiefelsync import Matchings, datasets, synchronise
from stiefelsync.errors import InputError
from stiefelsync.sync.methods._contraction import clusters, total_value
from stiefelsync.sync.methods._exclusive import exclusive_clusters
from stiefelsync.sync.outcome import by_first_appearance
from stiefelsync.sync.scores import match_values, move_confidence


def graph(n: int, seed: int, share: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    ends = np.array(list(itertools.combinations(range(n), 2)))
    ends = ends[rng.random(len(ends)) < share]
    return ends, rng.normal(0.2, 1.5, len(ends))


def partitions(n: int) -> list[np.ndarray]:
    """Return every partition of n vertices as labels numbered by first appearance."""
    found = [[0]]
    for _ in range(n - 1):
        found = [[*labels, c] for labels in found for c in range(max(labels) + 2)]
    return [np.array(labels) for labels in found]


@pytest.mark.parametrize("missing", [0.0, -0.4])
@pytest.mark.parametrize("seed", range(8))
def test_the_answer_is_near_the_best_and_no_single_move_gains(seed, missing):
    ends, values = graph(7, seed)
    labels, _ = clusters(7, ends, values, missing=missing)
    found = total_value(ends, values, labels, missing)
    best = max(total_value(ends, values, other, missing) for other in partitions(7))
    assert found <= best + 1e-9
    assert found >= 0.8 * best
    for v, c in itertools.product(range(7), range(8)):
        moved = labels.copy()
        moved[v] = c
        assert total_value(ends, values, moved, missing) <= found + 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_groups_stay_apart(seed):
    ends, values = graph(9, seed)
    group = np.array([0, 0, 0, 1, 1, 1, -1, -1, -1])
    labels, _ = clusters(9, ends, values + 1.5, apart=[group])
    for c in range(labels.max() + 1):
        own = group[labels == c]
        own = own[own >= 0]
        assert len(set(own.tolist())) == len(own)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_vertices_does_not_matter(seed):
    ends, values = graph(12, seed)
    order = np.random.default_rng(seed).permutation(12)
    labels, _ = clusters(12, ends, values)
    again, _ = clusters(12, np.sort(order[ends], axis=1), values)
    assert by_first_appearance(again[order]).tolist() == by_first_appearance(labels).tolist()


def test_confidence_is_that_of_staying():
    ends = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    values = np.array([2.0, 1.0, 0.5, 1.2])
    labels = np.array([0, 0, 0, 1])
    # Vertex 2 is worth 1.5 where it is and 1.2 with vertex 3, which itself is worth nothing alone.
    expected = 1 / (1 + np.exp(-0.6 * np.array([3.0, 2.5, 0.3, -1.2])))
    assert move_confidence(ends, values, labels) == pytest.approx(expected)


def test_values_of_weights():
    pairs = {(0, 1): [[0, 0]], (1, 2): [[0, 0]]}
    plain = Matchings.from_pairs(pairs, [1, 1, 1])
    assert match_values(plain).tolist() == [1, 1]
    assert match_values(plain.with_weights([0.8, 1.0]), 0.0) == pytest.approx([np.log(4), np.log(1e6 - 1)])
    assert match_values(plain.with_weights([2.0, 6.0])).tolist() == [0.5, 1.5]


def test_no_giant_cluster_where_matches_have_no_weights():
    # Two triangles and a wrong match between them: union-find makes one of them.
    triangles = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
    problem = Matchings.from_pairs({pair: [[0, 0]] for pair in triangles}, [1] * 6)
    assert synchronise(problem, method="correlation").labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_points_of_one_object_and_clean_sources_stay_apart():
    table = {
        "source_l": ["a", "a", "b"], "id_l": [1, 2, 1], "source_r": ["b", "b", "b"], "id_r": [1, 1, 2],
        "score": [0.95, 0.9, 0.9],
    }  # fmt: skip
    problem = Matchings.from_table(table)
    assert problem.records.duplicate_free.tolist() == [True, False]
    assert synchronise(problem, method="correlation").labels.tolist() == [0, 1, 0, 0]
    free = synchronise(problem, method="correlation", duplicate_free="", missing=0.0)
    assert free.labels.tolist() == [0, 0, 0, 0]
    both = synchronise(problem, method="correlation", duplicate_free=["a", "b"])
    assert both.labels.tolist() == [0, 1, 0, 2]
    with pytest.raises(InputError, match="unknown source 'c'"):
        synchronise(problem, method="correlation", duplicate_free="c")
    with pytest.raises(InputError, match="this problem has none"):
        synchronise(Matchings.from_labels([0, 0], [1, 1]), method="correlation", duplicate_free="c")
    with pytest.raises(InputError, match="missing must be a finite number of at most 0"):
        synchronise(problem, method="correlation", missing=1.0)


def fscore(labels: np.ndarray, truth: np.ndarray) -> float:
    def pairs(values: np.ndarray) -> float:
        count = np.unique(values, return_counts=True, axis=-1)[1]
        return float((count * (count - 1) // 2).sum())

    return 2 * pairs(np.stack([labels, truth])) / (pairs(labels) + pairs(truth))


@pytest.mark.filterwarnings("ignore:every object has one point")  # of union-find, which is told here
@pytest.mark.parametrize("seed", [31, 32])
def test_duplicates_inside_sources_are_found(seed):
    """A one-to-one answer cannot have them, and connected components join what is doubtful."""
    drawn = datasets.records(200, sources=4, duplicates=0.3, rng=seed)
    problem = Matchings.from_table(drawn.pairs)
    result = synchronise(problem, method="correlation")
    records = problem.records
    truth = drawn.truth_of(np.array(records.sources)[records.source], records.ids)
    ours = fscore(result.labels, truth)
    sure = [
        fscore(synchronise(problem.keep(problem.weights > t), method="union-find").labels, truth) for t in (0.5, 0.9)
    ]
    apart = synchronise(problem, method="correlation", duplicate_free=records.sources)
    assert ours > 0.85
    assert ours > fscore(apart.labels, truth) + 0.05
    assert (result.labels >= 0).all()
    assert ours > max(sure)
    assert result.outcome.details.value == pytest.approx(
        total_value(problem.endpoints, match_values(problem), result.labels, -0.5)
    )
    confidence = result.point_confidence
    assert ((confidence >= 0.5 - 1e-9) & (confidence <= 1)).all()


def test_the_callback_ends_the_work():
    problem = Matchings.from_table(datasets.records(60, sources=3, duplicates=0.3, rng=0).pairs)
    seen = []
    result = synchronise(problem, method="correlation", callback=lambda p: seen.append(p) or len(seen) > 2)
    assert str(result.status) == "stopped by the callback"
    assert seen[0].total == problem.n_points


@pytest.mark.parametrize("duplicates", [0.0, 0.2])
def test_confidence_is_about_how_often_records_are_right(duplicates):
    told, right = [], []
    for seed in range(60, 63):
        drawn = datasets.records(400, sources=5, duplicates=duplicates, rng=seed)
        problem = Matchings.from_table(drawn.pairs)
        result = synchronise(problem, method="correlation")
        records = problem.records
        truth = drawn.truth_of(np.array(records.sources)[records.source], records.ids)
        ways, which, count = np.unique(
            result.labels * (truth.max() + 1) + truth, return_inverse=True, return_counts=True
        )
        cluster, entity = np.divmod(ways, truth.max() + 1)
        # A record is right in the largest part of its entity, where its entity is the most frequent.
        in_cluster, in_entity = np.zeros(cluster.max() + 1), np.zeros(truth.max() + 1)
        np.maximum.at(in_cluster, cluster, count)
        np.maximum.at(in_entity, entity, count)
        good = (count == in_cluster[cluster]) & (count == in_entity[entity])
        told.append(result.point_confidence)
        right.append(good[which])
    p, good = np.concatenate(told), np.concatenate(right)
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        inside = (p >= low) & (p < high)
        assert abs(p[inside].mean() - good[inside].mean()) < 0.1


@pytest.mark.parametrize("seed", range(8))
def test_clusters_of_clean_sources_hold_one_record_of_each_and_no_move_gains(seed):
    draws = np.random.default_rng(seed)
    source = np.array([0, 0, 1, 1, 2, 2, 3])
    ends = np.array([(a, b) for a in range(7) for b in range(a + 1, 7) if draws.random() < 0.7])
    values = draws.normal(0.5, 2, len(ends))
    labels, _, gains = exclusive_clusters(7, ends, values, source)
    assert len(np.unique(labels * 4 + source)) == 7
    assert labels.tolist() == by_first_appearance(labels).tolist()
    assert (gains <= 1e-9).all()
    again = exclusive_clusters(7, ends[::-1, ::-1], values[::-1], source)
    assert again[0].tolist() == labels.tolist()


def test_records_change_places_where_both_gain():
    # Joined greedily 0 and 1 meet at 3.0, and 2 is left to 3 at -1; changed, both pairs are worth 2.9.
    ends = np.array([[0, 2], [0, 3], [1, 2], [1, 3]])
    values = np.array([3.0, 2.9, 2.9, -1.0])
    assert exclusive_clusters(4, ends, values, np.array([0, 0, 1, 1]))[0].tolist() == [0, 1, 1, 0]


def test_clean_sources_use_all_scores_and_beat_what_is_chosen_beforehand():
    ours, theirs = [], []
    for seed in range(31, 34):
        drawn = datasets.records(200, sources=5, rng=seed)
        problem = Matchings.from_table(drawn.pairs)
        truth = drawn.truth_of(*problem.records.columns().values())
        result = synchronise(problem)
        assert result.method == "correlation"
        assert problem.n_matches < len(problem.records.scored[0]) == len(drawn.pairs["match_probability"])
        assert len(np.unique(result.labels * 5 + problem.records.source)) == problem.n_points
        one_to_one = synchronise(problem, method="tracks").labels
        alone = one_to_one < 0
        one_to_one = np.where(alone, one_to_one.max() + np.cumsum(alone), one_to_one)
        ours.append(fscore(result.labels, truth))
        theirs.append(fscore(one_to_one, truth))
    assert np.mean(ours) > np.mean(theirs)


def test_other_methods_run_where_scores_do_not_say_all():
    problem = Matchings.from_table(datasets.records(15, sources=3, rng=1).pairs)
    # Matches that somebody chose are all that is known.
    fewer = problem.keep(problem.weights > 0.5)
    assert fewer.records.scored is None
    assert synchronise(fewer).method == "accurate"
    assert synchronise(problem, start=synchronise(problem).labels).method == "accurate"
    assert synchronise(problem, problem.n_points).method == "accurate"
