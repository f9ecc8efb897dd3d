"""One target per reader: sound files to begin with, how they are packed, and what reading them means."""

from __future__ import annotations

import gzip
import io as streams
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

from fuzz import answers, calls, days, structures
from stiefelsync import Matchings, io
from tests.io.colmap_schemas import build

__all__ = ["TARGETS", "Target"]

Bytes = Sequence[bytes]


@dataclass(frozen=True)
class Target:
    """A reader and what to feed it.

    Attributes
    ----------
    suffix
        How the names of its files end.
    seeds
        ``seeds(folder)`` returns sound files as bytes; the folder is for scratch.
    options
        Of reading.
    unpack, pack
        From a file to the parts that damage is done to, and back: a checksum or a compression around them would let
        little damage reach the reader otherwise. Applied to half of the cases.
    words
        Pieces of text that mean something to the reader.
    place
        ``place(path, data)`` puts a case where it is read: as a file, or into a folder.
    damage
        ``damage(seed, rng, other)`` damages a file by its structure, instead of `unpack` and bytes anywhere.
    make
        ``make(number)`` makes a case of nothing but its number, instead of all that.
    read
        ``read(path)`` reads a case, where that is not what :func:`stiefelsync.io.read` is for.
    outcome
        ``outcome(path)`` does with a case what there is to do, where that is not to read it.
    """

    suffix: str
    seeds: Callable[[Path], list[bytes]]
    options: Mapping[str, Any] = field(default_factory=dict)
    unpack: Callable[[bytes], list[bytes]] | None = None
    pack: Callable[[bytes, Bytes], bytes] | None = None
    words: tuple[bytes, ...] = ()
    place: Callable[[Path, bytes], object] = Path.write_bytes
    damage: Callable[[bytes, random.Random, bytes], bytes] | None = None
    make: Callable[[int], bytes] | None = None
    read: Callable[[Path], object] | None = None
    outcome: Callable[[Path], str] | None = None


def _problems() -> list[Matchings]:
    """Return small problems with and without names, weights, positions, empty objects."""
    rng = np.random.default_rng(0)
    labels = np.array([0, 1, 2, -1, 1, 0, 2, 0, 2])
    at = rng.uniform(-0.5, 0.5, (9, 2))
    named = Matchings.from_labels(labels, [4, 3, 0, 2], names=["a", "b/c.jpg", "d", "é"], coordinates=at)
    bare = Matchings.from_labels(labels, [4, 3, 2])
    return [named, bare, bare.with_weights(rng.uniform(0.1, 2, bare.n_matches))]


def _written(format: str, suffix: str, **options: Any) -> Callable[[Path], list[bytes]]:
    """Return files made by the package's own writer, as far as it can hold the problems."""

    def seeds(folder: Path) -> list[bytes]:
        made = []
        for number, problem in enumerate(_problems()):
            path = folder / f"seed{number}{suffix}"
            if format not in ("opensfm", "frames") or problem.coordinates is not None:
                io.write(problem, path, format, force=True, **options)
                made.append(path.read_bytes())
        return made

    return seeds


def _npz(folder: Path) -> list[bytes]:
    made = _written("npz", ".npz")(folder)
    for kind in ("csr", "csc", "bsr", "coo", "dia"):
        sparse.save_npz(
            folder / "W.npz", getattr(sparse, f"{kind}_array")(_problems()[1].to_matrix()), compressed=False
        )
        with np.load(folder / "W.npz") as parts:
            np.savez(folder / "W.npz", **parts, sizes=_problems()[1].sizes)
        made.append((folder / "W.npz").read_bytes())
    return made


def _mat(folder: Path) -> list[bytes]:
    made = _written("mat", ".mat")(folder)
    for compressed in (False, True):
        for W in (_problems()[1].to_matrix().tocsc(), _problems()[1].to_matrix().toarray()):
            variables = {"W": W, "dimVector": [4.0, 3.0, 2.0], "names": np.array(["x", "yy", "z"], dtype=object)}
            scipy_io.savemat(folder / "hand.mat", variables, do_compression=compressed)
            made.append((folder / "hand.mat").read_bytes())
    return made


def _colmap(folder: Path) -> list[bytes]:
    problem, made = _problems()[0], []
    for version in ("3.8", "4.2"):
        path = folder / f"{version}.db"
        path.unlink(missing_ok=True)
        build(path, problem, problem, version)
        made.append(path.read_bytes())
    return made


def _hloc(folder: Path) -> list[bytes]:
    import h5py

    made = _written("hloc", ".h5")(folder)
    path = folder / "hand.h5"
    for newest in (False, True):
        with h5py.File(path, "w", libver="latest" if newest else "earliest") as file:
            group = file.create_group("a.jpg/b.jpg")
            group.create_dataset("matches0", data=np.array([1, -1, 0], dtype=np.int16), chunks=(2,), compression="gzip")
            group.create_dataset("matching_scores0", data=np.array([0.5, 0, 1], dtype=np.float16))
        made.append(path.read_bytes())
    return made


def _pickles(folder: Path) -> list[bytes]:
    block = np.array([[0, 1], [1, 0]], dtype=np.int32)
    content = {"b.jpg": block, "c.jpg": [[0, 1]], "d.jpg": []}
    return [gzip.compress(pickle.dumps(content, protocol=protocol)) for protocol in range(6)]


PARTS = ("objects.parquet", "pairs.parquet", "points.parquet", "matches/part-00000.parquet")


def _tables(folder: Path) -> list[bytes]:
    """Return every table of a dataset, after a byte for its number among the parts."""
    path = folder / "seed.dataset"
    shutil.rmtree(path, ignore_errors=True)
    io.write(_problems()[0], path, "dataset")
    return [bytes([number]) + (path / part).read_bytes() for number, part in enumerate(PARTS)]


def _correspondences(folder: Path) -> list[bytes]:
    import h5py

    rows = np.array([[1.0, 2, 3, 4, 0.5], [5, 6, 7, 8, 1.0]])
    table, archive, tree = folder / "c.csv", folder / "c.npz", folder / "c.h5"
    io.write(_problems()[0], table, "correspondences", force=True)
    np.savez(archive, **{"a|b": rows, "b|c": rows[:, :4]})
    with h5py.File(tree, "w") as file:
        group = file.create_group("a/b")
        group["keypoints0"], group["keypoints1"], group["scores"] = rows[:, :2], rows[:, 2:4], rows[:, 4]
    return [path.read_bytes() for path in (table, archive, tree)]


def _place_table(path: Path, data: bytes) -> None:
    """Make a sound dataset of which one table is the given one."""
    if path not in _sound:
        shutil.rmtree(path, ignore_errors=True)  # of a process before this one
        io.write(_problems()[0], path, "dataset")
        _sound[path] = [(path / part).read_bytes() for part in PARTS]
    spot = data[0] % len(PARTS) if data else 0
    for number, part in enumerate(PARTS):
        (path / part).write_bytes(data[1:] if number == spot else _sound[path][number])


_sound: dict[Path, list[bytes]] = {}


def _members(archive: bytes) -> list[bytes]:
    with zipfile.ZipFile(streams.BytesIO(archive)) as opened:
        return [opened.read(name) for name in opened.namelist()]


def _archive(original: bytes, members: Bytes) -> bytes:
    """Return an archive with the names of the original and other members, whose checksums are right."""
    made = streams.BytesIO()
    with zipfile.ZipFile(streams.BytesIO(original)) as opened, zipfile.ZipFile(made, "w") as archive:
        for name, member in zip(opened.namelist(), members, strict=True):
            archive.writestr(name, member)
    return made.getvalue()


TABLE = (
    b"# sizes",
    b"# names",
    b"-1",
    b"1e999",
    b"nan",
    b"1_0",
    b'"',
    b"\r\n",
    b"\0",
    b"2147483648",
    b"\xff",
    b",,",
    b"\t",
)
TARGETS: dict[str, Target] = {
    "csv": Target(".csv", _written("csv", ".csv"), words=(*TABLE, b"object_a", b"weight")),
    "tracks": Target(".csv", _written("tracks", ".csv"), words=(*TABLE, b"track", b"point")),
    "edges": Target(".csv", _written("edges", ".csv"), words=(*TABLE, b"unique_id_l", b"match_probability", b"nan")),
    "clusters": Target(".csv", _written("clusters", ".csv"), words=(*TABLE, b"cluster_id", b"unique_id")),
    "dd": Target(".dd", _written("dd", ".dd"), words=(b"gm 0 1", b"p 9 9 1 0", b"a 0 0 0 -1", b"e 0 1 2", b"1e999")),
    "mat": Target(".mat", _mat),
    "colmap": Target(".db", _colmap, words=(b"CREATE TRIGGER", b"VIEW", b"\xff\xff\xff\xff")),
    "hloc": Target(".h5", _hloc),
    "correspondences": Target(".correspondences", _correspondences, words=(*TABLE, b"score", b"a|b", b"keypoints0")),
    "npz": Target(".npz", _npz, unpack=_members, pack=_archive, words=(b"'<i8'", b"'|O'", b"(99999999999,)", b"(-1,)")),
    "frames": Target(".npz", _written("frames", ".npz"), unpack=_members, pack=_archive, words=(b"'<U6'", b"(-1,)")),
    "opensfm": Target(".csv", _written("opensfm", ".csv"), words=TABLE),
    "pickles": Target(
        "_matches.pkl.gz",
        _pickles,
        {"allow_pickle": True},
        unpack=lambda data: [gzip.decompress(data)],
        pack=lambda _, parts: gzip.compress(parts[0]),
        words=(b"cnumpy\ndtype\n", b"cbuiltins\neval\n", b"R", b"b", b"u.", b"O8", b"r\xff\xff\xff\x7f"),
    ),
    "dataset": Target(".dataset", _tables, words=(b"PAR1", b"\x15\x04"), place=_place_table),
    "pages": Target(".db", structures.sqlite_seeds, damage=structures.pages),
    "chunks": Target(".h5", _hloc, damage=structures.chunks),
    "columns": Target(".dataset", _tables, place=_place_table, damage=structures.columns),
    "tables": Target(".parquet", _written("csv", ".parquet"), damage=structures.table),
    "suite2p": Target(
        ".session",
        days.part_seeds(days.suite2p_folder),
        place=days.place_part(days.suite2p_folder),
        words=days.PICKLE_WORDS,
        read=days.session,
    ),
    "caiman": Target(".hdf5", days.caiman_seeds, read=days.session),
    "cellreg": Target(".mat", days.cellreg_seeds, read=days.session),
    "masks": Target(".npy", days.mask_seeds, words=(b"'<i8'", b"'|O'", b"(99999999999,)"), read=days.session),
    "unitmatch": Target(
        ".units",
        days.part_seeds(days.unitmatch_folder),
        place=days.place_part(days.unitmatch_folder),
        words=(*TABLE, *days.PICKLE_WORDS),
        read=days.units,
    ),
    "scores": Target(".npz", days.score_seeds, unpack=_members, pack=_archive, words=(b"'|O'",), read=days.as_units),
    "reconstruction": Target(
        ".model",
        answers.reconstruction_seeds,
        place=answers.place_images,
        words=(*TABLE, b"\xff" * 8, b"\0" * 8),
        read=answers.reconstruction,
    ),
    "constraints": Target(
        ".csv", answers.constraint_seeds, words=(*TABLE, b"must", b"cannot", b"a.jpg"), read=answers.constraints
    ),
    "pair scores": Target(".csv", answers.score_seeds, words=(*TABLE, b"a.jpg"), read=answers.pair_scores),
    "pairs": Target(".txt", answers.pair_seeds, words=(*TABLE, b"#"), read=answers.pairs),
    "cells": Target(
        ".cells", answers.cell_seeds, words=(*TABLE, b"session", b"roi", b"null", b"[[", b"1.5"), read=answers.cells
    ),
    "calls": Target(".txt", calls.ready, make=lambda number: str(number).encode(), outcome=calls.outcome),
}  # fmt: skip
# Targets that are named for what is damaged, and the format that reads it.
FORMATS = {"pickles": "opensfm", "pages": "colmap", "chunks": "hloc", "columns": "dataset", "tables": "csv"}
