"""Pictures show what they say, never touch global state, and appear whole or not at all."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, MissingExtraError, compare, datasets, plotting, synchronise
from stiefelsync.datasets.cameras import camera_scene
from stiefelsync.plotting import canvas
from stiefelsync.plotting.matrices import CELLS
from stiefelsync.stiefel.result import History


def overlaps(figure) -> list[tuple[str, str]]:
    """Return the pairs of texts whose boxes overlap once the figure is laid out, and texts cut off at its edge."""
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    FigureCanvasAgg(figure).draw()
    undrawn = {
        id(label)
        for ax in figure.findobj(Axes)
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis.get_major_ticks()
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        for label in (tick.label1, tick.label2)
    }
    texts = [
        text
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in undrawn
    ]
    boxes = [text.get_window_extent() for text in texts]
    whole = figure.bbox
    cut = [
        (text.get_text(), "edge of the picture")
        for text, box in zip(texts, boxes, strict=True)
        if box.x0 < 0 or box.y0 < 0 or box.x1 > whole.width or box.y1 > whole.height
    ]
    return cut + [
        (texts[a].get_text(), texts[b].get_text())
        for a in range(len(texts))
        for b in range(a)
        if boxes[a].overlaps(boxes[b]) and boxes[a].width * boxes[b].width > 0
    ]


@pytest.fixture(scope="module")
def scene():
    return camera_scene(cameras=4, rng=1)


@pytest.fixture(scope="module")
def result():
    problem, _ = datasets.synthetic(12, 8, 0.8, 0.3, rng=0)
    return synchronise(problem, 12, method="sparse-stiefel")


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "PNG"])
def test_every_ending_is_written(tmp_path, result, suffix):
    path = plotting.save(plotting.overview(result), tmp_path / f"picture.{suffix}")
    start = path.read_bytes()[:200]
    assert start.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix.lower()])
    assert [*tmp_path.iterdir()] == [path]


def test_a_failed_picture_leaves_nothing(tmp_path):
    class Broken:
        def savefig(self, *_: object, **__: object) -> None:
            raise RuntimeError

    with pytest.raises(InputError, match="RuntimeError"):
        plotting.save(Broken(), tmp_path / "picture.png")
    with pytest.raises(InputError, match=r"must end in \.png, \.pdf or \.svg"):
        plotting.save(canvas.blank(1, 1), tmp_path / "picture.gif")
    with pytest.raises(InputError, match="does not exist; make it first"):
        plotting.save(canvas.blank(1, 1), tmp_path / "absent" / "picture.png")
    assert not [*tmp_path.iterdir()]


def test_no_text_overlaps(scene, result):
    after = Matchings.from_labels(scene.truth, scene.matchings.sizes)
    history = History(np.linspace(1, 1e6, 150), np.linspace(0, 9, 150), np.linspace(0, 1, 150))
    pictures = [
        plotting.overview(result),
        plotting.matrices(scene.matchings, after, scene.truth),
        plotting.convergence(history),
        plotting.heatmaps([("Orthogonal Iteration", np.eye(40)), ("sparse Stiefel", np.eye(40))]),
        plotting.match_lines(
            scene.matchings, after, scene.truth, [(0, 1), (2, 3)], drawings=scene.drawings, title="A headline"
        ),
    ]
    for figure in pictures:
        assert overlaps(figure) == []


def test_match_lines_draw_right_and_wrong_matches_in_their_colours(scene):
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_hex

    figure = plotting.match_lines(scene.matchings, scene.matchings, scene.truth, [(0, 1)])
    drawn = {
        to_hex(lines.get_edgecolor()[0]).upper(): len(lines.get_segments())
        for lines in figure.axes[0].findobj(LineCollection)
        if len(lines.get_segments())
    }
    ends = scene.matchings.pair(0, 1) + scene.matchings.offsets[:2]
    right = int(np.equal(*scene.truth[ends].T).sum())
    assert drawn == {canvas.RIGHT: right, canvas.WRONG: len(ends) - right}
    assert f"{right} right, {len(ends) - right} wrong" in figure.axes[0].get_title(loc="left")


def test_match_lines_need_coordinates(result):
    with pytest.raises(InputError, match="need the coordinates"):
        plotting.match_lines(result.input, result.input, np.zeros(result.input.n_points, dtype=int), [(0, 1)])


def test_matrices_count_what_changed(result):
    figure = plotting.matrices(result.input, result.matchings(), result.labels)
    legends = [text.get_text() for ax in figure.axes for text in ax.get_legend().get_texts()]
    kept, removed = int(result.kept.sum()), int((~result.kept).sum())
    assert legends == [f"{kept} kept", f"{removed} removed", f"{kept} kept", f"{result.difference.n_added} added"]


def test_large_matrices_are_binned(result):
    labels = np.tile(np.arange(5000), 20)
    large = Matchings.from_arrays(
        np.repeat([[0, 1]], 5000, axis=0), np.stack([np.arange(5000)] * 2, axis=1), [5000] * 20
    )
    figure = plotting.matrices(large, large, labels)
    assert figure.axes[0].images[0].get_array().shape == (CELLS, CELLS, 3)


def test_matrices_refuse_other_objects(result):
    with pytest.raises(InputError, match="the same objects"):
        plotting.matrices(result.input, Matchings.from_pairs({}, [1, 1]))


def test_convergence_shows_both_objectives():
    history = History(np.array([1.0, 2.0, 2.5]), np.array([0.1, 0.2, 0.4]), np.zeros(3))
    figure = plotting.convergence(history)
    left, right = figure.axes
    assert left.lines[0].get_ydata().tolist() == [1.0, 2.0, 2.5]
    assert right.lines[0].get_ydata().tolist() == [0.1, 0.2, 0.4]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r'pip install "stiefelsync\[plot\]"'):
        plotting.convergence(History(np.ones(1), np.ones(1), np.ones(1)))


def test_drawing_leaves_pyplot_alone():
    import subprocess

    code = (
        "import sys, numpy as np; from stiefelsync import plotting; plotting.heatmaps([('U', np.eye(3))]);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_comparison_has_a_line_per_method_and_bars_of_one_deviation():
    drawn = [datasets.synthetic(8, 6, 0.8, 0.4, rng=seed) for seed in range(3)]
    problems, truths = zip(*drawn, strict=True)
    rows = compare(problems, ["tracks", "union-find", "matcheig", "eig-manopt:tries=1"], truth=truths)
    figure = plotting.comparison(rows)
    (ax,) = figure.axes
    ran = [row for row in rows if row.error is None]
    assert [label.get_text() for label in ax.get_yticklabels()][:3] == ["tracks", "union-find", "matcheig *"]
    assert ax.get_xlabel() == "fscore, mean ± standard deviation of 3 runs"
    for row, container in zip(ran, ax.containers, strict=True):
        point, _, (bar,) = container
        assert point.get_xdata().tolist() == [row.fscore]
        low, high = bar.get_segments()[0][:, 0]
        assert (high - low) / 2 == pytest.approx(row.sd["fscore"])
    assert not overlaps(figure)
    with pytest.raises(InputError, match="no method that ran has a number 'gap' to draw"):
        plotting.comparison(rows, "gap")
    with pytest.raises(InputError, match="there is no number 'score' to draw; there are fscore"):
        plotting.comparison(rows, "score")
