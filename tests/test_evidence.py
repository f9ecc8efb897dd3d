"""Pages of evidence are what their records give, and the README has the same figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.evidence.headline import README, headline, insert
from benchmarks.evidence.page import DOCS, PICTURES, RESULTS, Grid, Page, Printed, read, render
from benchmarks.evidence.registry import PAGES

INDEX = (DOCS / "evidence" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_its_record_gives(name: str) -> None:
    page = DOCS / "evidence" / f"{name}.md"
    assert {run: printed.command for run, printed in read(name).items()} == dict(PAGES[name].runs)
    assert page.read_text(encoding="utf-8") == render(PAGES[name], read(name)), f"make evidence PAGE={name}"
    assert (PICTURES / f"{name}.svg").is_file()
    assert f"\n{name}\n" in INDEX


def test_every_page_has_a_record_and_every_record_a_page() -> None:
    pages = {path.stem for path in (DOCS / "evidence").glob("*.md")} - {"index"}
    assert pages == PAGES.keys() == {path.stem for path in RESULTS.glob("*.json")}


def test_the_readme_has_the_figures_of_the_pages() -> None:
    assert README.read_text(encoding="utf-8") == insert(README, headline())


@pytest.mark.parametrize("name", PAGES)
def test_tables_fit_a_narrow_screen(name: str) -> None:
    table = PAGES[name].table(read(name))
    assert len(table.header) <= 6
    assert {len(row) for row in table.rows} == {len(table.header)}


def test_a_changed_record_changes_page_and_figures() -> None:
    record = read("large")
    (printed,) = record.values()
    other = {"scene": Printed(**{**vars(printed), "text": printed.text.replace("0.9887", "0.5887")})}
    assert "0.5887" in render(PAGES["large"], other)
    assert "0.5887" not in render(PAGES["large"], record)


def test_a_page_without_a_record_is_refused() -> None:
    with pytest.raises(SystemExit, match="nothing recorded for scene"):
        render(PAGES["large"], {})


def test_tables_are_found_in_what_was_printed() -> None:
    printed = Printed("c", "d", "v", 0.0, "begun\n| a | b |\n|---|---|\n| **x** | 1.5 ± .1 |\n\n| c |\n| y |\n")
    first, second = printed.tables
    assert first == Grid(["a", "b"], [["**x**", "1.5 ± .1"]])
    assert first.number("**x**", column="b") == 1.5
    assert second.rows == [["y"]]
    with pytest.raises(LookupError, match="no row begins with"):
        first.row("z")


@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_commands_on_pages_are_modules(page: Page) -> None:
    for command in page.runs.values():
        word = command.split()[0]
        path = Path(*word.split(".")).with_suffix(".py") if not word.endswith(".py") else Path(word)
        assert (DOCS.parent / path).is_file(), command
        assert not re.search(r"/(tmp|work|home)/", command)
