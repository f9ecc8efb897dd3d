"""The site: its checker finds what is wrong, pictures have texts, and pages work in a real browser, offline."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
SOURCES = [ROOT / "README.md", *(p for p in (ROOT / "docs").rglob("*.md") if not {"_build", "generated"} & {*p.parts})]
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def checker() -> Any:
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "docs" / "check_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_checker_finds_what_is_wrong(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "picture.png").touch()
    links = '<h1 id="top">a</h1><a href="sub/b.html#place">b</a><a href="#top">up</a>'
    good = f'{links}<img src="picture.png" alt="a picture">'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "sub" / "b.html").write_text('<p id="place"></p><a href="https://example.org/x#y">elsewhere</a>')
    check_site = checker().check_site
    assert check_site(tmp_path) == []
    faults = {
        '<a href="gone.html">': "gone.html leads nowhere",
        '<a href="sub/b.html#gone">': "sub/b.html#gone leads to no place of that page",
        '<img src="picture.png" alt="">': "the picture picture.png has no text",
        '<script src="https://example.org/x.js"></script>': "loads https://example.org/x.js from elsewhere",
    }
    for text, fault in faults.items():
        (tmp_path / "a.html").write_text(good + text)
        assert check_site(tmp_path) == [f"a.html: {fault}"]


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pictures_have_texts(page):
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"!\[(.*?)\]\(", text) + re.findall(r"```\{(?:image|figure)\} \S+\n(?::alt: (.*)\n)?", text)
    assert all(len(told) >= 10 for told in shown), shown


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH")
    if not (SITE / "searchindex.js").is_file():
        pytest.skip("the site is not built: make docs")
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield browser
        browser.close()


@pytest.mark.parametrize("word", ["suite2p", "Splink", "COLMAP", "certificate", "duplicates"])
def test_search_finds_what_readers_look_for(browser, word):
    page = browser.new_page()
    page.goto((SITE / "search.html").as_uri() + f"?q={word}")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    page.locator("#search-results li a").first.click()
    page.wait_for_load_state()
    assert word.lower() in page.inner_text("body").lower()
    page.close()


def test_search_works_without_network(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((SITE / "index.html").as_uri())
    page.keyboard.press("Control+k")
    page.keyboard.type("certificate")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    found = page.locator("#search-results li a").all_inner_texts()
    assert any("Words" in title for title in found), found
    page.locator("#search-results li a").first.click()
    page.wait_for_load_state()
    assert "certificate" in page.inner_text("body").lower()
    assert all(address.startswith(("file:", "data:")) for address in asked)
    context.close()


# By how much the page is too wide, pictures that are not there, and tables with more than what is seen of them.
LOOK = """
[document.documentElement.scrollWidth - document.documentElement.clientWidth,
 [...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src),
 [...document.querySelectorAll(".bd-article table")].filter(table => {
   let seen = table.getBoundingClientRect().right <= document.documentElement.clientWidth + 1;
   for (let box = table; box && !box.matches(".bd-article"); box = box.parentElement)
     seen = seen && box.scrollWidth <= box.clientWidth + 1;
   return !seen;
 }).map(table => table.innerText.slice(0, 40))]
"""


@pytest.mark.parametrize("width", [1280, 400])
def test_no_page_is_wider_than_the_screen_and_no_table_cut_off(browser, width):
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page, faults = context.new_page(), []
    pages = [path for path in sorted(SITE.rglob("*.html")) if not {"_static", "_modules"} & {*path.parts}]
    for path in pages:
        page.goto(path.as_uri())
        wide, broken, cut = page.evaluate(LOOK)
        if wide > 0 or broken or cut:
            faults.append(f"{path.name}: {wide} too wide, {broken} missing, tables cut off: {cut}")
    assert len(pages) > 60
    assert faults == []
    context.close()
