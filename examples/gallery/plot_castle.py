"""
Photographs of a castle with repeated windows
=============================================

Corners of windows look alike, so matches between two photographs confuse them. Eight photographs together sort most
of them out: matches before (left) and after (right), green where both ends show the same corner.
"""

from stiefelsync import plotting, score, synchronise
from stiefelsync.datasets.cameras import camera_scene

scene = camera_scene(points=60, cameras=8, rng=0)
result = synchronise(scene.matchings)
figure = plotting.match_lines(
    scene.matchings,
    result.matchings(),
    scene.truth,
    [(0, 5), (2, 7)],
    drawings=scene.drawings,
    size=(scene.width, scene.height),
)
before, after = score(scene.matchings, scene.truth), score(result.labels, scene.truth)
print(f"fscore {before.fscore:.3f} before, {after.fscore:.3f} after")
