"""The page in a real browser: its controls work, nothing is logged, nothing is requested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import io
from stiefelsync.matching.graph import conflicts
from stiefelsync.matching.matchings import Matchings
from stiefelsync.report import render, write_report
from stiefelsync.report.counts import per_object
from stiefelsync.sync.method import Outcome
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.synchronise import synchronise
from tests.report.browsers import Opened, needs_browser

pytestmark = needs_browser


def drive(opened: Opened, result: Synchronisation) -> None:
    """Use every control of the viewer and compare what is drawn with the result."""
    page, found = opened.page, result.difference
    page.locator("#lines").select_option("all")
    i, j = (int(page.locator(name).input_value()) for name in ("#first", "#second"))

    def expected(i: int, j: int, least: float = 0.0) -> dict[str, int]:
        here = (result.input.pair_objects[result.input.match_pairs] == sorted((i, j))).all(axis=1)
        here &= np.round(100 * result.confidence.clip(0, 1)) >= least
        kept, removed = int((here & found.kept).sum()), int((here & ~found.kept).sum())
        added = 0 if least else len(found.added.pair(i, j))  # these have no confidence
        return {"before": kept + removed, "after": kept + added, "removed": removed, "added": added}

    pictures = set()
    for mode, count in expected(i, j).items():
        opened.mode(mode)
        assert opened.count("total") == opened.count("drawn") == count
        pictures.add(opened.pixels())
    assert len(pictures) == 4
    assert expected(i, j)["removed"] > 0

    opened.mode("before")
    for least in (50, 100):
        page.locator("#threshold").fill(str(least))
        assert page.locator("#threshold-value").inner_text() == f"{least} %"
        assert opened.count("total") == expected(i, j, least)["before"]
    assert opened.count("total") < expected(i, j)["before"]
    for mode, count in expected(i, j, 100).items():
        opened.mode(mode)
        assert opened.count("total") == opened.count("drawn") == count
        assert page.locator(f"[data-count={mode}]").inner_text() == f"{count:,}"
    hint = "Added matches have no confidence: set it to 0 % to see them."
    assert (page.locator("#pair-status").inner_text() == hint) == (expected(i, j)["added"] > 0)
    opened.mode("before")
    page.locator("#threshold").fill("0")

    partners = page.locator("#second option").evaluate_all("options => options.map(o => o.value)")
    other = int(next(value for value in partners if int(value) != j))
    page.locator("#second").select_option(str(other))
    assert opened.count("total") == expected(i, other)["before"]
    page.locator("#first").select_option(str(other))
    assert page.locator("#first").input_value() == str(other)
    second = int(page.locator("#second").input_value())
    assert opened.count("total") == expected(other, second)["before"]
    page.locator("#next").click()
    page.locator("#previous").click()

    page.locator("#pair").focus()
    page.keyboard.press("ArrowRight")
    assert "– point" in page.locator("#pair-status").inner_text()
    page.keyboard.press("Escape")
    assert "– point" not in page.locator("#pair-status").inner_text()

    page.locator(".map[data-kind=before]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    names = result.input.names or [str(o) for o in range(result.input.n_objects)]
    count = len(result.input.pair(1, 2))
    assert page.locator("#matrix-status").inner_text().startswith(f"{names[1]} × {names[2]}: {count:,} before")
    page.keyboard.press("Enter")
    assert [page.locator(name).input_value() for name in ("#first", "#second")] == ["1", "2"]
    status = page.locator("#matrix-status").inner_text()
    side = page.locator(".map[data-kind=after]").bounding_box()["width"] / result.input.n_objects
    page.locator(".map[data-kind=after]").click(position={"x": 1.5 * side, "y": 1.5 * side})
    assert page.locator("#matrix-status").inner_text() == status  # an object has no matches with itself
    page.locator(".map[data-kind=before]").focus()
    page.keyboard.press("ArrowLeft")  # past the diagonal
    assert page.locator("#matrix-status").inner_text().startswith(f"{names[1]} × {names[0]}: ")

    page.locator(".sortable thead button", has_text="Removed").click()
    shown = page.locator(".sortable tbody tr").evaluate_all("rows => rows.map(r => Number(r.cells[3].dataset.value))")
    assert shown == sorted(per_object(found)["removed"].tolist(), reverse=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_photographs(photographed, photographs: Path, tmp_path: Path, show, scheme: str) -> None:
    opened = show(
        write_report(tmp_path / "castle.html", photographed.input, photographed, images=photographs),
        color_scheme=scheme,
    )
    drive(opened, photographed)
    loaded = opened.page.locator(".spot img").evaluate_all("images => images.map(i => i.naturalWidth)")
    assert loaded
    assert all(loaded)
    opened.page.pdf()
    opened.assert_quiet()


def test_coordinates_without_photographs(photographed, tmp_path: Path, show) -> None:
    opened = show(write_report(tmp_path / "castle.html", photographed.input, photographed))
    drive(opened, photographed)
    assert opened.page.locator(".spot svg").count() > 0
    opened.assert_quiet()


def test_a_csv_file_without_coordinates(plain, tmp_path: Path, show) -> None:
    io.write(plain.input, tmp_path / "matches.csv")
    problem = io.read(tmp_path / "matches.csv")
    labels = np.concatenate(
        [plain.labels[o : o + n] for o, n in zip(plain.input.offsets[:-1], problem.sizes, strict=True)]
    )
    result = Synchronisation(problem, "truth", Outcome(labels=labels), plain.universe_size)
    opened = show(write_report(tmp_path / "page.html", problem, result, source=tmp_path / "matches.csv"))
    drive(opened, result)
    opened.assert_quiet()


def test_a_narrow_screen_scrolls_in_one_direction_only(photographed, tmp_path: Path, show) -> None:
    opened = show(write_report(tmp_path / "castle.html", photographed.input, photographed))
    opened.page.set_viewport_size({"width": 360, "height": 740})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 360
    first, second = (opened.page.locator(name).bounding_box() for name in ("#first", "#second"))
    assert second["y"] > first["y"] + first["height"]
    assert min(first["width"], second["width"]) > 250  # names are not cut off
    opened.assert_quiet()


def test_an_object_named_like_a_script_is_harmless(tmp_path: Path, show) -> None:
    names = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>"]
    before = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1], names=names)
    result = Synchronisation(before, names[0], Outcome(labels=np.array([0, -1, 0, 0])), 1)
    opened = show(write_report(tmp_path / "page.html", before, result, title=names[2]))
    assert opened.page.locator("h1").inner_text() == names[2]
    assert opened.page.locator("#first option").all_inner_texts() == names
    opened.page.locator(".map[data-kind=before]").focus()
    assert names[0] in opened.page.locator("#matrix-status").inner_text()
    opened.page.locator("#pair").focus()
    opened.page.keyboard.press("ArrowRight")
    assert names[0] in opened.page.locator("#pair-status").inner_text()
    opened.assert_quiet()


def test_nothing_to_show(tmp_path: Path, show) -> None:
    problem = Matchings.from_pairs({}, [2, 2])
    opened = show(write_report(tmp_path / "page.html", problem, problem))
    assert opened.page.locator("#pair-status").inner_text() == "There is no pair to show."
    assert opened.page.locator("#first").is_disabled()
    opened.assert_quiet()


def test_what_only_would_follow_is_no_part_of_the_answer(photographed, tmp_path: Path, show) -> None:
    found, (i, j) = replace(photographed.difference, adds=False), (0, 1)
    (tmp_path / "castle.html").write_bytes(render(found, photographed).encode())
    opened = show(tmp_path / "castle.html")
    opened.page.locator(".map[data-kind=after]").focus()
    kept = int(found.kept[(found.input.pair_objects[found.input.match_pairs] == (i, j)).all(axis=1)].sum())
    more = len(found.added.pair(i, j))
    assert more > 0
    assert f"→ {kept} after" in opened.page.locator("#matrix-status").inner_text()
    assert f"{more} would follow)" in opened.page.locator("#matrix-status").inner_text()
    opened.page.keyboard.press("Enter")
    for mode, count in {"after": kept, "added": more}.items():
        opened.mode(mode)
        assert opened.count("total") == count
    assert opened.page.locator("label[for=mode-added]").inner_text() == f"Would follow {more}"
    opened.page.locator("#threshold").fill("50")
    assert opened.page.locator("#pair-status").inner_text().startswith("Matches that would follow have no confidence")
    opened.assert_quiet()


@pytest.mark.data
def test_sceaux(data_dir: Path, tmp_path: Path, show) -> None:
    problem = io.read(data_dir / "sceaux" / "database.db")
    result = synchronise(problem, method="tracks")
    path = write_report(
        tmp_path / "sceaux.html", problem, result, images=data_dir / "sceaux" / "images", certificate=True
    )
    assert path.stat().st_size < 15_000_000
    opened = show(path)
    drive(opened, result)
    f = result.as_dict()
    cards = [" ".join(text.split()) for text in opened.page.locator(".card").all_inner_texts()]
    assert cards[0].startswith(f"Conflicting tracks before {conflicts(problem).count} → after 0")
    assert cards[1].startswith(f"Matches before {problem.n_matches:,} → after {result.matchings().n_matches:,}")
    assert cards[1].endswith(f"{f['matches_removed']:,} removed, {f['matches_added']:,} added")
    assert f"→ after {f['tracks']:,} mean length" in cards[2]
    assert f"→ after {problem.n_points - f['points_unmatched']:,}" in cards[3]
    facts = " ".join(opened.page.locator(".facts").inner_text().split())
    assert facts.startswith(
        f"Images {problem.n_objects} Points {problem.n_points:,} Pairs with matches 55 Method tracks"
    )
    assert f"gap {100 * result.gap:.2f} %" in facts
    assert opened.page.locator(".conflict").count() == 10
    opened.assert_quiet()
