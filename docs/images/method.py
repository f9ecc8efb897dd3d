"""Draw the figures of docs/method: ``python docs/images/method.py`` from the project's root (extra `plot`)."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from stiefelsync.datasets.cameras import camera_scene
from stiefelsync.positions.neighbours import neighbour_support

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#1f6fb4", "#d9822b", "#888888"


def save(figure: Figure, name: str) -> None:
    """Save a figure, the same bytes every time."""
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})


def tracks() -> None:
    """The example by hand: seven points of four objects, and eight matches."""
    at = {
        "a0": (0, 1),
        "b0": (1, 1.35),
        "c0": (2, 1.35),
        "d0": (3, 1),
        "a1": (0, 0),
        "b1": (1, -0.35),
        "c1": (2, -0.35),
    }
    first = ["a0 b0", "a0 c0", "a0 d0", "b0 d0", "c0 d0"]
    figure = Figure(figsize=(5.2, 2.3), layout="constrained")
    axes = figure.add_subplot()
    for names, colour, style in ((first, BLUE, "-"), (["a1 b1", "a1 c1"], GREY, "-"), (["b0 c1"], ORANGE, "--")):
        for name in names:
            x, y = zip(*(at[point] for point in name.split()), strict=True)
            axes.plot(x, y, style, color=colour, zorder=1)
    for name, (x, y) in at.items():
        axes.scatter(x, y, s=420, color=BLUE if name.endswith("0") else GREY, zorder=2)
        axes.text(x, y, f"${name[0]}_{name[1]}$", color="white", ha="center", va="center")
    axes.set_xlim(-0.3, 3.3)
    axes.set_ylim(-0.8, 1.8)
    axes.axis("off")
    save(figure, "method-tracks")


def support() -> None:
    """How far right and wrong matches of the demo's castle move with their neighbours."""
    scene = camera_scene(cameras=20, rng=0)
    found = neighbour_support(scene.matchings)
    right = scene.matchings.agreeing(scene.truth)
    figure = Figure(figsize=(5.2, 2.6), layout="constrained")
    axes = figure.add_subplot()
    bins = np.linspace(0, 1, 21)
    for which, title, colour in ((right, "right matches", BLUE), (~right, "wrong matches", ORANGE)):
        known = found[which & np.isfinite(found)]
        axes.hist(known, bins, weights=np.full(len(known), 1 / len(known)), histtype="step", color=colour, label=title)
    axes.set_xlabel("support")
    axes.set_ylabel("share")
    axes.legend(frameon=False)
    save(figure, "method-support")


if __name__ == "__main__":
    tracks()
    support()
