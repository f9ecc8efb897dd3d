"""A COLMAP database from nothing: images, cameras, keypoints and raw matches, to be verified and mapped by COLMAP.

The schema is that of COLMAP 3.9 to 3.11, which every later version reads and brings up to date by itself.
"""

from __future__ import annotations

import csv
import sqlite3
import warnings
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError, counted, unknown_name
from stiefelsync.io.base import names_of
from stiefelsync.io.limits import lines, real, regular, whole
from stiefelsync.io.photographs import inside, opened
from stiefelsync.matching.matchings import Matchings

__all__ = ["MODELS", "Camera", "create"]

MAX_IMAGES = 2147483647  # pair_id = MAX_IMAGES · min(id1, id2) + max(id1, id2)

MODELS = {
    "SIMPLE_PINHOLE": (0, 3),
    "PINHOLE": (1, 4),
    "SIMPLE_RADIAL": (2, 4),
    "RADIAL": (3, 5),
    "OPENCV": (4, 8),
    "OPENCV_FISHEYE": (5, 8),
    "FULL_OPENCV": (6, 12),
}
"""COLMAP's number and the number of parameters of the camera models that can be given."""

_UNKNOWN_FOCAL = 1.2  # of the larger side: what COLMAP itself begins with where nothing is known
MOST_PIXELS = 2**31 - 1  # of a side
_FILM = 36.0  # mm, the larger side of the film that focal lengths are quoted for
_NORMALISED = 1.0  # OpenSfM's positions lie within half the larger side of the centre

_SCHEMA = """
CREATE TABLE cameras (camera_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, model INTEGER NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, params BLOB, prior_focal_length INTEGER NOT NULL);
CREATE TABLE images (image_id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL UNIQUE,
    camera_id INTEGER NOT NULL, prior_qw REAL, prior_qx REAL, prior_qy REAL, prior_qz REAL,
    prior_tx REAL, prior_ty REAL, prior_tz REAL,
    CONSTRAINT image_id_check CHECK(image_id >= 0 and image_id < 2147483647),
    FOREIGN KEY(camera_id) REFERENCES cameras(camera_id));
CREATE UNIQUE INDEX index_name ON images(name);
CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE descriptors (image_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, FOREIGN KEY(image_id) REFERENCES images(image_id) ON DELETE CASCADE);
CREATE TABLE matches (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL, data BLOB);
CREATE TABLE two_view_geometries (pair_id INTEGER PRIMARY KEY NOT NULL, rows INTEGER NOT NULL, cols INTEGER NOT NULL,
    data BLOB, config INTEGER NOT NULL, F BLOB, E BLOB, H BLOB, qvec BLOB, tvec BLOB);
"""


@dataclass(frozen=True)
class Camera:
    """A camera as COLMAP has it; `known` says that the focal length is to be trusted."""

    model: str
    width: int
    height: int
    params: tuple[float, ...]
    known: bool


def create(
    matchings: Matchings,
    path: Path,
    *,
    cameras: str | Path | None = None,
    photos: str | Path | None = None,
    shift: float = 0.0,
) -> None:
    """Write a new database of raw matches.

    Parameters
    ----------
    matchings
        With coordinates: pixels, or OpenSfM's normalised ones, where the size of the images must be known.
    path
        A fresh file.
    cameras
        CSV file with the header ``name,model,width,height,params``: COLMAP's name of the model, and its parameters
        separated by spaces; the name ``*`` is for all images, which then share one camera.
    photos
        Folder of the photographs, whose size and focal length (EXIF) are taken where no camera is given.
    shift
        Added to all positions in pixels: 0.5 where (0, 0) is the centre of the first pixel, as of most matchers. In
        COLMAP it is the pixel's corner. Files of hloc are known to need it: :func:`~stiefelsync.clean` and ``convert``
        take 0.5 for them unless told otherwise.

    Notes
    -----
    Where nothing is known, an image is as large as its keypoints need and has COLMAP's first guess of a focal length,
    1.2 of the larger side, to be refined. Images of equal guessed cameras share one.
    """
    if matchings.coordinates is None:
        raise InputError(
            "a new COLMAP database needs the positions of keypoints, and these matches have none; give the features "
            "file (features=) if they come from hloc, or the database they came from",
            setting="like",
        )
    if photos is not None and not Path(photos).is_dir():
        raise InputError(f"there is no folder {photos} of photographs", setting="photos")
    names = names_of(matchings, numbered="{:06}.jpg")
    given = {} if cameras is None else _given(Path(cameras))
    xy = np.asarray(matchings.coordinates, dtype=np.float64)
    normalised = bool(np.abs(xy[np.isfinite(xy)]).max(initial=0.0) <= _NORMALISED)
    blocks = [xy[first:last] for first, last in zip(matchings.offsets[:-1], matchings.offsets[1:], strict=True)]
    found = [
        _camera(name, given, None if photos is None else Path(photos), None if normalised else block + shift)
        for name, block in zip(names, blocks, strict=True)
    ]
    if photos is not None and all(inside(Path(photos), name) is None for name in names):
        warnings.warn(
            f"none of the {counted(len(names), 'image')} is in {photos}, {names[0]!r} for example; sizes and focal "
            "lengths are guessed",
            stacklevel=2,
        )
    pixels = [
        _pixels(block, camera) if normalised else block + shift for block, camera in zip(blocks, found, strict=True)
    ]
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = OFF")  # the finished file is flushed once
            database.executescript(_SCHEMA)
            database.execute("BEGIN IMMEDIATE")
            _insert(database, names, found, pixels, matchings)
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise OSError(0, str(error)) from error


def _insert(
    database: sqlite3.Connection,
    names: list[str],
    cameras: list[Camera],
    pixels: list[NDArray[np.float64]],
    matchings: Matchings,
) -> None:
    """Fill the tables; images are numbered from 1."""
    ids: dict[Camera, int] = {}
    for camera in cameras:
        if camera not in ids:
            ids[camera] = len(ids) + 1
            params = np.array(camera.params, dtype="<f8").tobytes()
            row = (ids[camera], MODELS[camera.model][0], camera.width, camera.height, params, int(camera.known))
            database.execute("INSERT INTO cameras VALUES (?, ?, ?, ?, ?, ?)", row)
    for number, (name, camera, block) in enumerate(zip(names, cameras, pixels, strict=True), start=1):
        insert = "INSERT INTO images (image_id, name, camera_id) VALUES (?, ?, ?)"
        database.execute(insert, (number, name, ids[camera]))
        data = block.astype("<f4").tobytes()
        database.execute("INSERT INTO keypoints VALUES (?, ?, 2, ?)", (number, len(block), data))
    for (i, j), matches in matchings.pairs().items():
        pair_id = MAX_IMAGES * (i + 1) + j + 1
        values = (pair_id, len(matches), matches.astype("<u4").tobytes())
        database.execute("INSERT INTO matches VALUES (?, ?, 2, ?)", values)


def _given(path: Path) -> dict[str, Camera]:
    """Read a file of cameras."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    header = ["name", "model", "width", "height", "params"]
    cameras: dict[str, Camera] = {}
    with regular(path).open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(lines(file, path), strict=True)
        try:
            if next(rows, None) != header:
                raise FormatError(f"{path}: the first line of a file of cameras is {','.join(header)}")
            for row in rows:
                where = f"{path}, line {rows.line_num}"
                if len(row) != len(header):
                    raise FormatError(f"{where}: {len(row)} columns where {len(header)} are expected")
                if row[1] not in MODELS:
                    raise unknown_name(f"camera model in {where}", row[1], MODELS)
                try:
                    width, height, params = whole(row[2]), whole(row[3]), tuple(map(real, row[4].split()))
                except ValueError:
                    raise FormatError(f"{where}: size and parameters of a camera are numbers") from None
                in_pixels = 1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS
                if len(params) != MODELS[row[1]][1] or not np.isfinite(params).all() or not in_pixels:
                    raise FormatError(f"{where}: {row[1]} takes {MODELS[row[1]][1]} parameters and a size in pixels")
                if row[0] in cameras:
                    raise FormatError(f"{where}: there is a camera of {row[0]!r} before; one image has one camera")
                cameras[row[0]] = Camera(row[1], width, height, params, True)
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(f"{path} is not a CSV file of UTF-8 text ({error})") from None
    return cameras


def _camera(name: str, given: dict[str, Camera], photos: Path | None, pixels: NDArray[np.float64] | None) -> Camera:
    """Return the camera of an image: given, else from its photograph, else guessed from where its keypoints are."""
    if name in given or "*" in given:
        return given.get(name) or given["*"]
    photograph = None if photos is None else inside(photos, name)
    if photograph is not None:
        return _from_photo(photograph)
    if pixels is None:
        raise InputError(
            f"the positions are normalised, so the size of image {name!r} must be known: give cameras= (a CSV file) or "
            "photos= (a folder)",
            setting="cameras",
        )
    known = pixels[np.isfinite(pixels).all(axis=1)]
    width, height = (int(np.ceil(side)) + 1 for side in (known.max(axis=0) if len(known) else np.ones(2)))
    return _guess(max(width, 1), max(height, 1), None)


def _guess(width: int, height: int, focal: float | None) -> Camera:
    """Return a camera of one focal length and one distortion, centred."""
    params = (_UNKNOWN_FOCAL * max(width, height) if focal is None else focal, width / 2, height / 2, 0.0)
    return Camera("SIMPLE_RADIAL", width, height, params, focal is not None)


def _from_photo(path: Path) -> Camera:
    """Return the camera of a photograph: its size, and its focal length if EXIF has that for 35 mm film."""
    with opened(path) as photo:
        width, height = photo.size
        film = _film(photo)
    if film is not None and not (np.isfinite(film) and film > 0):
        warnings.warn(f"{path} says that its focal length is {film:g} mm; it is taken for unknown", stacklevel=2)
        film = None
    return _guess(width, height, None if film is None else film / _FILM * max(width, height))


def _film(photo: Any) -> float | None:
    """Return the focal length of a photograph in mm, as for 35 mm film, if EXIF has one; 0 is unknown there."""
    from PIL import ExifTags

    try:
        found = photo.getexif().get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.FocalLengthIn35mmFilm)
        return None if found is None or found == 0 else float(found)
    except Exception:  # EXIF is damaged more often than photographs are
        return None


def _pixels(block: NDArray[np.float64], camera: Camera) -> NDArray[np.float64]:
    """Return OpenSfM's normalised positions in COLMAP's pixels: the origin at the centre, the larger side 1."""
    size = np.array([camera.width, camera.height], dtype=np.float64)
    return np.asarray(block * size.max() + size / 2)
