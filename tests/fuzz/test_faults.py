"""The short form of ``make faults``, and that it would notice."""

from __future__ import annotations

import os
import random

import pytest

pytest.importorskip("h5py")
pytest.importorskip("pyarrow")
if not hasattr(os, "fork"):
    pytest.skip("processes are forked", allow_module_level=True)

from fuzz import faults
from fuzz.faults import DATABASES, FAULTS, PARTS, WRITERS, Setting, disk_full, killed


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path, points=30)


def bad(tally) -> dict[str, int]:
    return {what: count for what, count in tally.items() if what.startswith("bad")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", WRITERS)
def test_faults_do_no_harm(setting, name, fault):
    tally = FAULTS[fault](setting, name, 2, random.Random(0))
    assert not bad(tally)
    assert sum(tally.values()) or name in ("report", "picture")


@pytest.mark.parametrize("fault", DATABASES)
def test_databases_that_others_change(setting, fault):
    tally = DATABASES[fault](setting, 3, random.Random(0))
    assert max(tally.values()) == 3
    assert not bad(tally)
    assert tally["pages were written"] or fault != "half changed"


@pytest.mark.parametrize("fault", PARTS)
def test_runs_in_parts(setting, fault):
    tally = PARTS[fault](setting, 3, random.Random(0))
    assert max(tally.values()) == 3
    assert not bad(tally)


def test_sync_is_killed(setting):
    tally = faults.sync_killed(setting, 4, random.Random(0))
    assert tally["kills of sync"] == 4
    assert not bad(tally)


def careless(setting, path, which):
    """Write as one should not: under the final name, bit by bit."""
    content = [bytes([which]) * 1000] * 50
    with path.open("wb") as file:
        for piece in content:
            file.write(piece)
            file.flush()
            os.fsync(file.fileno())


def test_a_careless_writer_is_found_out(setting, monkeypatch):
    monkeypatch.setitem(WRITERS, "careless", ("out.bin", careless))
    tally = killed(setting, "careless", 12, random.Random(0))
    assert tally["bad: partial output"] > 0
    assert sum(bad(disk_full(setting, "careless", 3, random.Random(0))).values()) == 3


def test_a_changed_input_is_found_out(setting):
    setting.database.write_bytes(b"other")
    (setting.folder / ".left").touch()
    assert setting.wrong() == ["an input has changed", "left: .left"]
