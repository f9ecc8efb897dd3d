"""The page about cells over days in a real browser: what it draws, its slider, and that nothing is asked for."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stiefelsync import datasets
from stiefelsync.following import follow
from tests.report.browsers import needs_browser

pytestmark = needs_browser


@pytest.fixture(scope="module")
def mouse(tmp_path_factory):
    """Two planes of five days, their table, and the page about them."""
    folder = tmp_path_factory.mktemp("page")
    for plane, seed in ((0, 3), (1, 4)):
        drawn = folder / f"drawn{plane}"
        datasets.sessions(5, 60, difficulty="hard", shape=(220, 200), folder=drawn, rng=seed)
        for day in sorted(drawn.iterdir()):
            target = folder / "mouse" / day.name / "suite2p" / f"plane{plane}"
            target.parent.mkdir(parents=True, exist_ok=True)
            (day / "suite2p" / "plane0").rename(target)
    done = follow(sorted((folder / "mouse").iterdir()), report=folder / "cells.html", title="<b>Mouse & 1</b>")
    return done.table, folder / "cells.html"


@pytest.fixture
def page(show, mouse):
    opened = show(mouse[1])
    opened.page.wait_for_selector("html[data-ready=yes]")
    return opened


def test_the_page_shows_all_days_and_asks_for_nothing(page, mouse):
    table, _ = mouse
    assert page.page.locator("#field-grid canvas").count() == 5
    assert page.page.locator("h1").inner_text() == "<b>Mouse & 1</b>"
    assert page.page.locator("#counted").inner_text().startswith(f"{(table.sessions_per_cell > 1).sum()} of")
    page.assert_quiet()


def test_the_numbers_in_a_row_are_those_of_the_table(page, mouse):
    table, _ = mouse
    row = page.page.locator(".cell").first
    cell = int(row.get_attribute("data-cell"))
    told = [item.inner_text() for item in row.locator(".strip li").all()]
    for text, number in zip(told, table.own[cell].tolist(), strict=True):
        assert ("not seen" in text) == (number is None)
        assert number is None or re.search(rf"\b{number}\b", text.split("\n", 1)[1])
    assert cell == np.argmin(np.nan_to_num(table.places, nan=1.0).min(axis=1))


def test_what_is_drawn_are_outlines_in_colour(page):
    shown = "c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
    shown += " for (let i = 0; i < d.length; i += 4) n += Math.max(d[i], d[i+1], d[i+2])"
    shown += " - Math.min(d[i], d[i+1], d[i+2]) > 60; return n / (d.length / 4); }"
    for canvas in page.page.locator("#field-grid canvas").all():
        assert 0.01 < canvas.evaluate(shown) < 0.6
    assert page.page.locator(".cell canvas").first.evaluate(shown) > 0.005


def test_the_slider_hides_what_is_less_sure(page, mouse):
    table, _ = mouse
    followed = table.confidence[table.sessions_per_cell > 1]
    least = float(np.median(followed))
    page.page.locator("#least").fill(f"{least:.2f}")
    kept = int((np.round(followed, 4) >= round(least, 2)).sum())
    page.page.wait_for_function(
        "n => document.getElementById('counted').textContent.startsWith(n + ' of')", arg=str(kept)
    )
    page.page.locator("#least").fill("1")
    page.page.wait_for_selector("#rows .empty")
    page.assert_quiet()


def test_a_cell_that_is_chosen_is_found_in_the_fields_of_its_plane(page, mouse):
    table, _ = mouse
    row = page.page.locator(".cell").first
    plane = table.plane[int(row.get_attribute("data-cell"))]
    page.page.locator("#plane").select_option(str(1 - plane))
    fields = "Array.from(document.querySelectorAll('#field-grid canvas'), c => c.toDataURL()).join()"
    before = page.page.evaluate(fields)
    row.locator("h3 button").press("Enter")
    assert page.page.locator(".cell.chosen").count() == 1
    assert page.page.locator("#plane").input_value() == str(plane)
    chosen = page.page.evaluate(fields)
    row.locator("h3 button").press("Enter")
    assert len({before, chosen, page.page.evaluate(fields)}) == 3


def test_the_other_plane_is_chosen(page):
    before = page.page.locator("#field-grid canvas").first.evaluate("c => c.toDataURL()")
    page.page.locator("#plane").select_option("1")
    assert page.page.locator("#field-grid canvas").first.evaluate("c => c.toDataURL()") != before


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_screen(page, width):
    page.page.set_viewport_size({"width": width, "height": 900})
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_units_have_rows_without_pictures(show, tmp_path):
    p, recording, _ = datasets.units(4, 15, rng=0)
    np.savez(tmp_path / "units.npz", scores=p, session=recording)
    follow([tmp_path / "units.npz"], report=tmp_path / "units.html")
    opened = show(tmp_path / "units.html")
    opened.page.wait_for_selector("html[data-ready=yes]")
    assert opened.page.locator(".cell").count() > 5
    assert opened.page.locator("canvas").count() == 0
    opened.assert_quiet()
