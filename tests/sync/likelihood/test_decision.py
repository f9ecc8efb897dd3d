"""Labels of largest expected fscore: counts against loops, the decision against all labellings."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from stiefelsync.sync.likelihood.decision import Samples, decide
from tests.sync.likelihood.literal import labellings

SIZES = [2, 2, 3]


def drawn(seed, n=7, sizes=SIZES):
    """Return samples that agree about half of the points."""
    rng = np.random.default_rng(seed)
    offsets, m = np.cumsum([0, *sizes]), sum(sizes)
    truth = np.concatenate([rng.permutation(3)[:size] for size in sizes])
    rows = []
    for _ in range(n):
        other = np.concatenate([rng.permutation(m)[:size] for size in sizes])
        keep = np.repeat(rng.random(len(sizes)) < 0.6, sizes)
        rows.append(np.where(keep, truth, other))
    return Samples.of(offsets, np.array(rows, dtype=np.int32))


def same(labels):
    """Return the pairs of points that have one label."""
    return {(a, b) for a, b in combinations(range(len(labels)), 2) if labels[a] == labels[b] >= 0}


def literal_expected(samples, labels):
    pairs, sampled = same(labels), [same(label) for label in samples.label]
    total = len(pairs) + np.mean([len(one) for one in sampled])
    return 2 * np.mean([len(pairs & one) for one in sampled]) / total if total else 1.0


@pytest.mark.parametrize("seed", range(4))
def test_points_are_grouped_by_label(seed):
    samples = drawn(seed)
    m = samples.label.shape[1]
    for n, label in enumerate(samples.label):
        start, members = samples.start[n * (m + 1) : (n + 1) * (m + 1)], samples.members[n * m : (n + 1) * m]
        assert [members[start[c] : start[c + 1]].tolist() for c in range(m)] == [
            np.flatnonzero(label == c).tolist() for c in range(m)
        ]


@pytest.mark.parametrize("seed", range(6))
def test_expected_fscore_is_the_mean_over_samples(seed):
    samples, rng = drawn(seed), np.random.default_rng(seed)
    assert samples.pairs == pytest.approx(np.mean([len(same(label)) for label in samples.label]))
    for _ in range(5):
        labels = np.concatenate([rng.permutation(4)[:size] for size in SIZES])
        labels[rng.random(len(labels)) < 0.2] = -1
        assert samples.expected_fscore(labels) == pytest.approx(literal_expected(samples, labels.tolist()))


def test_nothing_promised_and_nothing_expected_is_all():
    samples = Samples.of(np.array([0, 1, 2]), np.array([[0, 1]], dtype=np.int32))
    assert samples.expected_fscore(np.array([-1, -1])) == 1.0


@pytest.mark.parametrize("most", [3, 7])
def test_the_decision_is_the_best_of_all_labellings_or_nearly(most):
    reached = []
    for seed in range(30):
        samples = drawn(seed)
        labels, value = decide(samples, most)
        assert value == pytest.approx(literal_expected(samples, labels.tolist()))
        every = [literal_expected(samples, one) for one in labellings(SIZES) if shared(one) <= most]
        assert value <= max(every) + 1e-9
        reached.append(value > max(every) - 1e-9)
        assert value >= 0.95 * max(every)
    assert np.mean(reached) > 0.95


def shared(labels):
    return sum(labels.count(c) > 1 for c in set(labels))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [3, 4, 8])
def test_no_more_labels_are_shared_than_there_may_be_and_no_object_has_one_twice(seed, most):
    samples = drawn(seed, sizes=[2, 3, 3, 2])
    labels = decide(samples, most)[0]
    assert shared([c for c in labels.tolist() if c >= 0]) <= most
    for a, b in zip(samples.offsets, samples.offsets[1:], strict=False):
        own = labels[a:b][labels[a:b] >= 0]
        assert len(set(own.tolist())) == len(own)


@pytest.mark.parametrize("most", [3, 4])
def test_samples_of_more_labels_than_there_may_be_lead_to_no_more(most):
    rng, offsets = np.random.default_rng(0), np.arange(0, 19, 3)
    label = np.concatenate([rng.permutation(5)[:3] for _ in range(6)]).astype(np.int32)
    labels = decide(Samples.of(offsets, np.tile(label, (4, 1))), most)[0].tolist()
    assert shared([c for c in labels if c >= 0]) <= most


@pytest.mark.parametrize("seed", range(4))
def test_improving_never_lowers_what_is_expected(seed):
    samples = drawn(seed)
    for label in samples.label:
        before = samples.expected_fscore(label.astype(np.int64))
        assert samples.improve(label.astype(np.int64), 7)[1] >= before


@pytest.mark.parametrize("seed", range(3))
def test_shares_of_the_samples(seed):
    samples = drawn(seed)
    labels, _ = decide(samples, 7)
    S, m = samples.label.shape
    a, b = np.array(list(combinations(range(m), 2))).T
    found = samples.share_equal(a, b)
    for x in range(len(a)):
        assert found[x] == pytest.approx((sum(s[a[x]] == s[b[x]] for s in samples.label) + 0.5) / (S + 1))
    for p, told in enumerate(samples.point_confidence(labels)):
        others = [q for q in range(m) if q != p and labels[q] == labels[p] >= 0]
        if others:
            total = sum(np.mean([s[q] == s[p] for q in others]) for s in samples.label)
        else:
            total = sum((s == s[p]).sum() == 1 for s in samples.label)
        assert told == pytest.approx((total + 0.5) / (S + 1))
