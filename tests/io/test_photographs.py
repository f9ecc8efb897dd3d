"""Photographs and tables of cameras that strangers wrote."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import FormatError, InputError, Matchings, clean, io
from stiefelsync.io.photographs import PHOTOGRAPHS, inside, opened

Image = pytest.importorskip("PIL.Image", reason="needs the extra report")

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n%%EOF\n"
FOCAL_LENGTH = 0xA405  # for 35 mm film
HEADER = "name,model,width,height,params\n"


def problem(*names: str) -> Matchings:
    at = np.array([[1.0, 2], [30, 20]] * len(names))
    return Matchings.from_labels([0, 1] * len(names), [2] * len(names), names=names, coordinates=at)


def cameras_of(database: Path) -> list[tuple[int, int, float, int]]:
    with closing(sqlite3.connect(database)) as opened:
        rows = opened.execute("SELECT width, height, params, prior_focal_length FROM cameras ORDER BY camera_id")
        return [(width, height, float(np.frombuffer(params)[0]), known) for width, height, params, known in rows]


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (64, 48)).save(tmp_path / "photos" / "b.jpg")
    return tmp_path / "photos"


@pytest.fixture
def ghostscript(tmp_path, monkeypatch):
    """Put a program in the place of Ghostscript's that leaves a trace."""
    (tmp_path / "bin").mkdir()
    for name in ("gs", "gswin32c", "gswin64c"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    eps = pytest.importorskip("PIL.EpsImagePlugin")
    monkeypatch.setattr(eps, "gs_binary", None)
    return tmp_path / "started"


def test_a_photograph_that_is_a_program_is_not_run(tmp_path, photos, ghostscript):
    """An EPS file named e.jpg started Ghostscript."""
    (photos / "e.jpg").write_bytes(EPS)
    pair = problem("e.jpg", "b.jpg")
    io.write(pair, tmp_path / "a.npz")
    clean(tmp_path / "a.npz", tmp_path / "b.npz", report=tmp_path / "page.html", images=photos)
    with pytest.raises(FormatError, match=r"e\.jpg cannot be read as a photograph"):
        io.write(pair, tmp_path / "a.db", photos=photos)
    assert not ghostscript.exists()


def test_names_do_not_lead_out_of_the_folder(tmp_path, photos):
    Image.new("RGB", (777, 333)).save(tmp_path / "secret.png")
    (photos / "link.png").symlink_to(tmp_path / "secret.png")
    for name in ("../secret.png", str(tmp_path / "secret.png"), "link.png"):
        assert inside(photos, name) is None
        io.write(problem(name, "b.jpg"), tmp_path / "a.db", photos=photos, force=True)
        assert all(width != 777 for width, *_ in cameras_of(tmp_path / "a.db"))


def with_focal_length(path: Path, value: object) -> None:
    image = Image.new("RGB", (64, 48))
    exif = image.getexif()
    exif.get_ifd(0x8769)[FOCAL_LENGTH] = value
    image.save(path, exif=exif)


def rational(numerator: int, denominator: int) -> object:
    from PIL.TiffImagePlugin import IFDRational

    return IFDRational(numerator, denominator)


@pytest.mark.parametrize(("value", "told"), [(rational(0, 0), "nan mm"), (rational(-5, 1), "-5 mm")])
def test_focal_lengths_that_are_none(tmp_path, photos, value, told):
    """0/0 was NaN in the database, and -5 mm a negative number of pixels."""
    with_focal_length(photos / "a.jpg", value)
    with pytest.warns(UserWarning, match=f"focal length is {told}; it is taken for unknown"):
        io.write(problem("a.jpg", "b.jpg"), tmp_path / "a.db", photos=photos)
    assert cameras_of(tmp_path / "a.db") == [(64, 48, 1.2 * 64, 0)]


def test_focal_lengths_of_photographs(tmp_path, photos):
    with_focal_length(photos / "a.jpg", 18)
    io.write(problem("a.jpg", "b.jpg"), tmp_path / "a.db", photos=photos)
    assert cameras_of(tmp_path / "a.db") == [(64, 48, 32.0, 1), (64, 48, 1.2 * 64, 0)]


@pytest.mark.parametrize(
    "data", [b"\xff\xd8\xff\xe1\x00\x10Exif\0\0MM\0*\0\0\0\x08", b"", b"\x89PNG\r\n\x1a\n" + bytes(40)]
)
def test_damaged_photographs(tmp_path, data):
    (tmp_path / "a.jpg").write_bytes(data)
    with pytest.raises(FormatError, match="cannot be read as a photograph"), opened(tmp_path / "a.jpg") as photograph:
        photograph.load()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("*,SIMPLE_PINHOLE,1_0,10,1 2 3\n", "size and parameters of a camera are numbers"),
        ("*,SIMPLE_PINHOLE,١,10,1 2 3\n", "size and parameters of a camera are numbers"),
        ("*,SIMPLE_PINHOLE,10,10,1 2 1_0\n", "size and parameters of a camera are numbers"),
        (f"*,SIMPLE_PINHOLE,{2**70},10,1 2 3\n", "takes 3 parameters and a size in pixels"),
        ("*,SIMPLE_PINHOLE,5,10,1 2 1e400\n", "takes 3 parameters and a size in pixels"),
        ("a,SIMPLE_PINHOLE,5,10,1 2 3\na,SIMPLE_PINHOLE,6,10,1 2 3\n", "there is a camera of 'a' before"),
    ],
)
def test_cameras_that_are_none(tmp_path, rows, message):
    (tmp_path / "cameras.csv").write_text(HEADER + rows, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        io.write(problem("a", "b"), tmp_path / "a.db", cameras=tmp_path / "cameras.csv")


def test_a_table_of_cameras_may_begin_with_a_mark_of_its_encoding(tmp_path):
    (tmp_path / "cameras.csv").write_text(f"\ufeff{HEADER}*,SIMPLE_PINHOLE,5,10,1 2 3\n", encoding="utf-8")
    io.write(problem("a", "b"), tmp_path / "a.db", cameras=tmp_path / "cameras.csv")
    assert cameras_of(tmp_path / "a.db") == [(5, 10, 1.0, 1)]


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_every_format_of_photographs_is_read(tmp_path, name):
    path = tmp_path / "photograph"
    Image.new("RGB", (64, 48)).save(path, format=name)
    with opened(path) as photograph:
        assert (photograph.format, photograph.size) == (name, (64, 48))
