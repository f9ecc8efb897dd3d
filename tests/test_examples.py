"""Every example runs as it stands."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stiefelsync import METHODS

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples():
    assert "quickstart.py" in {path.name for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_prints(path, capsys):
    if path.stem == "scores_to_tracks":
        pytest.importorskip("joblib")
    known = dict(METHODS)
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:  # an example may register a method, which other tests do not expect
        METHODS.clear()
        METHODS.update(known)
    assert capsys.readouterr().out.strip()


def test_the_example_for_researchers_is_typed():
    pytest.importorskip("mypy")
    root = Path(__file__).parents[1]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        "pyproject.toml",
        "examples/scores_to_tracks.py",
    ]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout


def test_the_readme_says_what_its_lines_give(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(code, names)
    result = names["result"]
    assert " ".join(map(str, result.labels)) in code.replace("  ", " ")
    assert [len(track) for track in result.tracks()] == [4, 4]
    wrong = (names["problem"].pair_objects[names["problem"].match_pairs] == [0, 2]).all(axis=1)
    assert (result.kept == ~wrong).all()
    assert result.confidence[wrong].max() < result.confidence[~wrong].min()
    assert "10 kept, 2 removed, 2 added" in capsys.readouterr().out
