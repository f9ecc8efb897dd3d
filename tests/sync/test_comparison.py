"""A comparison measures methods alike and lists the best first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stiefelsync import METHODS, InputError, datasets, score, synchronise
from stiefelsync.sync import choose
from stiefelsync.sync.comparison import compare, default_methods


@pytest.fixture(scope="module")
def planted():
    return datasets.synthetic(10, 8, 0.8, 0.3, rng=1)


def test_rows_are_what_synchronise_gives(planted):
    problem, truth = planted
    (row,) = compare(problem, ["sparse-stiefel:extra_iter=4"], universe=10, truth=truth, rng=2)
    result = synchronise(problem, 10, method="sparse-stiefel", extra_iter=4, rng=2)
    quality = score(result.labels, truth)
    assert (row.precision, row.recall, row.fscore) == (quality.precision, quality.recall, quality.fscore)
    assert (row.objective, row.gap, row.universe) == (result.objective, None, 10)
    (row,) = compare(problem, ["sparse-stiefel:extra_iter=4"], universe=10, rng=2, certificate=True)
    assert row.gap == result.gap > 0
    assert row.cycle_error == 0
    assert row.error is None


def test_sorted_by_objective_without_a_truth(planted):
    # The inconsistent answer keeps more matches than any consistent one can, and is no better for that.
    rows = compare(planted[0], ["union-find", "matcheig", "eig-manopt:tries=1", "tracks", "fast"], universe=10)
    assert all(row.fscore is None for row in rows)
    best, *_, marked, failed = rows
    assert (marked.method, marked.consistent) == ("matcheig", False)
    assert marked.objective > best.objective
    assert failed.error is not None
    objectives = [row.objective for row in rows[:3]]
    assert objectives == sorted(objectives, reverse=True)


def test_a_preset_that_hands_over_says_so_and_runs_once(planted, monkeypatch):
    monkeypatch.setattr(choose, "MAX_PRESET_ENTRIES", 100)
    ran = []
    run = METHODS["tracks"].run
    counted = lambda *x, **options: ran.append(1) or run(*x, **options)  # noqa: E731
    monkeypatch.setitem(METHODS, "tracks", replace(METHODS["tracks"], run=counted))
    rows = compare(planted[0], ["accurate", "tracks", "fast", "union-find"], truth=planted[1])
    assert {row.method: (row.ran, row.handed_over) for row in rows} == {
        "accurate": ("tracks", True),
        "tracks": ("tracks", False),
        "fast": ("tracks", True),
        "union-find": ("union-find", False),
    }
    assert len(ran) == 1
    assert len({row.fscore for row in rows if row.ran == "tracks"}) == 1
    assert default_methods(planted[0]) == ["tracks", "sparse-stiefel", "union-find"]
    assert default_methods(planted[0], 10) == ["accurate", "fast", "sparse-stiefel", "union-find"]


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
