"""What names a version or a requirement in several places names the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import stiefelsync

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_everywhere():
    version = stiefelsync.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dated = re.findall(
        r"^## \[?(\d+\.\d+\.\d+)\]? – (\d{4}-\d{2}-\d{2})$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert dated[0][0] == version


def test_conda_asks_for_what_pip_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    asked = {
        line.strip("- ").replace(" ", "")
        for line in recipe.partition("  run:\n")[2].partition("  run_")[0].splitlines()
    }
    assert asked == {*project["dependencies"], f"python{project['requires-python']}"}
