"""What the program says: tables on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import io
import json
import math
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from stiefelsync.cli.standard_input import named
from stiefelsync.errors import visible
from stiefelsync.sync.method import Callback, Progress

__all__ = [
    "complain",
    "facts",
    "note",
    "number",
    "peak_memory",
    "percent",
    "print_anything",
    "program",
    "progress",
    "show",
    "show_json",
    "spent",
    "table",
    "track",
]

NAME = "stiefelsync"
WIDTH = 120  # of tables that do not go to a terminal
# What JSON leaves as it is and a terminal takes for commands, or for another direction; as escapes
# it says the same.
_UNSEEN_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_PLAINER = "stiefelsync.plainer"
_ASCII = {"→": "->", "–": "-", "−": "-", "·": "-", "×": "x", "…": "...", "’": "'", "ᵀ": "'", "≤": "<=", "≥": ">="}


def print_anything() -> None:
    """Let text be printed whose letters the terminal does not have: plainer ones take their place."""
    codecs.register_error(_PLAINER, _plainer)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAINER)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for letters that an encoding does not have, as `codecs.register_error` wants it."""
    assert isinstance(error, UnicodeEncodeError)
    return "".join(_ASCII.get(letter, "?") for letter in error.object[error.start : error.end]), error.end


def _console(stream: Any) -> Console:
    return Console(file=stream, width=None if stream.isatty() else WIDTH, highlight=False)


def show(*parts: RenderableType) -> None:
    """Print tables and lines on stdout."""
    console = _console(sys.stdout)
    for part in parts:
        console.print(Text(visible(named(part))) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))


def show_json(document: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print one JSON document on stdout; numbers that are not finite become null."""
    plain = _plain(document)
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    # A document must say exactly what there is: as escapes, where letters are missing.
    except UnicodeEncodeError:
        text = json.dumps(plain, indent=2, allow_nan=False)
    typer.echo(_UNSEEN_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def note(message: str) -> None:
    """Say something in passing, on stderr."""
    _console(sys.stderr).print(Text(visible(message), style="dim"), soft_wrap=True)


def complain(kind: str, message: str) -> None:
    """Print an error or a warning on stderr, in one line as far as the message allows."""
    text = Text(f"{kind}: ", style="bold yellow" if kind == "warning" else "bold red")
    _console(sys.stderr).print(text.append(visible(named(message)), style="not bold default"), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Group:
    """Return a table whose first `left` columns are text and the rest numbers."""
    made = Table(header_style="bold", box=None, padding=(0, 2, 0, 0))
    for n, name in enumerate(columns):
        made.add_column(name, justify="left" if n < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(escape(visible(cell)) for cell in row))
    return Group(Text(visible(named(title)), style="bold"), made)


def facts(title: str, pairs: Mapping[str, str]) -> Group:
    """Return a table of names and values."""
    made = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    made.add_column(style="dim")
    made.add_column(overflow="fold")
    for name, value in pairs.items():
        made.add_row(escape(visible(name)), escape(visible(value)))
    return Group(Text(visible(named(title)), style="bold"), made)


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for a table, a dash for none.

    Examples
    --------
    >>> number(0.12345), number(1234567), number(None)
    ('0.123', '1,234,567', '–')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value:,.{digits}f}"


def peak_memory() -> int | None:
    """Return the most bytes of memory that this process has had, None where the system does not tell.

    Examples
    --------
    >>> peak_memory() is None or peak_memory() > 10**7
    True
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def spent(seconds: float) -> str:
    """Return how long something took and how much memory there was at most.

    Examples
    --------
    >>> spent(2).partition(",")[0]
    '2 s in all'
    """
    most = peak_memory()
    return f"{number(seconds, 2)} s in all" + ("" if most is None else f", {most / 1e6:,.0f} MB of memory at most")


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share in percent, a dash for none.

    Examples
    --------
    >>> percent(0.034)
    '3.4 %'
    """
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f} %"


def program() -> str:
    """Return what to type to run this program again: its name where the shell finds it, else its path.

    Examples
    --------
    >>> program()
    'stiefelsync'
    """
    by_path = Path(sys.argv[0]).name == NAME and shutil.which(NAME) is None
    return shlex.quote(sys.argv[0]) if by_path else NAME


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Callback | None]:
    """Yield a callback for :func:`synchronise` that draws a bar on stderr.

    None for `quiet` or no terminal.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with _bar() as bar:
        task = bar.add_task(escape(visible(title)), total=None, count="", measures="")

        def update(state: Progress) -> None:
            description = escape(visible(f"{title} · {state.stage}"))
            if bar.tasks[0].description != description:
                bar.reset(task, total=state.total, description=description)
            count = "" if state.total is None else f"{state.step:,}/{state.total:,}"
            bar.update(task, completed=state.step, total=state.total, count=count, measures=_measures(state))

        yield update


@contextmanager
def track(title: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Yield a function of the number of steps done and the name of the next that moves a bar on stderr."""
    with _bar() as bar:
        task = bar.add_task(escape(visible(title)), total=total, count="", measures="")

        def update(step: int, name: str) -> None:
            bar.update(task, completed=step, count=f"{step}/{total}", description=escape(visible(f"{title} · {name}")))

        yield update


def _bar() -> RichProgress:
    """Return a bar with a count, the objective and the sparsity where they are known, and the time left."""
    console = _console(sys.stderr)
    return RichProgress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[measures]}", style="dim"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _measures(state: Progress) -> str:
    parts = []
    if state.objective is not None:
        parts.append(f"objective {state.objective:,.1f}")
    if state.sparsity is not None:
        parts.append(f"sparsity {percent(state.sparsity)}")
    return " · ".join(parts)


def _plain(value: Any) -> Any:
    """Return a value made of JSON's own types only."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | bool | None) else named(str(value))
