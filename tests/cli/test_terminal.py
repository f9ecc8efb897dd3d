"""What the program says, and where."""

from __future__ import annotations

import importlib
import io
import json
import math
import sys

import numpy as np
import pytest

from stiefelsync import ConvergenceWarning, synchronise
from stiefelsync.cli import terminal
from stiefelsync.sync import Progress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_bar_shows_stage_objective_sparsity_and_time_left(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress("synchronising") as update:
        for step in range(5):
            update(Progress("solving", step, 10, objective=1234.5, sparsity=0.875))
    shown = stream.getvalue()
    for part in ("synchronising · solving", "4/10", "objective 1,234.5", "sparsity 87.5 %", ":"):
        assert part in shown


def test_no_bar_where_no_one_watches(capsys):
    with terminal.progress("synchronising") as update:
        assert update is None
    with terminal.track("comparing", 3) as advance:
        advance(1, "fast")
    assert capsys.readouterr() == ("", "")


def test_no_bar_for_those_who_want_quiet(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.progress("synchronising", quiet=True) as update:
        assert update is None
    assert stream.getvalue() == ""


def test_json_holds_only_json(capsys):
    terminal.show_json({"a": np.float64(1.5), "b": np.arange(2), "c": math.nan, "d": (np.int32(3), None), "e": "[x]"})
    assert json.loads(capsys.readouterr().out) == {"a": 1.5, "b": [0, 1], "c": None, "d": [3, None], "e": "[x]"}


def test_names_with_brackets_are_shown_as_they_are(capsys):
    terminal.show(terminal.facts("[bold]title", {"[red]name": "[link]value"}), "[i]line")
    terminal.show(terminal.table("t", ["c"], [["[bold]cell"]]))
    terminal.complain("error", "[red]path")
    out, err = capsys.readouterr()
    for text in ("[bold]title", "[red]name", "[link]value", "[i]line", "[bold]cell"):
        assert text in out
    assert err == "error: [red]path\n"


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (math.nan, "–"), (1234, "1,234"), (0.5, "0.500")])
def test_numbers(value, text):
    assert terminal.number(value) == text


def test_long_messages_are_not_broken(capsys):
    terminal.complain("error", "word " * 100)
    assert capsys.readouterr().err.count("\n") == 1


def test_warnings_become_one_line_on_stderr(run, problem, tmp_path, monkeypatch):
    import warnings

    original = synchronise

    def warns(*arguments: object, **options: object) -> object:
        warnings.warn("no separated eigenspace", ConvergenceWarning, stacklevel=2)
        return original(*arguments, **options)

    monkeypatch.setattr(importlib.import_module("stiefelsync.cleaning"), "synchronise", warns)
    result = run("sync", problem, "-o", tmp_path / "out.npz", "--method", "union-find")
    assert result.stderr == "warning: no separated eigenspace\n"


def test_the_program_is_named_so_that_it_runs_again(monkeypatch):
    monkeypatch.setattr("sys.argv", [".venv/bin/stiefelsync", "demo"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert terminal.program() == ".venv/bin/stiefelsync"
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert terminal.program() == "stiefelsync"
