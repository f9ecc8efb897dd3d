"""The house stays as it is built: short files, short functions, few modules beside the rooms of `sync`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import stiefelsync
from benchmarks.walk import trace_apart

ROOT = Path(stiefelsync.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
REASON = "# long because"


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function after its docstring."""
    first = function.body[ast.get_docstring(function) is not None :]
    return first[-1].end_lineno - first[0].lineno + 1 if first else 0


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_and_functions_are_short(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 400, "separate its second idea"
    for function in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(function) > 40:
            inside = "\n".join(lines[function.lineno - 1 : function.end_lineno])
            assert REASON in inside, f"the body of {function.name} is long: shorten it, or say why ({REASON} …)"


def test_sync_keeps_its_rooms() -> None:
    beside = [path.name for path in (ROOT / "sync").glob("*.py") if path.name != "__init__.py"]
    assert len(beside) <= 10, f"put a module into one of the rooms: {beside}"
    rooms = {path.name for path in (ROOT / "sync").iterdir() if (path / "__init__.py").exists()}
    assert rooms >= {"likelihood", "methods", "tracks"}


@pytest.mark.parametrize("room", ["matching", "stiefel", "sync/likelihood", "sync/tracks"])
def test_every_module_of_the_numerical_core_is_tested_where_tests_mirror_it(room: str) -> None:
    files = list((Path(__file__).parent / room).glob("test_*.py"))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in files)
    dotted = f"stiefelsync.{room.replace('/', '.')}"
    direct = re.findall(rf"(?:from|import) {re.escape(dotted)}\.(\w+)", tests)
    named = re.findall(rf"from {re.escape(dotted)} import ([\w, ]+)", tests)
    tested = {*direct, *(name.strip() for names in named for name in names.split(","))}
    tested |= {path.stem.removeprefix("test_") for path in files}
    modules = {path.stem for path in (ROOT / room).glob("*.py") if not path.stem.startswith("_")}  # _ by what uses them
    constants = {"sizes"}  # limits and their reasons, no code
    assert sorted(modules - tested - constants) == []


@pytest.mark.data
def test_one_match_walks_through_few_layers(data_dir: Path) -> None:
    found = trace_apart(data_dir / "sceaux" / "database.db", ROOT.parent)
    assert len(found["changes"]) <= 43, "half of what it was before the redesign: docs/architecture.md"
    assert found["runs"]["canonical"] <= 3
    assert found["runs"]["load_rows"] == 1
