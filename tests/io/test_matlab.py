"""Our reader of MAT files against SciPy's, on sound files; on damaged ones SciPy's may end the process."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import io as scipy_io
from scipy import sparse

from stiefelsync import InputError, io
from stiefelsync.io.matlab import load
from tests.io.test_io_plain import RELAXED

TYPES = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")


def plain(value: object) -> object:
    """Return what SciPy's reader gives as ours does."""
    if sparse.issparse(value):
        return value.toarray()
    if value.dtype.kind == "O":
        return [plain(cell) for cell in value.ravel(order="F")]
    if value.dtype.kind == "U":
        rows = [row.rstrip() for row in value.tolist()] if value.ndim == 1 else value.ravel().tolist()
        return rows[0] if len(rows) == 1 else rows or ""
    return value


def check_equal(path: Path) -> None:
    theirs = {name: value for name, value in scipy_io.loadmat(path).items() if not name.startswith("__")}
    ours = load(path, theirs.keys())
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        check_same(value, plain(theirs[name]))


def check_same(value: object, other: object) -> None:
    if isinstance(value, list) and isinstance(other, list):
        for one, two in zip(value, other, strict=True):
            check_same(one, two)
    elif isinstance(value, str):
        assert value == other
    else:
        dense = value.toarray() if sparse.issparse(value) else value
        assert dense.shape == other.shape
        assert np.array_equal(dense, other)


@RELAXED
@given(
    shape=st.lists(st.integers(0, 4), min_size=2, max_size=3),
    dtype=st.sampled_from(TYPES),
    seed=st.integers(0, 2**32),
    compressed=st.booleans(),
    words=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=5), min_size=1, max_size=4),
)
def test_every_kind_of_variable(tmp_path, shape, dtype, seed, compressed, words):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 100, shape).astype(dtype)
    variables = {
        "a": values,
        "longer_name": rng.normal(size=shape),
        "S": sparse.csc_matrix(rng.random(shape[:2]) < 0.3),
        "cells": np.array(words, dtype=object),
        "text": words[0] or "x",
        "numbers": 7.0,
    }
    scipy_io.savemat(tmp_path / "a.mat", variables, do_compression=compressed)
    check_equal(tmp_path / "a.mat")


@pytest.mark.data
def test_a_real_file(data_dir):
    check_equal(data_dir / "house" / "house_sync_data.mat")


def element(kind: int, data: bytes, order: str) -> bytes:
    return struct.pack(order + "II", kind, len(data)) + data + bytes(-len(data) % 8)


def variable(order: str, kind: int, dims: list[int], name: bytes, *values: bytes, flags: int = 0) -> bytes:
    parts = [
        element(6, struct.pack(order + "II", kind | flags << 8, 0), order),
        element(5, struct.pack(f"{order}{len(dims)}i", *dims), order),
        element(1, name, order),
        *values,
    ]
    return element(14, b"".join(parts), order)


def saved(path: Path, order: str, *variables: bytes) -> Path:
    header = b"MATLAB 5.0 MAT-file".ljust(124) + (b"\x00\x01IM" if order == "<" else b"\x01\x00MI")
    path.write_bytes(header + b"".join(variables))
    return path


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_orders_of_bytes(tmp_path, order):
    W = variable(order, 6, [2, 2], b"W", element(9, struct.pack(order + "4d", 1, 1, 1, 1), order))
    sizes = variable(order, 6, [1, 2], b"dimVector", element(4, struct.pack(order + "2H", 1, 1), order))
    names = variable(
        order, 1, [1, 2], b"names",
        variable(order, 4, [1, 2], b"", element(17, "né".encode("utf-16" + ("-le" if order == "<" else "-be")), order)),
        variable(order, 4, [1, 1], b"", element(16, b"b", order)),
    )  # fmt: skip
    read = io.read(saved(tmp_path / "a.mat", order, W, sizes, names))
    assert (read.n_matches, read.names) == (1, ("né", "b"))
    check_equal(tmp_path / "a.mat")


WRONG = {
    "type of numbers": variable("<", 6, [1, 1], b"W", element(99, bytes(8), "<")),
    "number of entries": variable("<", 6, [1, 2], b"W", element(9, bytes(8), "<")),
    "odd number of bytes": variable("<", 6, [1, 1], b"W", element(9, bytes(7), "<")),
    "dimensions below 0": variable("<", 6, [-1, 1], b"W", element(9, bytes(8), "<")),
    "one dimension": variable("<", 6, [1], b"W", element(9, bytes(8), "<")),
    "no values": variable("<", 6, [1, 1], b"W"),
    "value too large for its type": variable("<", 8, [1, 1], b"W", element(9, struct.pack("<d", 1e300), "<")),
    "complex": variable("<", 6, [1, 1], b"W", element(9, bytes(8), "<"), flags=0x08),
    "sparse beyond its entries": variable("<", 5, [1, 1], b"W", *(element(5, bytes([0, 0, 0, 9] * 2), "<"),) * 3),
    "sparse without entries": variable("<", 5, [1, 1], b"W", element(5, bytes(4), "<")),
    "text of unknown type": variable("<", 4, [1, 1], b"W", element(9, bytes(8), "<")),
    "text that does not fill its rows": variable("<", 4, [2, 2], b"W", element(16, b"abc", "<")),
    "cell of unknown type": variable("<", 1, [1, 1], b"W", element(9, bytes(8), "<")),
    "cells that are missing": variable("<", 1, [2**20, 2**20], b"W", variable("<", 6, [0, 0], b"")),
    "length of a small element": element(14, struct.pack("<II", 9 << 16 | 6, 0) + bytes(40), "<"),
    "no flags": element(14, element(5, bytes(8), "<"), "<"),
}  # fmt: skip


def nested(depth: int) -> bytes:
    inner = variable("<", 6, [0, 0], b"")
    for _ in range(depth):
        inner = variable("<", 1, [1, 1], b"W", inner)
    return inner


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_has_a_type(tmp_path, name):
    with pytest.raises(InputError):
        load(saved(tmp_path / "a.mat", "<", WRONG[name]), {"W"})


def test_cells_inside_cells(tmp_path):
    assert load(saved(tmp_path / "a.mat", "<", nested(5)), {"W"})
    with pytest.raises(InputError, match="too deep"):
        load(saved(tmp_path / "b.mat", "<", nested(500)), {"W"})


def test_variables_nobody_asked_for_are_passed_over(tmp_path):
    odd = variable("<", 2, [1, 1], b"struct", bytes(50))
    good = variable("<", 6, [1, 1], b"W", element(9, struct.pack("<d", 3), "<"))
    assert load(saved(tmp_path / "a.mat", "<", odd, good, element(77, b"?", "<")), {"W"})["W"].tolist() == [[3.0]]


def test_structs_are_read_as_dicts(tmp_path):
    """Of fields of any kind; arrays of structs are not."""
    one = {"map": np.arange(6.0).reshape(2, 3), "name": "x", "inner": {"deep": np.array([[1.0]])}}
    scipy_io.savemat(
        tmp_path / "s.mat", {"one": one, "several": np.array([(1, 2), (3, 4)], dtype=[("a", "O"), ("b", "O")])}
    )
    found = load(tmp_path / "s.mat", ["one", "several"])
    np.testing.assert_array_equal(found["one"]["map"], one["map"])
    assert (found["one"]["name"], found["one"]["inner"]["deep"].tolist()) == ("x", [[1.0]])
    assert found["several"] is None
