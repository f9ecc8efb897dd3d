"""Runs resume after SIGKILL, give the same records with any number of workers, and leave no process behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stiefelsync.errors import InputError
from stiefelsync.experiments.records import Store
from stiefelsync.experiments.runner import TIMED, count_steps, run
from tests.experiments.small_run import METHODS, TASKS

PROGRAM = [sys.executable, str(Path(__file__).with_name("small_run.py"))]
PATIENCE = 120.0


def content(path: Path) -> list[dict[str, Any]]:
    """Return all lines without runtimes, in an order of their own."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    timeless = [{name: value for name, value in line.items() if "seconds" not in name} for line in lines]
    return sorted(timeless, key=lambda line: json.dumps(line, sort_keys=True))


def count_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until(happened: Any) -> None:
    limit = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.005)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "records.jsonl"
    steps: list[int] = []
    run(TASKS, Store(path), progress=lambda done, _: steps.append(done))
    assert steps == list(range(1, len(TASKS) + 1))
    return path


def test_every_task_has_one_record_with_its_runtime(uninterrupted: Path) -> None:
    store = Store(uninterrupted)
    assert count_lines(uninterrupted) == len(TASKS)
    for record in store.select(TASKS):
        assert record.cpu_seconds is not None
        assert 0 < record.cpu_seconds < 60
        assert 0.3 < record.result["fscore"] <= 1
    assert count_steps(TASKS, store) == 0


def test_a_finished_run_does_nothing(uninterrupted: Path) -> None:
    before = uninterrupted.read_bytes()
    run(TASKS, Store(uninterrupted), progress=lambda *_: pytest.fail("a task was repeated"))
    assert uninterrupted.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize(("workers", "kills"), [(1, (0, 1, 3, 5, 7)), (2, (2, 7, 14))])
def test_killed_and_resumed_gives_the_same_records(
    workers: int, kills: tuple[int, ...], uninterrupted: Path, tmp_path: Path
) -> None:
    """Kill the run at several points, in its first pass and in its timing pass, and once while it starts."""
    path = tmp_path / "records.jsonl"
    command = [*PROGRAM, str(path), str(workers)]
    for kill_at in kills:
        process = subprocess.Popen(command)
        wait_until(lambda at=kill_at, process=process: count_lines(path) >= at and children(process.pid))
        time.sleep(0.03 * kill_at % 0.1)
        workers_left = children(process.pid)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        wait_until(lambda pids=workers_left: not any(map(is_running, pids)))
    assert count_lines(path) < len(TASKS) * (1 if workers == 1 else 2)
    subprocess.run(command, check=True, timeout=PATIENCE)
    results = [line for line in content(path) if line["kind"] == "result"]
    assert results == content(uninterrupted)
    timings = [line for line in content(path) if line["kind"] == "timing"]
    assert len(timings) == (0 if workers == 1 else TIMED * len(METHODS))
    assert len({json.dumps(line["task"]) for line in timings}) == len(timings)


@pytest.mark.skipif(sys.platform != "linux", reason="sends SIGINT to a process group, as Ctrl-C does")
@pytest.mark.parametrize("delay", [0.0, 0.3], ids=["at once", "workers first"])
def test_ctrl_c_keeps_the_records_and_says_so(tmp_path: Path, delay: float) -> None:
    main = [sys.executable, "-c", "from stiefelsync.cli import main; main()"]
    command = [*main, "reproduce", "synthetic-ablation", "--output", str(tmp_path), "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: count_lines(tmp_path / "records.jsonl") >= 2)
    if delay:  # a busy machine may let the signal reach the workers before it reaches the program
        for worker in children(process.pid):
            os.kill(worker, signal.SIGINT)
        time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    _, message = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert message == "interrupted: the records so far are kept; give the same command again to go on\n"
    assert len(Store(tmp_path / "records.jsonl")) >= 2


def test_several_workers_time_the_first_seeds_in_a_second_pass(tmp_path: Path) -> None:
    store = Store(tmp_path / "records.jsonl")
    cheap = [task for task in TASKS if task.method == "matcheig"]
    assert count_steps(cheap, store, workers=2) == len(cheap) + TIMED
    run(cheap, store, workers=2)
    assert [record.seconds is not None for record in store.select(cheap)] == [True, True, False]
    before = [line for line in store.path.read_text().splitlines() if '"kind": "result"' in line]
    assert all('"seconds": null' in line for line in before)


def test_the_callers_environment_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    run([], Store(tmp_path / "records.jsonl"))
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_no_workers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="workers must be at least 1, got 0"):
        run(TASKS, Store(tmp_path / "records.jsonl"), workers=0)
