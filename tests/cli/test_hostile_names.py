"""Names that a stranger chose: shown, never obeyed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from stiefelsync import Matchings, io, report
from stiefelsync.errors import visible
from tests.io.colmap_schemas import build

CLEARS, TITLES, C1, TURNS = "\x1b[2Ja", "\x1b]0;pwn\x07b", "\x9b31mc", "\u202egpj.d"
NAMES = [CLEARS, TITLES, C1, TURNS]
OBEYED = ("\x1b", "\x07", "\x9b", "\u202e")


def harmless(text: str) -> bool:
    return not any(letter in text for letter in OBEYED)


@pytest.fixture
def problem() -> Matchings:
    at = np.arange(16.0).reshape(8, 2)
    return Matchings.from_labels([0, 1, 1, 0, 0, 1, 0, 1], [2] * 4, names=NAMES, coordinates=at)


def test_what_is_visible():
    assert visible("\x1b[2J\x00\x7f\x9b\u2028\ud800") == r"\x1b[2J\x00\x7f\x9b\u2028\ud800"
    assert visible("a/b c–é.jpg") == "a/b c–é.jpg"


@pytest.mark.parametrize("json_", [False, True])
def test_no_verb_sends_names_to_the_terminal(run, problem, tmp_path, json_):
    path = tmp_path / f"in{CLEARS}.csv"
    io.write(problem, path, plain=True)
    flags = ["--json"] if json_ else []
    for command in (
        ["inspect", path],
        ["sync", path, "-o", tmp_path / f"out{TITLES}.csv"],
        ["convert", path, tmp_path / f"out{C1}.npz"],
        ["compare", path],
    ):
        done = run(*command, *flags)
        assert harmless(done.stdout + done.stderr), command
        if json_ and command[0] in ("inspect", "sync"):
            assert json.loads(done.stdout)["input"] == str(path)


def test_errors_do_not_either(run, tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    (folder / f"a__b{TITLES}.csv").write_text("junk\n")
    (tmp_path / "t.csv").write_text(f"object_a,point_a,object_b,point_b,{CLEARS}\na,0,b,0,1\n")
    np.savez(tmp_path / "n.npz", **{CLEARS: np.zeros(3)})
    (tmp_path / f"e{C1}.csv").write_text("")
    for path in (folder, tmp_path / "t.csv", tmp_path / "n.npz", tmp_path / f"e{C1}.csv", tmp_path / f"none{TURNS}"):
        done = run("inspect", path, code=2)
        assert harmless(done.stdout + done.stderr), path


def test_a_name_does_not_make_a_line_of_its_own(run, tmp_path):
    path = tmp_path / "x\nerror: all is lost.csv"
    path.write_text("")
    assert len(run("inspect", path, code=2).stderr.splitlines()) == 1


def test_advice_quotes_names(run, problem, tmp_path):
    hostile = 't"; DROP TABLE images; --\x1b[2J'
    build(tmp_path / "a.db", problem, problem)
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        quoted = '"' + hostile.replace('"', '""') + '"'
        database.execute(f"CREATE TRIGGER {quoted} AFTER UPDATE ON matches BEGIN SELECT 1; END")
        database.commit()
    done = run("sync", tmp_path / "a.db", "-o", tmp_path / "b.db", code=2)
    assert harmless(done.stderr)
    assert r'DROP TRIGGER "t""; DROP TABLE images; --\x1b[2J";' in done.stderr


def test_pages_show_them(problem, tmp_path):
    page = report.write_report(tmp_path / "page.html", problem, problem, title=f"all {TURNS}")
    text = page.read_text(encoding="utf-8")
    assert harmless(text)
    assert r"\u202egpj.d" in text
    assert r"\x1b[2Ja" in text
