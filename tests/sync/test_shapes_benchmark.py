"""The benchmarks of shapes and of promises count rightly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import calibration
from benchmarks.shapes import (
    Line,
    Worker,
    against,
    bars,
    cells,
    measure,
    of_matches,
    of_points,
    of_tracks,
    read,
    run,
    table,
    tenths,
)
from stiefelsync import Matchings, synchronise
from stiefelsync.datasets.shapes import SHAPES

LINE = Line("reid", 0, "auto", "accurate", fscore=0.5, expected=0.6)


def test_tenths_sum_what_lies_in_them():
    rows = tenths(np.array([0.0, 0.05, 0.1, 0.95, 1.0]), np.array([True, False, True, True, True]))
    assert len(rows) == 10
    assert rows[0] == (2, 0.05, 1.0)
    assert rows[1] == (1, 0.1, 1.0)
    assert rows[9] == (2, 1.95, 2.0)
    assert rows[5] == (0, 0.0, 0.0)


def test_tracks_are_right_by_given_matches_and_by_all_pairs():
    # One track of four points, three of which belong together, held by three matches, two of which are right; and an
    # unmatched point, and a right track of two.
    pairs = {(0, 1): [[0, 0], [1, 1]], (1, 2): [[0, 0]], (2, 3): [[0, 0]]}
    problem = Matchings.from_pairs(pairs, [2, 2, 1, 2])
    result = synchronise(problem, method="union-find")
    truth = np.array([0, 1, 0, 1, 0, 2, 3])
    rows = np.array(of_tracks(result, truth)).sum(axis=0)
    assert rows[0] == 2
    assert rows[2] == pytest.approx(2 / 3 + 1, abs=1e-4)
    assert rows[3] == pytest.approx(3 / 6 + 1)
    # Three points have two of three others with them and are the most, one has none of three; the other track is right.
    rows = np.array(of_points(result, truth)).sum(axis=0)
    assert rows[0] == 6
    assert rows[2:] == pytest.approx([3 * 2 / 3 + 0 + 2, 5], abs=1e-3)
    assert np.array(of_matches(result, truth)).sum(axis=0)[[0, 2]].tolist() == [4, 3]


def test_an_instance_is_measured_against_its_truth():
    line = measure("three detected", 0, "auto", "accurate")
    problem, truth = SHAPES["three detected"](rng=0)
    assert line.status == "done"
    assert 0.3 < line.fscore < 1
    assert line.seen_twice == (np.bincount(truth) > 1).sum()
    assert sum(row[0] for row in line.matches) == problem.n_matches
    assert measure("three detected", 0, "auto", "input").precision == pytest.approx(problem.agreeing(truth).mean())


def test_a_run_that_takes_too_long_ends_and_the_next_is_measured():
    worker = Worker(0.3, 8 * 2**30)
    late = worker(("merging", 0, "auto", "matchals"))  # dense 1,536 × 1,536 arrays, many times
    assert late.status == "over 0.3 s"
    assert late.fscore == 0
    assert worker(("row k=3", 0, "auto", "union-find")).status == "done"
    worker.close()


def test_the_best_other_is_chosen_and_compared_seed_by_seed():
    lines = [
        replace(LINE, seed=seed, method=method, fscore=f)
        for method, values in {"accurate": (0.5, 0.7), "input": (0.6, 0.4), "fast": (0.55, 0.7)}.items()
        for seed, f in enumerate(values)
    ]
    lines.append(replace(LINE, method="clear", fscore=0.9))  # on one of the seeds only
    lines += [replace(LINE, seed=s, method="spectral", status="over 60 s") for s in (0, 1)]
    shown = against(cells(lines), "accurate").splitlines()
    assert shown[-1] == "| reid | 0.600 | fast | -0.025 ± 0.025 | -0.050 |"
    assert len(shown) == 3
    assert "| reid | 0.600 ± 0.100 | 0.500 ± 0.100 | 0.625 ± 0.075 | 0.900 |" in table(
        cells(lines), lambda line: line.fscore
    )


def test_the_best_rival_answered_all_seeds_and_says_what_it_was_told():
    lines = [
        replace(LINE, seed=seed, method=method, universe=universe, fscore=f)
        for (method, universe), values in {
            ("input", "auto"): (0.4, 0.6), ("fast", "auto"): (0.9, 0.9), ("clear", "auto"): (0.99,),
            ("matcheig", "auto"): (0.6, 0.8), ("spectral", "auto"): (0.5, 0.5), ("fast", "true"): (0.9, 1.0),
            ("spectral", "true"): (0.8, 0.7),
        }.items()
        for seed, f in enumerate(values)
    ]  # fmt: skip
    shown = bars(cells([*lines, replace(LINE, seed=7, method="fast")])).splitlines()
    assert shown[0] == "| shape | input | fast | fast, d | best rival | best rival, d |"
    assert shown[2:] == ["| reid | 0.500 | 0.900 | 0.950 | 0.700 matcheig\\* | 0.750 spectral |"]


def test_a_second_run_adds_what_is_missing(tmp_path):
    import argparse

    options = argparse.Namespace(
        output=tmp_path / "lines.jsonl", methods=["input"], shapes=["row k=3", "reid"], seeds=[0], universe="auto",
        limit=60, memory=8, workers=1,
    )  # fmt: skip
    run(options)
    first = options.output.read_bytes()
    run(options)
    assert options.output.read_bytes() == first
    options.seeds = [0, 1]
    run(options)
    assert [line.key[:2] for line in read(options.output)] == [("row k=3", 0), ("reid", 0), ("row k=3", 1), ("reid", 1)]
    # What did not come to its end is not tried on other seeds.
    options.methods, options.limit, options.shapes = ["matchals"], 0.3, ["merging"]
    run(options)
    assert [line.status for line in read(options.output) if line.method == "matchals"] == ["over 0.3 s"]


def rows(*filled):
    """Ten tenths, some of them filled: {tenth: (number, promised, right)}."""
    result = [(0, 0.0, 0.0)] * 10
    for tenth, row in filled:
        result[tenth] = row
    return tuple(result)


def test_reliability_is_over_all_matches_and_its_error_over_instances():
    lines = [
        replace(LINE, shape="ring", matches=rows((9, (100, 95.0, 90.0)))),
        replace(LINE, shape="window", matches=rows((9, (300, 285.0, 300.0)), (4, (10, 4.5, 5.0)))),
        replace(LINE, shape="cells", matches=rows((9, (1000, 950.0, 0.0)))),
        replace(LINE, shape="photos", method="input"),
    ]
    found = calibration.reliability(lines, "matches", "row")
    assert found[9, :3] == pytest.approx([400, 0.95, 0.975])
    # Residuals are -5 - 100·.025 and 15 - 300·.025.
    assert found[9, 3] == pytest.approx(np.sqrt(2 * (7.5**2 + 7.5**2)) / 400)
    assert found[4, :3] == pytest.approx([10, 0.45, 0.5])
    assert np.isnan(found[4, 3])
    assert np.isnan(found[0, 1])
    assert np.isnan(calibration.reliability(lines, "matches", "both sides")).all()
    shown = calibration.reliability_table(lines, "matches", 0.02)
    assert "| row | 400 | 0.950 | 0.975 | +0.025 ± 0.037 | **no** |" in shown
    assert "| row | 10 | 0.450 | 0.500 |" in shown
    assert "| shared | 1000 | 0.950 | 0.000 | -0.950 |  |" in shown


def test_promises_are_judged_by_number_of_objects_and_by_shape():
    lines = [
        replace(LINE, shape=f"row k={k}", seed=seed, fscore=0.5, expected=0.5 + gap)
        for k, gaps in {3: (0.1, 0.0), 10: (-0.02, 0.0)}.items()
        for seed, gap in enumerate(gaps)
    ]
    shown = calibration.objects_table(lines, 0.03).splitlines()
    assert shown[2:] == [
        "| 3 | 0.050 ± 0.050 | – |",
        "| 10 | -0.010 ± 0.010 | – |",
        "| **mean over k** | +0.020 yes | – |",
    ]
    shapes = calibration.shapes_table([*lines, replace(LINE, shape="reid", expected=0.59)], 0.03).splitlines()
    assert shapes[2:] == [
        "| row | row k=3 | 0.550 | 0.500 | 0.050 ± 0.050 | **no** |",
        "| row | row k=10 | 0.490 | 0.500 | -0.010 ± 0.010 | yes |",
        "| shared | reid | 0.590 | 0.500 | 0.090 | yes |",
    ]


def test_every_shape_has_a_kind_and_the_names_of_kinds_exist():
    assert set(SHAPES) >= calibration.OBSERVATIONS
    assert {calibration.kind(name) for name in SHAPES} == set(calibration.KINDS)


def test_the_figure_is_drawn(tmp_path):
    lines = [
        replace(LINE, shape="row k=3", matches=rows((9, (200, 190.0, 180.0))), tracks=rows((8, (150, 130.0, 120.0)))),
        replace(LINE, shape="detected k=10", matches=rows((5, (200, 110.0, 100.0))), tracks=rows()),
    ]
    calibration.draw(lines, "accurate", tmp_path / "promises.png", 0.03)
    assert (tmp_path / "promises.png").read_bytes().startswith(b"\x89PNG")
