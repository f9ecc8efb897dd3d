"""The committed run: its page says what its records say, and its figures are small and free of third-party pictures."""

from __future__ import annotations

import gzip
from html import escape
from pathlib import Path

import pytest
from matplotlib.image import imread

from stiefelsync.experiments import EXPERIMENTS, Settings, Store

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
FULL = Settings(photographs=False)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("committed") / "records.jsonl"
    path.write_bytes(gzip.decompress((FOLDER / "records.jsonl.gz").read_bytes()))
    return Store(path)


@pytest.mark.data
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_page_shows_the_verdicts_of_the_records(name: str, store: Store, data_dir: Path) -> None:
    experiment = EXPERIMENTS[name]
    tasks = experiment.tasks(FULL)
    records = store.select(tasks)
    assert len(records) == len(tasks)
    page = (FOLDER / "index.html").read_text(encoding="utf-8")
    section = page.partition(f'<section id="{name}">')[2].partition("</section>")[0]
    verdicts = experiment.evaluate(records)
    assert verdicts
    for verdict in verdicts:
        row = section.partition(f"<tr><td>{escape(verdict.claim)}</td>")[2].partition("</tr>")[0]
        assert f">{verdict.finding}</span>" in row, verdict.claim
        assert escape(verdict.evidence) in row, verdict.claim


@pytest.mark.parametrize("name", [name for experiment in EXPERIMENTS.values() for name in experiment.figures])
def test_figures_are_small(name: str) -> None:
    assert (FOLDER / f"{name}.png").stat().st_size < 150_000
    assert (FOLDER / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_committed_match_lines_hold_no_photographs() -> None:
    dark = (imread(FOLDER / "house-matches.png")[..., :3].mean(axis=2) < 0.5).mean()
    assert dark < 0.2
    assert b"/Subtype /Image" not in (FOLDER / "house-matches.pdf").read_bytes()
