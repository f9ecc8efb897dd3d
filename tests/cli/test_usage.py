"""What is shown of usage, what is answered to misuse, and ``-`` for standard input."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

import pytest
import typer.main
from typer.testing import CliRunner

from stiefelsync import io
from stiefelsync.cli import app

MISUSED = {
    "verb": (["inspct", "a", "-o", "b"], "no such command 'inspct'. Did you mean 'inspect'?"),
    "unknown verb": (["frobnicate"], "no such command 'frobnicate' (see stiefelsync --help)"),
    "option": (["inspect", "a", "--formt", "csv"], "unknown option --formt; did you mean --format?"),
    "like nothing": (["inspect", "a", "--zzz"], "unknown option --zzz (see stiefelsync inspect --help)"),
    "of the program": (["--vresion"], "unknown option --vresion; did you mean --version?"),
    "argument left out": (["convert", "a"], "missing argument 'OUTPUT' (see stiefelsync convert --help)"),
    "method": (["methods", "accuratee"], "unknown method 'accuratee'; did you mean 'accurate'? Known: "),
    "experiment": (["reproduce", "hause"], "unknown experiment 'hause'; did you mean 'house'? Known: "),
}


@pytest.mark.parametrize("name", MISUSED)
def test_misuse_is_answered_by_one_sentence(name):
    arguments, message = MISUSED[name]
    result = CliRunner().invoke(app, arguments, prog_name="stiefelsync")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", sorted(typer.main.get_command(app).commands))
def test_help_shows_flags_without_a_type(run, verb):
    told = run(verb, "--help").stdout
    assert "<bool>" not in told
    assert "BOOLEAN" not in told
    assert "{" not in told.partition("Usage:")[2].partition("\n")[0]
    assert "--help" in told


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_standard_input(problem, tmp_path, monkeypatch, ending):
    (kept := tmp_path / "kept").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    source, out = tmp_path / f"matches.{ending}", tmp_path / "out.npz"
    io.convert(problem, source)
    given = {"input": source.read_bytes(), "catch_exceptions": False}
    told = json.loads(CliRunner().invoke(app, ["inspect", "-", "--json"], **given).stdout)
    assert told["input"] == "standard input"
    assert told["matches"] == io.read(source).n_matches
    table = CliRunner().invoke(app, ["sync", "-", "-o", str(out), "--method", "union-find"], **given).stdout
    assert table.startswith("standard input → ")
    assert io.read(out).n_objects == io.read(source).n_objects
    assert not [*kept.iterdir()]


def test_standard_input_that_is_nothing():
    for given, message in ((b"", "is empty"), (b"hello", "is in none of the known formats")):
        result = CliRunner().invoke(app, ["inspect", "-"], input=given)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"error: standard input {message}")


def test_names_are_completed():
    verb = typer.main.get_command(app).commands["sync"]
    offered = {parameter.name: parameter for parameter in verb.params}
    ctx = verb.make_context("sync", ["in.npz", "-o", "out.npz"])
    for name, start, expected in (("method", "acc", "accurate"), ("format", "col", "colmap"), ("to", "op", "opensfm")):
        assert expected in [item.value for item in offered[name].shell_complete(ctx, start)]


def test_the_time_is_told(run, problem, tmp_path):
    for arguments in (["inspect", problem], ["compare", problem, "--methods", "union-find"]):
        assert "s in all" in run(*arguments).stdout


def test_misuse_beside_standard_input_is_answered_by_one_sentence():
    command = [sys.executable, "-c", "from stiefelsync._start import main; main()", "sync", "-"]
    done = subprocess.run(command, input="a,0,b,0\n", capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
