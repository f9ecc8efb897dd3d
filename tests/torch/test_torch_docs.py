"""The page on the layer and the example run as they stand."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason='PyTorch is not installed; run: pip install "stiefelsync[torch]"')
ROOT = Path(__file__).parents[2]


def test_the_page_runs():
    text = (ROOT / "docs" / "method" / "torch.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    torch.manual_seed(0)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["P"].shape == (6, 10, 12)
    assert (names["labels"] >= 0).sum(axis=1).tolist() == names["sizes"]
    first = next(names["network"].parameters())
    assert first.grad.isfinite().all()
    assert first.grad.abs().max() > 0


@pytest.mark.data
def test_the_example_learns(data_dir, monkeypatch):
    pytest.importorskip("matplotlib", reason="the example draws").use("Agg")
    monkeypatch.setenv("STIEFELSYNC_DATA", str(data_dir))
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    curve = runpy.run_path(str(ROOT / "examples" / "gallery" / "plot_learned_descriptors.py"))["curve"]
    plt.close("all")
    before, after = curve[0], curve[-1]
    assert after[0] > before[0] + 0.1
    assert after[1] > before[1] + 0.1
