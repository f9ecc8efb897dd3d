"""Pictures from Python; needs the extra ``plot``. The demo draws the same."""

import tempfile
from pathlib import Path

from stiefelsync import plotting, synchronise
from stiefelsync.datasets.cameras import camera_scene

scene = camera_scene(points=60, cameras=8, rng=0)
result = synchronise(scene.matchings, method="fast")

with tempfile.TemporaryDirectory() as folder:
    lines = plotting.match_lines(
        scene.matchings, result.matchings(), scene.truth, [(0, 5), (2, 7)],
        drawings=scene.drawings, size=(scene.width, scene.height),
    )  # fmt: skip
    for name, figure in (("lines.png", lines), ("overview.pdf", plotting.overview(result))):
        print(plotting.save(figure, Path(folder) / name).name)
