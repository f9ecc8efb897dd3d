"""What a page of evidence is made of: recorded commands, a claim, one plot and one table.

The commands of a page print what they measure. That text is kept in ``docs/results/<page>.json`` with the command, the
date and the version, and the page is written from the record. So a number on a page is never typed: it is either in the
table that a command printed, or computed from it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stiefelsync import __version__

__all__ = ["RESULTS", "ROOT", "Grid", "Page", "Printed", "Record", "read", "render", "run", "write"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
PICTURES = DOCS / "images" / "evidence"


@dataclass(frozen=True)
class Grid:
    """A table: names of columns, and rows of texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def row(self, *begin: str) -> Sequence[str]:
        """Return the first row that begins with these texts."""
        for row in self.rows:
            if tuple(row[: len(begin)]) == begin:
                return row
        raise LookupError(f"no row begins with {begin}")

    def text(self, *begin: str, column: str) -> str:
        """Return a cell, by the beginning of its row and the name of its column."""
        return self.row(*begin)[list(self.header).index(column)]

    def number(self, *begin: str, column: str) -> float:
        """Return a cell as a number; of "0.946 ± 0.004" the first, of "30%" 30."""
        return number(self.text(*begin, column=column))

    def numbers(self, column: str) -> list[float]:
        """Return a column as numbers."""
        place = list(self.header).index(column)
        return [number(row[place]) for row in self.rows]

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def number(text: str) -> float:
    """Return the first number of a text.

    Examples
    --------
    >>> number("**0.946** ± 0.004"), number("30%"), number("1,024"), number("-0.5")
    (0.946, 30.0, 1024.0, -0.5)
    """
    first = text.replace("*", "").split(" ")[0].split("/")[0]
    return float(first.rstrip("%s").replace(",", "").replace("−", "-"))


@dataclass(frozen=True)
class Printed:
    """What a command printed, when, and in which version.

    Attributes
    ----------
    command
        Without ``python -m``: ``benchmarks.large --weights``.
    seconds
        By the clock, of the machine and what else ran on it.
    """

    command: str
    date: str
    version: str
    seconds: float
    text: str

    @property
    def tables(self) -> list[Grid]:
        """The tables in Markdown that were printed, in their order."""
        found: list[list[list[str]]] = [[]]
        for line in self.text.splitlines():
            if line.startswith("|"):
                found[-1].append([cell.strip() for cell in line.strip().strip("|").split("|")])
            elif found[-1]:
                found.append([])
        bare = [[row for row in rows if set("".join(row)) - set("-:")] for rows in found]
        return [Grid(rows[0], rows[1:]) for rows in bare if len(rows) > 1]


Record = Mapping[str, Printed]


@dataclass(frozen=True)
class Page:
    """A page: what it claims, and how that is measured.

    Attributes
    ----------
    runs
        Commands by name, without ``python -m``. Two that append to a file of lines have the file's name in `lines`.
    claim, table, notes
        From the record: sentences, the table, and what else there is to say.
    plot
        Draws the record on one pair of axes.
    alt
        The plot in words, for those who cannot see it.
    measured, missing
        How it was measured, and what was not.
    needs
        What the commands need besides the package: "data" (`STIEFELSYNC_DATA`) or an extra.
    """

    name: str
    title: str
    runs: Mapping[str, str]
    claim: Callable[[Record], str]
    table: Callable[[Record], Grid]
    plot: Callable[[Record, Any], None]
    alt: str
    measured: str
    missing: str
    notes: Callable[[Record], str] = lambda record: ""
    needs: str = ""
    lines: Mapping[str, str] = field(default_factory=dict)
    height: float = 3.2


def read(name: str) -> dict[str, Printed]:
    """Return what was recorded for a page."""
    path = RESULTS / f"{name}.json"
    entries = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {run: Printed(**entry) for run, entry in entries.items()}


def write(name: str, record: Record) -> None:
    """Record what was printed for a page."""
    text = json.dumps({run: asdict(printed) for run, printed in record.items()}, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def run(command: str) -> Printed:
    """Run a command and return what it printed; what it says on standard error passes through."""
    began = time.perf_counter()
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    arguments = [sys.executable, *([] if command.startswith("examples/") else ["-m"]), *shlex.split(command)]
    done = subprocess.run(
        arguments, cwd=ROOT, env={**os.environ, **threads}, capture_output=True, encoding="utf-8", check=False
    )
    sys.stderr.write(done.stderr)
    # Some end with 1 where a target was missed, which their tables show.
    if done.returncode not in (0, 1) or not done.stdout.strip() or "Traceback" in done.stderr:
        raise SystemExit(f"{command} ended with exit code {done.returncode}")
    seconds = round(time.perf_counter() - began, 1)
    return Printed(command, f"{datetime.now(UTC):%Y-%m-%d}", __version__, seconds, done.stdout)


def render(page: Page, record: Record) -> str:
    """Return the page in Markdown."""
    missing = page.runs.keys() - record.keys()
    if missing:
        raise SystemExit(
            f"nothing recorded for {', '.join(sorted(missing))}: python -m benchmarks.evidence {page.name}"
        )
    parts = [
        f"# {page.title}",
        _wrapped(page.claim(record)),
        f"```{{image}} ../images/evidence/{page.name}.svg\n:alt: {page.alt}\n```",
        page.table(record).markdown(),
        _wrapped(page.measured),
        _wrapped(page.notes(record)),
        _wrapped(f"**Not measured.** {page.missing}"),
        "## How to repeat it",
        _wrapped(_needs(page) + f"`make evidence PAGE={page.name}` runs these commands and writes this page:"),
        _commands(page, record),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _needs(page: Page) -> str:
    if not page.needs:
        return ""
    if page.needs == "data":
        return "The data are not part of the package; `STIEFELSYNC_DATA` names their folder. "
    return f"It needs the extra `{page.needs}`. "


def _commands(page: Page, record: Record) -> str:
    """Return the commands with what they were run on."""
    texts: list[str] = []
    for name in page.runs:
        printed = record[name]
        start = "python " if printed.command.startswith("examples/") else "python -m "
        of = f"# {printed.date}, version {printed.version}"
        texts += [start + printed.command] if of in texts else [of, start + printed.command]
    return "```sh\n" + "\n".join(texts) + "\n```"


def draw(page: Page, record: Record) -> None:
    """Draw the plot of a page, the same bytes for the same record."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    PICTURES.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": page.name, "font.size": 9, "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.8, page.height), layout="constrained")
        page.plot(record, figure.add_subplot())
        figure.savefig(PICTURES / f"{page.name}.svg", metadata={"Date": None})


def words(directory: Path) -> int:
    """Return how many words the pages of a folder have, as ``wc -w`` counts them."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in directory.glob("*.md"))
