"""Records survive whatever a killed run leaves behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stiefelsync.errors import FormatError, InputError
from stiefelsync.experiments.records import Store
from stiefelsync.experiments.tasks import Task

TASKS = [Task({"data": "toy"}, "input", seed) for seed in range(4)]


def measured(value: float) -> dict[str, object]:
    return {"result": {"fscore": value}, "seconds": 2 * value, "cpu_seconds": value}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = Store(tmp_path / "run" / "records.jsonl")
    for task in TASKS[:3]:
        store.add(task, measured(task.seed / 10), alone=True)
    return store.path


def test_what_was_written_is_read_again(path: Path) -> None:
    store = Store(path)
    assert [record.result["fscore"] for record in store.select(TASKS)] == [0.0, 0.1, 0.2]
    assert not store.has_result(TASKS[3])
    assert store.find(TASKS[3]) is None
    line = json.loads(path.read_text().splitlines()[1])
    assert line["task"]["seed"] == 1
    assert set(line["versions"]) == {"stiefelsync", "numpy", "scipy", "python"}


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_torn_last_line_is_cut_off(path: Path, cut: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    store = Store(path)
    assert [store.has_result(task) for task in TASKS[:3]] == [True, True, False]
    store.add(TASKS[2], measured(0.2), alone=True)
    assert path.read_bytes() == whole


def test_a_last_line_of_zeros_is_cut_off(path: Path) -> None:
    """A file system may have grown the file before the machine lost power."""
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0" * 50 + b"\n")
    store = Store(path)
    store.add(TASKS[3], measured(0.3), alone=True)
    assert path.read_bytes().startswith(whole + b'{"kind"')
    assert len(Store(path)) == 4


def test_reading_alone_changes_nothing(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    before = path.read_bytes()
    Store(path)
    assert path.read_bytes() == before


def test_damage_in_the_middle_is_named(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{nonsense", *lines[1:]]) + "\n")
    with pytest.raises(FormatError, match="line 2 is not a record; delete the line or choose another output folder"):
        Store(path)


def test_other_versions_are_not_mixed(path: Path) -> None:
    path.write_text(path.read_text().replace('"numpy": "', '"numpy": "0.'))
    with pytest.raises(InputError, match=r"holds records made with .*; choose another output folder"):
        Store(path).check_versions()


def test_runtimes_not_measured_alone_come_from_the_timing_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "records.jsonl")
    store.add(TASKS[0], measured(0.5), alone=False)
    assert not store.has_timing(TASKS[0])
    assert store.select(TASKS)[0].seconds is None
    store.add_timing(TASKS[0], measured(0.7))
    for reader in (store, Store(store.path)):
        record = reader.select(TASKS)[0]
        assert (record.result["fscore"], record.seconds, record.cpu_seconds) == (0.5, 1.4, 0.7)
