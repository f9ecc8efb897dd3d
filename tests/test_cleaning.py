"""`clean`: read, synchronise, write, with page and picture, together or not at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, clean, datasets, io, synchronise
from stiefelsync.datasets.cameras import cameras
from tests.io.colmap_schemas import build


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A COLMAP database whose matches contradict themselves; keypoints have positions in pixels."""
    made, _ = datasets.synthetic(30, 6, 0.8, 0.15, rng=1)
    at = np.random.default_rng(0).uniform(0, 900, (made.n_points, 2)).astype(np.float32)
    path = tmp_path / "database.db"
    build(path, Matchings.from_pairs(made.pairs(), made.sizes, coordinates=at), made.pairs())
    return path


def test_a_file_to_copy_must_be_of_the_output_s_kind(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("no database")
    with pytest.raises(InputError, match=r"of the format 'colmap': .*notes.txt is not such a file; leave like= out"):
        clean(database, tmp_path / "clean.db", like=other)
    with pytest.raises(InputError, match="of the format 'csv': it is not written as a changed copy of a file"):
        clean(database, tmp_path / "clean.csv", like=database)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["database.db", "notes.txt"]


@pytest.mark.parametrize("name", ["tracks.csv", "answer.npz"])
def test_files_say_how_far_to_trust_a_track(database: Path, tmp_path: Path, name: str) -> None:
    done = clean(database, tmp_path / name, to="tracks" if name.endswith("csv") else None)
    assert io.read(done.output).n_matches == done.counts.after
    trust = done.result.point_confidence
    if name.endswith("npz"):
        np.testing.assert_array_equal(np.load(done.output)["confidence"], trust)
    else:
        rows = [line.split(",") for line in done.output.read_text().splitlines() if line[0] not in "#t"]
        listed = np.sort([float(row[-1]) for row in rows])
        np.testing.assert_allclose(listed, np.sort(trust), atol=1e-4)
    io.write(done.result, tmp_path / "again.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "again.npz")["confidence"], trust)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_answer_is_that_of_the_steps_done_by_hand(database: Path, tmp_path: Path) -> None:
    before = digest(database)
    done = clean(database, tmp_path / "clean.db", method="tracks", report=tmp_path / "r.html", plot=tmp_path / "p.png")
    problem = io.read(database)
    result = synchronise(problem, method="tracks")
    assert np.array_equal(done.result.labels, result.labels)
    assert io.read(done.output) == problem.keep(result.kept)
    assert (done.counts.before, done.counts.kept) == (problem.n_matches, int(result.kept.sum()))
    assert (done.counts.added, done.counts.adds) == (result.difference.n_added, False)
    assert done.counts.conflicts_before > 0 == done.counts.conflicts_after
    assert f"{done.counts.removed:,} removed" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert done.seconds > sum(done.result.timings.values()) > 0
    assert "colmap mapper" in (done.next_command or "")
    assert digest(database) == before


def test_everything_or_nothing(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> str:
        raise AssertionError("the page cannot be made")

    monkeypatch.setattr("stiefelsync.report.page.render", broken)
    with pytest.raises(AssertionError):
        clean(database, tmp_path / "a.db", method="tracks", report=tmp_path / "a.html", plot=tmp_path / "a.png")
    assert [*tmp_path.iterdir()] == [database]


def test_what_is_there_stays_unless_forced(database: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("<!doctype html>old")
    with pytest.raises(InputError, match="force=True") as caught:
        clean(database, tmp_path / "clean.db", method="tracks", report=page)
    assert caught.value.setting == "force"
    assert page.read_text() == "<!doctype html>old"
    assert not (tmp_path / "clean.db").exists()
    clean(database, tmp_path / "clean.db", method="tracks", report=page, force=True)
    assert "old" not in page.read_text(encoding="utf-8")[:40]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"copies": 0}, "'copies' is an option of method tracks; choose method='tracks' for it"),
        ({"merge_xp": 1}, "unknown option 'merge_xp'; did you mean 'merge_px'?"),
        ({"method": "tracks", "universe": 40}, "method 'tracks' finds the size of the universe itself"),
        ({"images": "."}, "none is wanted; name it with report="),
        ({"plot": "picture.bmp"}, "must end in .png, .pdf or .svg"),
        ({"merge_px": -1}, "must be a number, 0 or more"),
        ({"to": "nonsense"}, "unknown format 'nonsense'"),
    ],
)
def test_what_is_wrong_is_said_before_the_work(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, object], message: str
) -> None:
    monkeypatch.setattr("stiefelsync.cleaning.synchronise", None)
    with pytest.raises(InputError, match=message.replace("?", r"\?")) as caught:
        clean(database, tmp_path / "clean.db", **given)  # type: ignore[arg-type]
    assert "--" not in str(caught.value)
    assert [*tmp_path.iterdir()] == [database]


def test_no_certificate_behind_the_users_back(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> float:
        raise AssertionError("the certificate was computed")

    monkeypatch.setattr("stiefelsync.sync.result.upper_bound", never)
    done = clean(database, tmp_path / "clean.db", report=tmp_path / "r.html", plot=tmp_path / "p.png")
    assert "upper_bound" not in done.as_dict()
    done.result.summary()
    with pytest.raises(AssertionError):
        clean(database, tmp_path / "b.db", report=tmp_path / "b.html", certificate=True)


def test_options_go_to_whoever_knows_them(database: Path, tmp_path: Path) -> None:
    done = clean(database, tmp_path / "clean.db", method="tracks", merge_px=2.0, neighbours=0, target="matches")
    assert done.written is not None
    assert (done.written.merged, done.written.target) == (2.0, "matches")
    assert done.as_dict()["table_written"] == "matches"
    again = synchronise(io.read(database, merge_px=2.0), method="tracks", neighbours=0)
    assert np.array_equal(done.result.labels, again.labels)


def test_what_is_lost_is_said(tmp_path: Path) -> None:
    scene, _ = cameras(cameras=4, rng=0)
    io.write(scene, tmp_path / "scene.npz")
    done = clean(tmp_path / "scene.npz", tmp_path / "out.csv", method="union-find")
    assert done.lost == (
        "A CSV file of matches holds no point coordinates.",
        "A plain CSV file of matches tells of no points behind the last one matched: 6 points left out.",
        "With plain=False it does, in lines before its header.",
    )
    assert done.counts.after == io.read(done.output).n_matches
