"""The presets `fast` and `accurate` as a user meets them."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stiefelsync import datasets, score, synchronise
from stiefelsync.matching.graph import numbered
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import objective
from stiefelsync.stiefel import product
from stiefelsync.sync.likelihood import large_objects
from stiefelsync.sync.likelihood.matches import MatchTable
from stiefelsync.sync.likelihood.sampling import expected_fscore
from stiefelsync.sync.methods import accurate

PRESETS = ["fast", "accurate"]
# Best objectives known on the house sequence, divided by k² and rounded to three digits.
HOUSE_OBJECTIVE = {20: 25.590, 40: 25.913, 111: 26.042}


@pytest.mark.parametrize("method", PRESETS)
@pytest.mark.parametrize(("d", "k", "observed"), [(25, 30, 0.6), (12, 8, 1.0), (20, 5, 0.9), (15, 60, 1.0)])
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_noise_free_input_is_solved_exactly_whatever_the_universe(method, d, k, observed, factor):
    matchings, truth = datasets.synthetic(d, k, observed, 0.0, rng=0)
    assert score(synchronise(matchings, round(factor * d), method=method).labels, truth).fscore == 1.0


@pytest.mark.parametrize("noise", ["row", "edge", "mix"])
def test_accurate_survives_half_of_the_matches_being_wrong(noise):
    matchings, truth = datasets.synthetic(25, 30, 0.6, 0.5, noise=noise, rng=1)
    assert score(synchronise(matchings, 25).labels, truth).fscore > 0.99
    assert score(synchronise(matchings, 38).labels, truth).fscore > 0.99


@pytest.mark.parametrize("seed", range(4))
def test_few_objects_are_never_worse_than_their_input(seed):
    matchings, truth = datasets.synthetic(25, 5, 0.6, 0.5, rng=seed)
    assert score(synchronise(matchings, 25).labels, truth).fscore >= score(matchings, truth).fscore


def test_at_ninety_per_cent_noise_accurate_beats_its_input():
    matchings, truth = datasets.synthetic(25, 30, 0.6, 0.9, rng=0)
    assert score(synchronise(matchings, 25).labels, truth).fscore > 2 * score(matchings, truth).fscore


@pytest.mark.parametrize("method", PRESETS)
def test_order_of_objects_and_points_does_not_matter(method):
    matchings, truth = datasets.synthetic(15, 12, 0.7, 0.3, rng=5)
    rng = np.random.default_rng(0)
    order = rng.permutation(12)
    turned = matchings[order]
    rows = np.concatenate([np.arange(*matchings.offsets[[o, o + 1]]) for o in order])
    place = np.concatenate([rng.permutation(n) for n in turned.sizes])
    shuffled = Matchings.from_arrays(turned.pair_objects[turned.match_pairs], place[turned.endpoints], turned.sizes)
    moved = np.empty_like(truth)
    moved[turned.offsets[turned.point_objects] + place] = truth[rows]
    assert score(synchronise(matchings, 15, method=method).labels, truth).fscore == 1.0
    assert score(synchronise(shuffled, 15, method=method).labels, moved).fscore == 1.0


@pytest.mark.parametrize("method", PRESETS)
def test_answers_are_consistent_and_repeatable(method):
    matchings, _ = datasets.synthetic(12, 8, 0.6, 0.6, noise="mix", rng=2)
    first, second = (synchronise(matchings, 14, method=method, rng=3).labels for _ in range(2))
    assert np.array_equal(first, second)
    assert first.max() < 14
    for a, b in zip(matchings.offsets[:-1], matchings.offsets[1:], strict=True):
        used = first[a:b][first[a:b] >= 0]
        assert len(np.unique(used)) == len(used)


@pytest.mark.parametrize("method", PRESETS)
def test_odd_shapes(method):
    # An empty object, a point without matches, objects never compared, and a universe larger than all points.
    pairs = {(0, 2): [[0, 1], [1, 0]], (2, 3): [[0, 0], [1, 1]], (4, 5): [[0, 0]]}
    matchings = Matchings.from_pairs(pairs, [3, 0, 2, 2, 1, 1])
    labels = synchronise(matchings, 20, method=method).labels
    assert labels[0] == labels[4] == labels[6]
    assert labels[1] == labels[3] == labels[5]
    assert labels[2] == -1
    assert labels[7] == labels[8] >= 0
    assert len({labels[0], labels[1]}) == 2


@pytest.mark.parametrize("method", PRESETS)
def test_weights_break_the_tie(method):
    # Two cliques of three objects contradict each other in one pair; the heavier matches win.
    pairs = {(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0], [1, 1]], (0, 2): [[0, 1], [1, 0]]}
    light = {key: [1.0, 1.0] for key in pairs}
    matchings = Matchings.from_pairs(pairs, [2, 2, 2], weights={**light, (0, 2): [9.0, 9.0]})
    labels = synchronise(matchings, 2, method=method).labels
    assert labels[0] == labels[5]


@pytest.mark.parametrize("method", PRESETS)
def test_labels_do_not_depend_on_threads(method, monkeypatch):
    matchings, _ = datasets.synthetic(20, 60, 1.0, 0.7, rng=0)
    labels = {}
    for threads in (1, 2, 3):
        with ThreadPoolExecutor(threads) as pool, monkeypatch.context() as patch:
            patch.setattr(product, "_pool", lambda pool=pool: pool)
            patch.setattr(product, "workers", lambda threads=threads: threads)
            patch.setattr(product, "_MIN_WORK_OF_THREADS", 0)
            labels[threads] = synchronise(matchings, 20, method=method).labels
    assert np.array_equal(labels[1], labels[2])
    assert np.array_equal(labels[1], labels[3])


def test_restarts_never_lower_the_likelihood():
    matchings, _ = datasets.synthetic(20, 8, 0.6, 0.6, rng=4)
    one, five = (synchronise(matchings, 20, n_init=n) for n in (1, 5))
    assert five.outcome.details.log_likelihood >= one.outcome.details.log_likelihood
    assert "restarts" in five.timings


def test_a_callback_can_stop_the_search():
    matchings, _ = datasets.synthetic(15, 10, 0.6, 0.6, rng=0)
    seen = []

    def stop(progress):
        seen.append(progress.stage)
        return True

    result = synchronise(matchings, 15, callback=stop)
    assert seen == ["reweighting"]
    assert "reweighting" not in result.timings
    assert result.status == "stopped by the callback"
    assert (result.labels >= 0).any()


def test_an_interrupt_returns_the_likeliest_labels_so_far():
    matchings, _ = datasets.synthetic(15, 10, 0.6, 0.6, rng=0)

    def interrupt(progress):
        if progress.stage == "reweighting":
            raise KeyboardInterrupt

    result = synchronise(matchings, 15, callback=interrupt)
    assert result.status == "interrupted; this is the best answer so far"
    assert [start.name for start in result.outcome.details.starts] == ["spectral"]


def test_an_interrupt_within_a_later_start_loses_no_likelier_labels(monkeypatch):
    matchings, _ = datasets.shapes.ring(24, 12, reach=3, rng=0)
    exchange, asked = accurate.exchange, []

    def interrupted(*arguments, **options):
        asked.append(None)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return exchange(*arguments, **options)

    monkeypatch.setattr(accurate, "exchange", interrupted)
    details = synchronise(matchings).outcome.details
    assert [start.name for start in details.starts] == ["spectral"]
    assert details.log_likelihood == details.starts[0].log_likelihood


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_interrupt_on_the_way_of_large_objects_returns_the_likeliest_labels_so_far(monkeypatch, after):
    matchings, _ = datasets.shapes.large(250, rng=0)
    seen = []

    def interrupted(*arguments, **options):
        for found in large_objects.refinements(*arguments, **options):
            if len(seen) == after:
                raise KeyboardInterrupt
            seen.append(found)
            yield found

    monkeypatch.setattr(accurate, "refinements", interrupted)
    if not after:  # there is no answer yet
        with pytest.raises(KeyboardInterrupt):
            synchronise(matchings)
        return
    result = synchronise(matchings)
    details = result.outcome.details
    assert (result.status, details.route) == ("interrupted; this is the best answer so far", "sparse")
    assert [start.name for start in details.starts] == ["tracks"]
    assert details.log_likelihood == max(value for _, value in seen)
    held = seen[-1][0] >= 0
    assert_array_equal(result.labels >= 0, held)
    assert_array_equal(numbered(result.labels[held]), numbered(seen[-1][0][held]))


def test_an_interrupt_while_samples_are_drawn_returns_the_likeliest_labels(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(accurate, "sample_posterior", interrupted)
    result = synchronise(datasets.synthetic(12, 5, 0.8, 0.3, rng=0)[0], 12)
    assert result.status == "interrupted; this is the best answer so far"
    assert (result.labels >= 0).any()


def test_the_fscore_to_expect_is_that_of_the_labels_returned_less_what_choosing_them_adds(monkeypatch):
    seen = {}

    def recorded(name):
        function = getattr(accurate, name)

        def run(*args, **options):
            seen[name] = function(*args, **options)
            return seen[name]

        monkeypatch.setattr(accurate, name, run)

    recorded("sample_posterior")
    recorded("optimism")
    for seed in range(6):
        matchings, _ = datasets.synthetic(6, 4, 0.8, 0.5, rng=seed)
        result = synchronise(matchings, 6)
        table = MatchTable.of(matchings, 6)
        told = expected_fscore(seen["sample_posterior"].mean(axis=0), table, result.labels) - seen["optimism"]
        assert result.outcome.details.expected_fscore == pytest.approx(told)


def test_the_default_leaves_a_point_alone_that_nothing_matches():
    # A universe of two, and object 5 has a second point that is neither: to fill the universe it would get label 1.
    truth = np.tile([0, 1], 12)
    truth[11] = 2
    labels = synchronise(Matchings.from_labels(truth, [2] * 12), 2, method="accurate").labels
    assert np.flatnonzero(labels < 0).tolist() == [11]
    assert score(labels, truth).fscore == 1.0


def test_starts_fit_the_shape_and_the_likeliest_wins():
    matchings, truth = datasets.shapes.ring(24, 12, reach=3, rng=0)
    result = synchronise(matchings, start=truth)
    starts = {start.name: start.log_likelihood for start in result.outcome.details.starts}
    assert set(starts) == {"spectral", "given", "tracks", "groups"}
    assert result.outcome.details.log_likelihood >= max(starts.values())


@pytest.mark.data
@pytest.mark.parametrize("k", list(HOUSE_OBJECTIVE))
def test_house_reaches_the_best_known_objective(data_dir, k):
    matchings, truth = datasets.house(k, rng=1, path=data_dir / "house")
    result = synchronise(matchings, 30)
    assert round(objective(result.labels, matchings) / k**2 + 1e-9, 3) >= HOUSE_OBJECTIVE[k]
    assert score(result.labels, truth).fscore > (0.95 if k == 20 else 0.995)


def test_fast_needs_three_arrays_of_points_by_labels_in_single_precision():
    # A large universe and few objects, so that W and the matches, twelve bytes an entry, weigh little.
    d, k = 220, 30
    problem, truth = datasets.synthetic(d, k, 1.0, 0.3, rng=0)
    W = problem.to_matrix()
    synchronise(problem, d, method="fast")  # whatever is made once
    tracemalloc.start()
    try:
        result = synchronise(problem, d, method="fast")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.outcome.details.route == "dense"
    assert score(result.labels, truth).fscore == 1.0
    stored = W.data.nbytes + W.indices.nbytes
    assert peak < stored + 3 * 4 * problem.n_points * d
