"""A comparison measures methods alike and lists the best first."""

from __future__ import annotations

import pytest

from stiefelsync import InputError, datasets, score, synchronise
from stiefelsync.sync.comparison import compare


@pytest.fixture(scope="module")
def planted():
    return datasets.synthetic(10, 8, 0.8, 0.3, rng=1)


def test_rows_are_what_synchronise_gives(planted):
    problem, truth = planted
    (row,) = compare(problem, ["sparse-stiefel:extra_iter=4"], universe=10, truth=truth, rng=2)
    result = synchronise(problem, 10, method="sparse-stiefel", extra_iter=4, rng=2)
    quality = score(result.labels, truth)
    assert (row.precision, row.recall, row.fscore) == (quality.precision, quality.recall, quality.fscore)
    assert (row.objective, row.gap, row.universe) == (result.objective, result.gap, 10)
    assert row.cycle_error == 0
    assert row.error is None


def test_sorted_by_objective_without_a_truth(planted):
    rows = compare(planted[0], ["union-find", "matcheig", "fast"], universe=10)
    assert all(row.fscore is None for row in rows)
    objectives = [row.objective for row in rows]
    assert objectives == sorted(objectives, reverse=True)
    assert {row.method: row.consistent for row in rows}["matcheig"] is False


def test_callback_hears_of_every_method(planted):
    heard = []
    compare(planted[0], ["union-find", "tracks"], callback=lambda done, name: heard.append((done, name)))
    assert heard == [(0, "union-find"), (1, "tracks")]


def test_nothing_runs_if_one_name_is_wrong(planted):
    heard = []
    with pytest.raises(InputError, match="did you mean 'tracks'"):
        compare(planted[0], ["union-find", "track"], callback=lambda *x: heard.append(x))
    assert heard == []


def test_options_may_be_words_or_numbers(planted):
    (row,) = compare(planted[0], ["sparse-stiefel:step=polar:max_iter=150"], universe=10)
    assert row.error is None
    with pytest.raises(InputError, match="unknown step 'polr'"):
        compare(planted[0], ["sparse-stiefel:step=polr"], universe=10)
