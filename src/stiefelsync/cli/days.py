"""Several sessions, or units of several recordings, as input of ``sync`` and ``inspect``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stiefelsync.cli.terminal import facts, peak_memory, progress, show, show_json, spent
from stiefelsync.errors import InputError, unknown_name
from stiefelsync.following import OPTIONS, Followed, follow, summary
from stiefelsync.sync.method import Progress

__all__ = ["inspect_days", "sync_days"]


def sync_days(
    inputs: Sequence[Path],
    output: Path,
    *,
    options: Mapping[str, Any],
    unused: Mapping[str, Any],
    quiet: bool,
    json: bool,
    seed: int,
    **given: Any,
) -> None:
    """Follow cells or units and print what came of it.

    Parameters
    ----------
    options
        Those of ``--option``.
    unused
        Other flags of the verb that say nothing here, each with its value if it was given, else None.
    """
    _refuse(unused)
    done = _follow(inputs, output, options, quiet, **given)
    if json:
        show_json(done.as_dict() | {"seed": seed, "peak_memory_bytes": peak_memory()})
    elif not quiet:
        lines = summary(done) | {"method": f"{done.method}, threshold {done.threshold:g}", "time": _time(done)}
        show(facts(f"{_named(inputs)} → {output}", lines))


def inspect_days(
    inputs: Sequence[Path], *, options: Mapping[str, Any], unused: Mapping[str, Any], quiet: bool, json: bool
) -> None:
    """Judge sessions without writing anything."""
    _refuse(unused)
    done = _follow(inputs, None, options, quiet)
    if json:
        show_json(done.as_dict())
    elif not quiet:
        show(facts(_named(inputs), summary(done) | {"time": _time(done)}))


def _follow(
    inputs: Sequence[Path], output: Path | None, options: Mapping[str, Any], quiet: bool, **given: Any
) -> Followed:
    for name in options:
        if name not in OPTIONS:
            raise unknown_name("option of sessions", name, OPTIONS)
    with progress(f"following {_named(inputs)}", quiet=quiet) as callback:
        return follow(inputs, output, progress=_told(callback), **options, **given)


def _told(callback: Callable[[Progress], object] | None) -> Callable[[int, int], object] | None:
    return None if callback is None else lambda done, n: callback(Progress("registration", done, n))


def _refuse(unused: Mapping[str, Any]) -> None:
    for name, value in unused.items():
        if value is not None:
            raise InputError(f"--{name} is for matches; leave it out where sessions are followed")


def _named(inputs: Sequence[Path]) -> str:
    return str(inputs[0]) if len(inputs) == 1 else f"{len(inputs)} sessions, {inputs[0]} …"


def _time(done: Followed) -> str:
    steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in done.seconds.items())
    return f"{spent(sum(done.seconds.values()))} ({steps})"
