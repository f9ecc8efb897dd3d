"""Calls of kernels: what does not fit its signature is refused before the kernel sees it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stiefelsync._core import binding, library
from stiefelsync._core.binding import call, constant, struct
from stiefelsync._core.signatures import CONSTANTS, SIGNATURES, STRUCTS


def given():
    """Arguments of `find_agreeing` that fit: ends, their number, labels, and where to write."""
    return np.array([[0, 1], [0, 2]]), 2, np.array([5, 5, -1]), np.empty(2, dtype=bool)


def test_arguments_that_fit():
    ends, M, labels, agree = given()
    assert call("find_agreeing", ends, M, labels, agree) == 0
    assert agree.tolist() == [True, False]


@pytest.mark.parametrize(
    ("place", "value", "error", "message"),
    [
        (0, np.array([[0, 1], [0, 2]], dtype=np.int32), TypeError, "ends of find_agreeing must be an array of int64"),
        (0, [[0, 1], [0, 2]], TypeError, "not list"),
        (0, None, TypeError, "not NoneType"),
        (0, np.array([[0, 1], [0, 2]]).T, ValueError, "ends of find_agreeing must be C-contiguous"),
        (0, np.array([[0, 1]]), ValueError, "ends of find_agreeing must hold 4 entries, not 2"),
        (1, 3, ValueError, "ends of find_agreeing must hold 6 entries, not 4"),
        (1, 2.0, TypeError, "float"),
        (2, np.array([5.0, 5, -1]), TypeError, "labels of find_agreeing .* int64, not an array of float64"),
        (2, np.array([5, 5, -1]).astype(">i8"), TypeError, "labels of find_agreeing must be an array of int64"),
        (3, np.empty(2, dtype=np.uint8), TypeError, "agree of find_agreeing must be an array of bool"),
    ],
)  # fmt: skip
def test_an_argument_that_does_not_fit_is_refused(place, value, error, message):
    arguments = list(given())
    arguments[place] = value
    with pytest.raises(error, match=message):
        call("find_agreeing", *arguments)


def test_arrays_that_may_not_be_written_to_or_are_not_aligned():
    ends, M, labels, agree = given()
    agree.flags.writeable = False
    with pytest.raises(ValueError, match="agree of find_agreeing is written to, but is read-only"):
        call("find_agreeing", ends, M, labels, agree)
    shifted = np.frombuffer(b"x" + ends.tobytes(), dtype=np.int64, offset=1)
    with pytest.raises(ValueError, match="ends of find_agreeing must be C-contiguous and aligned"):
        call("find_agreeing", shifted, M, labels, np.empty(2, dtype=bool))


def test_what_is_only_read_may_be_read_only_and_empty():
    ends, M, labels, agree = given()
    ends.flags.writeable = False
    call("find_agreeing", ends, M, labels, agree)
    assert agree.tolist() == [True, False]
    call("find_agreeing", np.empty((0, 2), dtype=np.int64), 0, np.empty(0, dtype=np.int64), np.empty(0, dtype=bool))


def test_the_number_of_arguments():
    with pytest.raises(TypeError, match="find_agreeing takes 4 arguments, not 3"):
        call("find_agreeing", *given()[:3])
    with pytest.raises(KeyError):
        call("no_such_kernel")


def test_none_is_taken_where_the_signature_says_so():
    labels, ends, first = np.zeros(2, dtype=np.int64), np.array([[0, 1]]), np.empty(2, dtype=np.int64)
    call("find_parts", labels, 2, ends, 1, None, first)
    assert first.tolist() == [0, 0]
    call("find_parts", labels, 2, ends, 1, np.array([False]), first)
    assert first.tolist() == [0, 1]


def test_numbers_of_numpy_are_numbers():
    ends, _, labels, agree = given()
    call("find_agreeing", ends, np.int32(2), labels, agree)
    assert agree.tolist() == [True, False]


def test_a_kernel_without_memory_says_so():
    """An array that no memory could hold: 2^56 labels."""
    none = np.empty(0)
    with pytest.raises(MemoryError, match="no memory for assign"):
        call("assign", none, 0, 2**56, np.empty(0, dtype=np.int64))


def test_structs_keep_their_arrays_and_refuse_what_does_not_fit(monkeypatch):
    monkeypatch.setitem(STRUCTS, "Points", "k, d, where i8[d*k], X f8[k]?, hope f8, lift f8")
    where = np.empty(6, dtype=np.int64)
    made = struct("Points", k=2, d=3, where=where, hope=0.5)
    assert (made.k, made.d, made.hope, made.lift) == (2, 3, 0.5, 0.0)
    assert any(one is where for one in made.kept)
    assert made.where == where.ctypes.data
    assert made.X is None
    with pytest.raises(TypeError, match="Points has no field how"):
        struct("Points", how=1)
    with pytest.raises(ValueError, match="where of Points must hold 6 entries, not 5"):
        struct("Points", k=2, d=3, where=where[:5])
    with pytest.raises(TypeError, match="where of Points must be an array of int64, not NoneType"):
        struct("Points", k=2, d=3)
    with pytest.raises(TypeError, match="s of begin_chain must be a struct Chain"):
        call("begin_chain", made)


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_library_has_every_function(name):
    function, arguments, _ = binding._bound(name)
    assert len(function.argtypes) == arguments > 0


def test_constants_and_structs():
    assert all(constant(name) > 0 for name in CONSTANTS)
    assert constant("angles") == 16
    for name in STRUCTS:
        assert binding._struct(name)[0].__name__ == name


def checkout(path: Path) -> Path:
    """Return the sources of a copy of the package, as in a checkout."""
    sources = Path(library.__file__).parent
    copy = path / "src" / "stiefelsync" / "_core"
    shutil.copytree(sources, copy)
    return copy


def load(folder: Path) -> subprocess.CompletedProcess[str]:
    program = "import runpy; print(runpy.run_path('library.py')['about']()['fingerprint'])"
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)


@pytest.mark.skipif(not library._sources(), reason="only the package is installed, without the C sources")
def test_a_missing_a_stale_and_a_broken_library_say_what_to_do(tmp_path):
    folder = checkout(tmp_path)
    file = folder / library.FILE.name
    assert load(folder).stdout.strip() == library.fingerprint()
    remedy = f"run 'python hatch_build.py' in {tmp_path}"
    later = file.stat().st_mtime + 10
    # A newer date alone, as after another checkout, is no reason to complain.
    os.utime(folder / "sums.c", (later, later))
    assert load(folder).returncode == 0
    with (folder / "sums.c").open("a", encoding="utf-8") as source:
        source.write("/* changed */\n")
    os.utime(folder / "sums.c", (later, later))
    assert (
        f"ImportError: the compiled kernels of stiefelsync are older than their sources: {remedy}"
        in load(folder).stderr
    )
    for path in folder.glob("*.[ch]"):
        path.unlink()
    assert load(folder).returncode == 0  # an installed package has no sources
    file.write_bytes(b"no library")
    assert "cannot be used here" in load(folder).stderr
    file.unlink()
    assert (
        "ImportError: the compiled kernels of stiefelsync are missing:"
        " install them with 'pip install --force-reinstall --no-deps stiefelsync'"
    ) in load(folder).stderr
