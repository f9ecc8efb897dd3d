"""Every room of the numerical core is tested where the tests mirror it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stiefelsync

ROOT = Path(stiefelsync.__file__).parent


@pytest.mark.parametrize("room", ["matching", "positions", "stiefel", "sync/likelihood", "sync/tracks"])
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
