"""The fuzzer finds what there is to find, makes the same cases again, and knows every reader."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

pytest.importorskip("h5py")
pytest.importorskip("pyarrow")

from fuzz import __main__ as program
from fuzz import child
from fuzz.mutate import damaged
from fuzz.targets import FORMATS, TARGETS
from stiefelsync import FormatError, io


def test_every_reader_has_a_target():
    read = {FORMATS.get(name, name) for name, of in TARGETS.items() if of.outcome is None and of.read is None}
    assert read == set(io.FORMATS)
    assert {"suite2p", "caiman", "cellreg", "masks", "unitmatch", "scores", "cells", "constraints"} <= set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_sound_files_are_accepted_and_damage_is_answered(tmp_path, name):
    target = TARGETS[name]
    seeds = target.seeds(tmp_path)
    path = tmp_path / f"case{target.suffix}"
    outcomes = []
    for number in range(len(seeds) + 60):
        target.place(path, child.case(target, seeds, number))
        outcomes.append(child.read(name, path))
    assert outcomes[: len(seeds)] == ["accepted"] * len(seeds)
    assert set(outcomes) == {"accepted", "refused"}


@pytest.mark.parametrize("name", ["npz", "csv", "pickles"])
def test_a_number_makes_the_same_case_again(tmp_path, name):
    target = TARGETS[name]
    seeds = target.seeds(tmp_path)
    assert child.case(target, seeds, 123) == child.case(target, seeds, 123) != child.case(target, seeds, 124)


def test_damage_of_nothing():
    for seed in range(200):
        damaged(b"", random.Random(seed), (), b"")


def test_untyped_errors_warnings_and_lack_of_memory_are_seen(tmp_path, monkeypatch):
    import warnings

    (tmp_path / "case.dd").write_text("gm 0 1\np 1 1 0 0\n")

    def outcome(reader) -> str:
        monkeypatch.setattr(io, "read", reader)
        return child.read("dd", tmp_path / "case.dd")

    def fails(*_: object, **__: object) -> None:
        raise KeyError("x")

    def warns(path: Path, format: str) -> object:
        warnings.warn("odd", stacklevel=1)
        return sound(path, format)

    def short(*_: object, **__: object) -> None:
        raise FormatError("too large") from MemoryError()

    sound = io.read
    assert outcome(fails) == "untyped: KeyError: 'x'"
    assert outcome(warns) == "warned: odd"
    assert outcome(short) == "memory"


CHILDREN = {
    "crash": ("import os; say(7); os.abort()", "case 7: process ended with -6"),
    "hang": ("import time; say(7); time.sleep(60)", "case 7: hang of more than 0.5 s"),
    "error": ("say(7); say(7, outcome='untyped: KeyError'); import time; time.sleep(60)", "case 7: untyped: KeyError"),
}


@pytest.mark.parametrize("kind", CHILDREN)
def test_crashes_and_hangs_are_found_and_their_files_kept(tmp_path, monkeypatch, kind):
    code, found = CHILDREN[kind]
    script = f"""
import json, sys
def say(number, **more):
    print(json.dumps(dict(number=number, **more)), flush=True)
if sys.argv[3] == '0':
    {code}
import time
for n in range(8, 40):
    say(n); say(n, outcome='refused')
    time.sleep(0.1)
"""
    monkeypatch.setattr(program, "CHILD", [sys.executable, "-c", script])
    monkeypatch.setattr(program, "HANG", 0.5)
    tally = program.fuzz("csv", 2.0, 0, tmp_path / "found")
    assert tally.bad[0] == found
    assert tally.outcomes["bad"] >= 1
    seeds = TARGETS["csv"].seeds(tmp_path)
    assert (tmp_path / "found" / "csv-7.csv").read_bytes() == child.case(TARGETS["csv"], seeds, 7)
    if kind != "error":
        assert tally.outcomes["refused"] > 0  # another child went on
