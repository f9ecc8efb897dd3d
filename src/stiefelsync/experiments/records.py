"""Records: one line of JSON per instance, on disk before the next instance starts."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from stiefelsync._version import __version__
from stiefelsync.errors import FormatError, InputError
from stiefelsync.experiments.tasks import Task

__all__ = ["Record", "Store", "versions"]


def versions() -> dict[str, str]:
    """Return the versions that can change a result.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'scipy', 'stiefelsync']
    """
    return {
        "stiefelsync": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Record:
    """What one task gave.

    Attributes
    ----------
    result
        Figures by name: fscore, precision, recall, and others that depend on the method.
    seconds, cpu_seconds
        Measured while nothing else of the run was running; None where they were not.
    """

    task: Task
    result: Mapping[str, Any]
    seconds: float | None
    cpu_seconds: float | None


class Store:
    """The records of one run, in a file that is only ever appended to.

    A line counts once its newline is on disk: what a killed run left of a last line is cut off when
    the file is opened again. A task has one line with its result, which holds the runtime if it ran
    alone, else at most one more line of kind "timing".

    Parameters
    ----------
    path
        The file, made on the first record.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(Path(folder.name) / "records.jsonl")
    >>> task = Task({"data": "toy"}, "input", 0)
    >>> store.add(task, {"result": {"fscore": 1.0}, "seconds": 0.1, "cpu_seconds": 0.1}, alone=True)
    >>> Store(store.path).find(task).result["fscore"]
    1.0
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._results: dict[str, dict[str, Any]] = {}
        self._timings: dict[str, dict[str, Any]] = {}
        self._cut_at: int | None = None
        for line in self._read():
            self._enter(line)

    def _read(self) -> Iterator[dict[str, Any]]:
        content = self.path.read_bytes() if self.path.exists() else b""
        *lines, rest = content.split(b"\n")
        end = 0
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
                if not {"kind", "task", "versions", "seconds"} <= record.keys():
                    raise ValueError
            except (ValueError, AttributeError):
                if number < len(lines):
                    raise FormatError(
                        f"{self.path}, line {number} is not a record; delete the line or choose another output folder"
                    ) from None
                self._cut_at = end
                return
            yield record
            end += len(line) + 1
        if rest:
            self._cut_at = end

    def _enter(self, line: dict[str, Any]) -> None:
        key = json.dumps(line["task"], sort_keys=True)
        (self._results if line["kind"] == "result" else self._timings).setdefault(key, line)

    def __len__(self) -> int:
        return len(self._results)

    def check_versions(self) -> None:
        """Raise :class:`InputError` if a record was made with other versions, since a figure must not mix them."""
        for line in self._results.values():
            if line["versions"] != versions():
                made = ", ".join(f"{name} {version}" for name, version in line["versions"].items())
                raise InputError(
                    f"{self.path} holds records made with {made}, which this run would not continue;"
                    " choose another output folder or delete the file"
                )

    def has_result(self, task: Task) -> bool:
        """Return whether a task is done."""
        return task.key in self._results

    def has_timing(self, task: Task) -> bool:
        """Return whether a task was timed alone."""
        return task.key in self._timings or self._results.get(task.key, {}).get("seconds") is not None

    def add(self, task: Task, measured: Mapping[str, Any], *, alone: bool) -> None:
        """Write the record of a task, with its runtime if nothing else ran meanwhile.

        Return when it is on disk.
        """
        times = {name: measured[name] if alone else None for name in ("seconds", "cpu_seconds")}
        self._append({"kind": "result", "task": task.as_dict(), "result": measured["result"], **times})

    def add_timing(self, task: Task, measured: Mapping[str, Any]) -> None:
        """Write the runtime of a task whose result is known."""
        times = {name: measured[name] for name in ("seconds", "cpu_seconds")}
        self._append({"kind": "timing", "task": task.as_dict(), **times})

    def _append(self, line: dict[str, Any]) -> None:
        line = {**line, "versions": versions()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            if self._cut_at is not None:
                file.truncate(self._cut_at)
                self._cut_at = None
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._enter(line)

    def find(self, task: Task) -> Record | None:
        """Return the record of a task, or None if it has not been run."""
        line = self._results.get(task.key)
        if line is None:
            return None
        times = self._timings.get(task.key, line)
        return Record(task, line["result"], times["seconds"], times["cpu_seconds"])

    def select(self, tasks: list[Task]) -> list[Record]:
        """Return the records of those tasks that have been run, in the order of the tasks."""
        return [record for task in tasks if (record := self.find(task)) is not None]
