"""A way to run the program inside the test process, and small problems to run it on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stiefelsync import datasets, io
from stiefelsync.cli import app

Run = Callable[..., Any]  # typer.testing names no class for its results


@pytest.fixture
def run() -> Run:
    """Run ``stiefelsync`` with the given arguments; expect an exit code."""

    def call(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr, result.exception)
        if code == 2:
            assert "Traceback" not in result.stderr
            assert result.stdout == ""
        return result

    return call


@pytest.fixture
def document(run: Run) -> Callable[..., Any]:
    """Run with ``--json`` and return the one document on stdout."""
    return lambda *arguments, code=0: json.loads(run(*arguments, "--json", code=code).stdout)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """A noisy problem of 8 objects with its truth."""
    made, truth = datasets.synthetic(12, 8, 0.8, 0.2, rng=3)
    path = tmp_path / "problem.npz"
    io.write(made, path, truth=truth)
    return path
