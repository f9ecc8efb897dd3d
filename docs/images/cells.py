"""Draw docs/images/cells.jpg: the page about cells of six days. Needs the extra `dev` and chromium.

Run from the project's root: ``python docs/images/cells.py``
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from stiefelsync import datasets
from stiefelsync.following import follow

WIDTH = 960


def main() -> None:
    """Follow the cells of six days, write the page, and photograph it from the fields of view on."""
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        datasets.sessions(6, 100, shape=(270, 400), folder=folder / "mouse", rng=4)
        follow(sorted((folder / "mouse").iterdir()), report=folder / "cells.html")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": WIDTH, "height": 1900})
        view.goto((folder / "cells.html").as_uri())
        view.wait_for_selector("html[data-ready=yes]")
        top = view.evaluate("document.querySelector('#fields').getBoundingClientRect().top")
        bottom = view.evaluate("document.querySelectorAll('.cell')[1].getBoundingClientRect().bottom")
        clip = {"x": 0, "y": top - 12, "width": WIDTH, "height": bottom - top + 12}
        view.screenshot(path=folder / "cells.png", clip=clip, full_page=True)
        browser.close()
        Image.open(folder / "cells.png").convert("RGB").save(
            Path(__file__).with_suffix(".jpg"), quality=85, optimize=True
        )


if __name__ == "__main__":
    main()
