"""The quick form of every experiment, on the real house data: what its records say, its figures and its page."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

from stiefelsync.cli import app
from stiefelsync.experiments import EXPERIMENTS, Finding, Record, Settings, Store, plan, reproduce
from stiefelsync.experiments.house import HOUSE_MATCHALS, k_of
from stiefelsync.experiments.index import Section, page
from stiefelsync.experiments.lines import (
    ACCURATE,
    FAST,
    MATCHEIG,
    NMF,
    OURS,
    POWER4,
    SPECTRAL,
    UNSYNCHRONISED,
    Line,
    fscore,
    means,
    objective,
)  # fmt: skip

pytestmark = pytest.mark.data

QUICK = Settings(quick=True)


@pytest.fixture(scope="module")
def run(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Finding]]:
    """Everything, quickly: the folder and the findings."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # parallel test processes make it once
    output, done = shared / "quick", shared / "quick.pickle"
    with (shared / "quick.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            done.write_bytes(pickle.dumps(reproduce(plan("all", output, QUICK))))
    return output, pickle.loads(done.read_bytes())


@pytest.fixture
def records(run: tuple[Path, list[Finding]]) -> Callable[[str], list[Record]]:
    store = Store(run[0] / "records.jsonl")
    return lambda name: store.select(EXPERIMENTS[name].tasks(QUICK))


def test_every_instance_is_recorded_with_sound_figures(records: Callable[[str], list[Record]]) -> None:
    for name, experiment in EXPERIMENTS.items():
        found = records(name)
        assert len(found) == len(experiment.tasks(QUICK))
        for record in found:
            assert record.cpu_seconds is not None
            if record.task.action == "synchronise":
                assert 0 <= record.result["fscore"] <= 1
            if record.task.problem["data"] == "house" and "fscore" in record.result:
                assert 0 < record.result.get("objective", 20) <= 30  # m·k/k² = 30 if nothing contradicted


def test_house_methods_come_in_the_known_order(records: Callable[[str], list[Record]]) -> None:
    """At k = 20, as the authors' program has it (±.015): MatchALS < input < Spectral < NmfSync < ours."""
    house = records("house")

    def at(line: Line) -> float:
        return means(house, line, fscore, k_of)[20]

    known = {UNSYNCHRONISED: 0.840, HOUSE_MATCHALS: 0.819, SPECTRAL: 0.894, NMF: 0.908, OURS: 0.921, MATCHEIG: 0.934}
    for line, value in known.items():
        assert at(line) == pytest.approx(value, abs=0.015), line.label
    assert at(HOUSE_MATCHALS) < at(UNSYNCHRONISED) < at(SPECTRAL) < at(NMF) < at(OURS) < at(ACCURATE)
    for k, value in means(house, ACCURATE, objective, k_of).items():
        assert value >= means(house, OURS, objective, k_of)[k]


def test_deterministic_methods_do_not_depend_on_the_shuffle(records: Callable[[str], list[Record]]) -> None:
    found = [fscore(record) for record in records("house") if SPECTRAL.owns(record) and k_of(record) == 20]
    assert len(found) == 3
    assert np.ptp(found) < 1e-6


def test_synthetic_noise_is_what_it_says(records: Callable[[str], list[Record]]) -> None:
    found = [record for record in records("synthetic") if record.task.problem["k"] == 12]

    def by_sigma(line: Line) -> dict[float, float]:
        sweep = [r for r in found if r.task.problem["rho"] == 0.6 and r.task.problem["d"] == 25]
        return means(sweep, line, fscore, lambda record: record.task.problem["sigma"])

    before, after = by_sigma(UNSYNCHRONISED), by_sigma(ACCURATE)
    assert before[0.0] == after[0.0] == by_sigma(FAST)[0.0] == 1.0
    assert before[0.0] > before[0.3] > before[0.6]
    assert all(after[sigma] >= before[sigma] for sigma in before)
    assert by_sigma(OURS)[0.0] < 0.95  # the published method stops before it has turned, numerics trap


def test_nonnegativity_decides_between_the_powers(records: Callable[[str], list[Record]]) -> None:
    found = [record for record in records("powers") if "U" not in record.task.keep]
    three, four = means(found, OURS, fscore, k_of), means(found, POWER4, fscore, k_of)
    assert all(three[k] > four[k] + 0.05 for k in three)


@pytest.mark.parametrize(
    ("experiment", "claim"),
    [
        ("house", "clearly outperforms the Spectral"),
        ("house", "sparser and less negative"),
        ("powers", "(mostly) nonnegative solution"),
        ("powers", "p = 4) obtains a sparse solution with both signs"),
        ("sparsity", "significantly sparser"),
        ("convergence", "Lemma 3"),
        ("convergence", "globally optimal"),
        ("convergence", "stops too early"),
    ],
)
def test_claims_that_must_hold(run: tuple[Path, list[Finding]], experiment: str, claim: str) -> None:
    found = [f.verdict for f in run[1] if f.experiment == experiment and claim in f.verdict.claim]
    assert [verdict.finding for verdict in found] == ["holds"]


def test_every_experiment_has_figures_and_verdicts_on_the_page(run: tuple[Path, list[Finding]]) -> None:
    output, findings = run
    text = (output / "index.html").read_text(encoding="utf-8")
    assert {finding.experiment for finding in findings} == set(EXPERIMENTS)
    assert len(findings) >= 30
    assert "Made by <code>stiefelsync reproduce all --quick</code>:" in text
    for name in EXPERIMENTS:
        assert f"<code>stiefelsync reproduce {name} --quick</code>" in text
        assert f'src="{name}.png"' in text
    pictures = sorted(output.glob("*.png"))
    assert len(pictures) == len(EXPERIMENTS) + 2
    for picture in pictures:
        assert imread(picture).shape[1] >= 1000, picture.name
        assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_the_page_of_one_experiment_names_its_command() -> None:
    text = page([Section(EXPERIMENTS["sparsity"], (), 6)], QUICK, {})
    assert "Made by <code>stiefelsync reproduce sparsity --quick</code>:" in text
    both = page([Section(EXPERIMENTS[name], (), 6) for name in ("house", "sparsity")], Settings(), {})
    made_by = "Made by <code>stiefelsync reproduce house</code>, <code>stiefelsync reproduce sparsity</code>:"
    assert made_by in both


def test_match_lines_lie_over_the_photographs(run: tuple[Path, list[Finding]], tmp_path: Path) -> None:
    shutil.copy(run[0] / "records.jsonl", tmp_path)
    reproduce(plan("house-matches", tmp_path, Settings(quick=True, photographs=False)))
    dark = [(imread(folder / "house-matches.png")[..., :3].mean(axis=2) < 0.5).mean() for folder in (run[0], tmp_path)]
    assert dark[0] > 0.4  # the photographs' background
    assert dark[1] < 0.2


def test_the_command_line_tells_the_findings_without_running_again(run: tuple[Path, list[Finding]]) -> None:
    output, findings = run
    before = (output / "records.jsonl").read_bytes()
    command = ["reproduce", "sparsity", "--quick", "--output", str(output), "--json"]
    refused = CliRunner().invoke(app, command)
    assert refused.exit_code == 2
    assert "index.html is there already" in refused.stderr
    result = CliRunner().invoke(app, [*command, "--force"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [row["claim"] for row in told["findings"]] == [
        f.verdict.claim for f in findings if f.experiment == "sparsity"
    ]
    assert (output / "records.jsonl").read_bytes() == before
    assert 'id="house"' in (output / "index.html").read_text(encoding="utf-8")


def test_unknown_experiments_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "hose", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert "unknown experiment 'hose'; did you mean 'house'?" in result.stderr
