"""Draw docs/images/report.png and report-small.png: the report page of the demo's scene.

Needs the extra `dev` and chromium.

Run from the project's root: ``python docs/images/report.py``
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

from stiefelsync import synchronise
from stiefelsync.datasets.cameras import CameraScene, camera_scene
from stiefelsync.report import write_report

PAINT = {"wall": (226, 208, 172), "roof": (168, 80, 62), "window": (72, 100, 138), "door": (104, 70, 48)}
SHARP = 3  # drawn this many times larger, then shrunk


def draw(scene: CameraScene, folder: Path) -> None:
    """Paint every photograph of the scene."""
    size = (scene.width * SHARP, scene.height * SHARP)
    for name, polygons in zip(scene.matchings.names or (), scene.drawings, strict=True):
        image = Image.new("RGB", size, (186, 214, 236))
        pen = ImageDraw.Draw(image)
        pen.rectangle((0, size[1] * 0.62, *size), fill=(150, 174, 120))
        for polygon, shade, kind in polygons:
            colour = tuple(int(c * (0.62 + 0.38 * shade)) for c in PAINT[kind])
            pen.polygon([tuple(p) for p in (SHARP * polygon).tolist()], fill=colour, outline=(70, 58, 48), width=2)
        image.resize((scene.width, scene.height), Image.Resampling.LANCZOS).save(folder / name, quality=90)


def photograph(view: Any, target: Path, folder: Path) -> None:
    """Save the page down to the end of its viewer."""
    bottom = view.evaluate("document.querySelector('#viewer').getBoundingClientRect().bottom")
    clip = {"x": 0, "y": 0, "width": 1200, "height": bottom + 24}
    view.screenshot(path=folder / "r.png", clip=clip, full_page=True)
    image = Image.open(folder / "r.png").convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)


def main() -> None:
    """Synchronise the scene, write its report, and photograph the upper part of the page."""
    scene = camera_scene(cameras=20, rng=0)
    result = synchronise(scene.matchings, rng=0)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        draw(scene, folder)
        page = write_report(folder / "r.html", scene.matchings, result, images=folder, title="Castle, 20 photographs")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1200, "height": 1800})
        view.goto(page.as_uri())
        view.wait_for_timeout(500)
        photograph(view, Path(__file__).with_suffix(".png"), folder)
        # The small one, for the home page, leaves the matrices out.
        view.evaluate("document.querySelector('#matrix').style.display = 'none'")
        photograph(view, Path(__file__).with_name("report-small.png"), folder)
        browser.close()


if __name__ == "__main__":
    main()
