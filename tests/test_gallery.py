"""Every example of the gallery runs, draws, and prints what pages show of it."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# tests/torch runs the example with learned descriptors, which takes longest.
LEARNED = "plot_learned_descriptors.py"
GALLERY = sorted(path for path in (ROOT / "examples" / "gallery").glob("plot_*.py") if path.name != LEARNED)
# What programs printed, where a page of evidence is made of it.
SHOWN = {
    run["command"]: run["text"]
    for run in json.loads((ROOT / "docs" / "results" / "uses.json").read_text("utf-8")).values()
}


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_the_gallery_runs_draws_and_prints_what_pages_show(path, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="the gallery draws").use("Agg")
    if "sklearn" in path.read_text(encoding="utf-8"):
        pytest.importorskip("sklearn", reason="compares with scikit-learn")
    import matplotlib.pyplot as plt

    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.extend(plt.get_fignums()))
    try:
        drawn.append(runpy.run_path(str(path), run_name="__main__").get("figure"))
    finally:
        plt.close("all")
    printed = capsys.readouterr().out
    assert any(figure is not None for figure in drawn)
    name = path.relative_to(ROOT).as_posix()
    if name in SHOWN:
        told, said = (re.sub(r"\S+ s$|seconds.*", "", text, flags=re.M).split() for text in (printed, SHOWN[name]))
        assert [nearly(word) for word in told] == [nearly(word) for word in said]


def nearly(word: str) -> object:
    """Return a number to within two hundredths, which other processors and releases may change; else the word."""
    return pytest.approx(float(word), abs=0.02) if re.fullmatch(r"\d*\.\d+", word) else word


def test_the_pages_show_programs_of_the_gallery():
    assert len(SHOWN) == 3
    assert {*SHOWN} <= {path.relative_to(ROOT).as_posix() for path in GALLERY}
