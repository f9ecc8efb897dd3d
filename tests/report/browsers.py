"""A real browser for tests of pages: what a page logged, and what it asked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")


@dataclass
class Opened:
    """A page, what it logged, and what it asked for."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def count(self, what: str) -> int:
        return int(self.page.locator("#pair").get_attribute(f"data-{what}"))

    def mode(self, name: str) -> None:
        self.page.locator(f"label[for=mode-{name}]").click()

    def pixels(self) -> str:
        return self.page.evaluate("document.getElementById('pair').toDataURL()")

    def assert_quiet(self) -> None:
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []
        assert len([url for url in self.requests if url.startswith("file:")]) == 1


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield opened
        opened.close()


@pytest.fixture
def show(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def open_page(path: Path, **options: object) -> Opened:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, **options))
        opened = Opened(contexts[-1].new_page())
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("dialog", lambda dialog: (opened.complaints.append(dialog.message), dialog.dismiss()))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(path.as_uri())
        return opened

    yield open_page
    for context in contexts:
        context.close()
