"""The figures on the README and the home page, from the records of the pages of evidence."""

from __future__ import annotations

from pathlib import Path

from benchmarks.evidence.page import ROOT, Grid, number, read
from benchmarks.evidence.registry import PAGES

__all__ = ["BEGIN", "END", "README", "headline", "insert"]

README = ROOT / "README.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"


def short(text: str | float) -> str:
    """Return a score with three digits and without the zero.

    Examples
    --------
    >>> short("0.9887"), short("**1.000**"), short(0.5)
    ('.989', '1.000', '.500')
    """
    value = text if isinstance(text, float) else number(text)
    return f"{value:.3f}".removeprefix("0")


def link(title: str, page: str) -> str:
    """Return a link to a page of evidence, seen from the README."""
    return f"[{title}](docs/evidence/{page}.md)"


def headline() -> str:
    """Return the two tables in Markdown: what is gained, and where nothing is."""
    table = {
        name: PAGES[name].table(read(name))
        for name in ("accuracy", "large", "poses", "sessions", "records", "few-objects")
    }
    suite = table["accuracy"].row("all 125 problems")
    rival, name = suite[3].split(" ")
    large = table["large"].row("30%")
    cells = table["sessions"].row("hard, pairs")
    duplicates = table["records"].row("5 sources, 15 % duplicates")
    entry, fountain = (table["poses"].row(f"{scene}, verified") for scene in ("entry", "fountain"))
    three = table["few-objects"].row("3")
    gains = [
        [
            link("125 problems with known answers, fscore", "accuracy"),
            short(suite[1]),
            f"**{short(suite[4])}** (best rival {short(rival)}, `{name}`)",
        ],
        [
            link("200,000 keypoints, 30 % of the matches wrong, fscore", "large"),
            f"{short(large[1])} by union-find",
            f"**{short(large[2])}**",
        ],
        [
            link("cameras of *entry*, COLMAP, incremental mapper, AUC@1°", "poses"),
            short(entry[1]),
            f"**{short(entry[2])}**",
        ],
        [
            link("cells over twelve days, hard, F1 of pairs", "sessions"),
            f"{short(max(cells[2:]))} by the best of three others",
            f"**{short(cells[1])}**",
        ],
        [
            link("records of five sources with duplicates, fscore", "records"),
            f"{short(duplicates[2])} by components",
            f"**{short(duplicates[1])}**",
        ],
    ]
    losses = [
        [
            link("cameras of *fountain*, whose matches are nearly clean", "poses"),
            short(fountain[1]),
            short(fountain[2]),
        ],
        [link("verified matches and COLMAP's global mapper, *entry*", "poses"), short(entry[3]), short(entry[4])],
        [link("three objects, half of the matches wrong, fscore", "few-objects"), short(three[1]), short(three[2])],
    ]
    return (
        Grid(["where it helps", "before", "after"], gains).markdown()
        + "\n\n"
        + Grid(["where it does not", "before", "after"], losses).markdown()
        + "\n"
    )


def insert(path: Path, text: str) -> str:
    """Return a page with the tables in their place."""
    page = path.read_text(encoding="utf-8")
    head, tail = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page[:head] + "\n" + text + "\n" + page[tail:]
