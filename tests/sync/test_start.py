"""Going on from given labels: `synchronise(…, start=…)`."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import METHODS, Matchings, datasets, score, synchronise
from stiefelsync.errors import InputError
from stiefelsync.sync.method import Outcome, register

PROBLEM, TRUTH = datasets.synthetic(12, 10, 0.7, 0.3, rng=0)


@pytest.mark.parametrize("method", ["fast", "accurate"])
def test_a_perfect_start_is_kept_and_gaps_in_it_are_filled(method):
    start = TRUTH.copy()
    start[::7] = -1
    assert score(synchronise(PROBLEM, 12, method=method, start=start).labels, TRUTH).fscore == 1.0


def test_labels_of_a_start_may_have_holes():
    assert score(synchronise(PROBLEM, 12, method="fast", start=100 * TRUTH).labels, TRUTH).fscore == 1.0


def test_fast_repairs_the_start():
    problem = Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2])
    assert synchronise(problem, 2, method="fast", start=[1, 0, 0, 1, 0, 1]).labels.tolist() == [0, 1, 1, 0, 0, 1]


def test_the_start_reaches_the_method_numbered_from_zero():
    seen = []

    @register("test-start", summary="", consistent=True, cost="", reference="", choose="")
    def run(matchings, universe, /, *, start=None, rng, callback=None):
        seen.append((start.tolist(), universe))
        return Outcome(labels=start)

    try:
        problem = Matchings.from_labels([0, 1, 1, 0], [2, 2])
        synchronise(problem, method="test-start", start=[7, 3, -1, 9])
        assert seen == [([1, 0, -1, 2], 3)]
        assert METHODS["test-start"].takes_start
        assert "start" not in METHODS["test-start"].options
    finally:
        del METHODS["test-start"]


@pytest.mark.parametrize(
    ("start", "options", "message"),
    [
        (TRUTH[:-1], {}, r"start must hold one whole number per point, shape \(\d+,\); got int64 of shape"),
        (TRUTH + 0.5, {}, "start must hold one whole number per point"),
        (TRUTH - 2, {}, "start holds the label -2; use labels of at least 0, and -1 for unknown"),
        (0 * TRUTH + 4, {}, r"start gives \d+ points of object \d the label 4; at most one may have it"),
        (TRUTH, {"method": "spectral"}, "method 'spectral' takes no start; use one of accurate, "),
        (np.arange(len(TRUTH)), {}, rf"start has {len(TRUTH)} labels, more than the universe of 12"),
    ],
)
def test_a_bad_start_is_refused_with_the_reason(start, options, message):
    with pytest.raises(InputError, match=message):
        synchronise(PROBLEM, 12, start=start, **options)
