"""Bad input ends with exit code 2, a message that says what to do, no traceback, and nothing written."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from stiefelsync import Matchings, io

HEADER = "object_a,point_a,object_b,point_b"


def csv(text: str, header: str = HEADER):
    return lambda path: (path / "bad.csv").write_text(f"{header}\n{text}\n")


def arrays(name: str = "bad.npz", **given: object):
    """Write the arrays of a sound two-object problem, some replaced (or left out when None)."""

    def write(path: Path) -> None:
        sound = {
            "sizes": np.array([2, 2]), "pair_objects": np.array([[0, 1]]), "pair_start": np.array([0, 2]),
            "indices": np.array([[0, 0], [1, 1]]),
        }  # fmt: skip
        merged = {key: value for key, value in {**sound, **given}.items() if value is not None}
        np.savez(path / name, **{key: np.asarray(value) for key, value in merged.items()})

    return write


def matrix(W: object, sizes: object):
    return lambda path: np.savez(path / "bad.npz", W=np.asarray(W), sizes=np.asarray(sizes))


def truncated(path: Path) -> None:
    arrays()(path)
    whole = (path / "bad.npz").read_bytes()
    (path / "bad.npz").write_bytes(whole[: len(whole) * 2 // 3])


def pickled(path: Path) -> None:
    np.savez(path / "bad.npz", sizes=np.array([{"a": 1}, None], dtype=object))


BAD_FILES = {
    "unknown object": (arrays(pair_objects=[[0, 7]]), "unknown object 7; there are 2 objects"),
    "index out of range": (arrays(indices=[[0, 0], [1, 5]]), "point 5 of object 1 does not exist"),
    "negative index": (arrays(indices=[[0, 0], [-1, 1]]), "point -1 of object 0 does not exist"),
    "duplicate": (arrays(indices=[[0, 0], [0, 0]]), "is given twice"),
    "one to many": (arrays(indices=[[0, 0], [0, 1]]), "matched to more than one point of object 1"),
    "object with itself": (arrays(pair_objects=[[1, 1]]), "matches object 1 with itself"),
    "asymmetric matrix": (matrix([[1, 1], [0, 1]], [1, 1]), "must be symmetric"),
    "matrix not binary": (matrix([[1, 2], [2, 1]], [1, 1]), "must be binary, found 2"),
    "matrix not square": (matrix(np.ones((2, 3)), [1, 1]), "must be square"),
    "sizes do not add up": (matrix(np.eye(3), [1, 1]), "sizes add up to 2 points but the matrix has 3 rows"),
    "negative size": (arrays(sizes=[-1, 2]), "object 0 has negative size"),
    "NaN weight": (arrays(weights=[1.0, np.nan]), "every weight must be a finite number"),
    "zero weight": (arrays(weights=[1.0, 0.0]), "weights must be positive"),
    "arrays that contradict": (arrays(pair_start=[0, 3]), "contradicts itself"),
    "no sizes": (arrays(sizes=None), "sizes"),
    "truncated NPZ": (truncated, "was it cut short?"),
    "NPZ of pickles": (pickled, "pickled Python objects, which could run code"),
    "CSV line with a word": (csv("a,0,b,1\na,x,b,2"), "line 3"),
    "CSV line too short": (csv("a,0,b,1\na,1,b,2\na,1"), "line 4"),
    "CSV negative": (csv("a,0,b,-1"), "line 2"),
    "CSV weight NaN": (csv("a,0,b,1,nan", HEADER + ",weight"), "nan"),
    "CSV empty": (lambda path: (path / "bad.csv").write_text(""), "empty"),
    "unknown content": (lambda path: (path / "bad.xyz").write_bytes(bytes(range(256))), "none of the known formats"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(run, tmp_path, name):
    write, message = BAD_FILES[name]
    write(tmp_path)
    (bad,) = tmp_path.iterdir()
    before = bad.read_bytes()
    for arguments in (["sync", bad, "-o", tmp_path / "out.npz"], ["convert", bad, tmp_path / "out.npz"]):
        assert message in run(*arguments, code=2).stderr
    for verb in ("inspect", "compare"):
        assert message in run(verb, bad, code=2).stderr
    assert [*tmp_path.iterdir()] == [bad]
    assert bad.read_bytes() == before


def saved(path: Path, matchings: Matchings) -> Path:
    io.write(matchings, path / "input.npz")
    return path / "input.npz"


BAD_PROBLEMS = {
    "no matches": (Matchings.from_pairs({}, [2, 2]), "the problem is empty: there are no matches"),
    "no objects": (Matchings.from_pairs({}, []), "at least two objects, got 0"),
    "one object": (Matchings.from_pairs({}, [5]), "at least two objects, got 1"),
}


@pytest.mark.parametrize("name", BAD_PROBLEMS)
def test_bad_problems(run, tmp_path, name):
    matchings, message = BAD_PROBLEMS[name]
    source = saved(tmp_path, matchings)
    assert message in run("sync", source, "-o", tmp_path / "out.npz", code=2).stderr
    assert message in run("compare", source, "--methods", "union-find", code=2).stderr
    assert [*tmp_path.iterdir()] == [source]


BAD_OPTIONS = {
    "universe too small": (["--universe", "3"], "a universe of 3 points is smaller than object"),
    "universe no number": (["--universe", "many"], "--universe must be a whole number or auto, got 'many'"),
    "universe not used": (["--method", "tracks", "--universe", "40"], "'tracks' finds the size of the universe itself"),
    "option of another method": (
        ["--option", "copies=0"],
        "'copies' is an option of method tracks; choose --method tracks for it",
    ),
    "unknown method": (["--method", "fastt"], "unknown method 'fastt'; did you mean 'fast'?"),
    "unknown format": (["--format", "npy"], "unknown format 'npy'; did you mean 'npz'?"),
    "unknown option": (["--option", "nonsense=1"], "unknown option 'nonsense'"),
    "unknown precision": (["--method", "spectral", "--option", "dtype=float16"], "unknown dtype 'float16'"),
    "option without a value": (["--option", "tol"], "write --option tol=VALUE"),
    "picture of unknown kind": (["--plot", "picture.bmp"], "must end in .png, .pdf or .svg"),
    "option misspelt": (["--option", "weightd=true"], "unknown option 'weightd'; did you mean 'weighted'?"),
    "images without a report": (["--images", "."], "none is wanted; name it with --report"),
    "negative seed": (["--seed", "-1"], "error: invalid value for '--seed'"),
    "unknown flag": (["--metod", "fast"], "error: unknown option --metod; did you mean --method?\n"),
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(run, problem, tmp_path, name):
    options, message = BAD_OPTIONS[name]
    assert message in run("sync", problem, "-o", tmp_path / "out.npz", *options, code=2).stderr
    assert [*tmp_path.iterdir()] == [problem]


def test_output_equal_to_input(run, problem, tmp_path):
    before = problem.read_bytes()
    link = tmp_path / "link.npz"
    link.symlink_to(problem)
    for output in (problem, tmp_path / "." / "problem.npz", link):
        assert "is the input itself, which is never modified" in run("sync", problem, "-o", output, code=2).stderr
        assert "is the input itself" in run("convert", problem, output, code=2).stderr
    assert problem.read_bytes() == before


def test_unwritable_output_is_found_before_the_work(run, problem, tmp_path, monkeypatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("worked before looking at the output")

    monkeypatch.setattr("stiefelsync.cleaning.synchronise", never)
    (tmp_path / "folder").mkdir()
    cases = {
        tmp_path / "folder": "is a folder; name a file to write",
        tmp_path / "absent" / "out.npz": "does not exist; make it first",
        problem / "out.npz": "does not exist; make it first",
        tmp_path / "out.unknown": "tells no format",
    }
    for output, message in cases.items():
        assert message in run("sync", problem, "-o", output, code=2).stderr
    assert "named as output twice" in run(
        "sync", problem, "-o", tmp_path / "a.png", "--plot", tmp_path / "a.png", code=2
    ).stderr  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"problem.npz", "folder"}


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_folder_without_permission(run, problem, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    assert "is not writable" in run("sync", problem, "-o", closed / "out.npz", code=2).stderr


def test_disk_full_leaves_nothing_behind(run, problem, tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    result = run("sync", problem, "-o", tmp_path / "out.npz", "--method", "union-find", code=2)
    assert "No space left on device; nothing was written" in result.stderr
    assert [*tmp_path.iterdir()] == [problem]


def test_missing_input(run, tmp_path):
    for arguments in (["sync", "-o", tmp_path / "out.npz"], ["inspect"], ["compare"]):
        verb, *rest = arguments
        assert "does not exist" in run(verb, tmp_path / "absent.npz", *rest, code=2).stderr
    assert str(tmp_path) in run("inspect", tmp_path, code=2).stderr


def test_bad_numbers_for_synth_and_compare(run, problem, tmp_path):
    out = tmp_path / "out.npz"
    assert "observed must be above 0" in run("synth", out, "--observed", 0, code=2).stderr
    assert "error must be between 0 and 1" in run("synth", out, "--error", 2, code=2).stderr
    assert "unknown noise 'rows'; did you mean 'row'?" in run("synth", out, "--noise", "rows", code=2).stderr
    assert "no method is named" in run("compare", problem, "--methods", ",", code=2).stderr
    assert "write fast:option=value" in run("compare", problem, "--methods", "fast:tol", code=2).stderr
    assert "did you mean 'fast'" in run("compare", problem, "--methods", "union-find,fats", code=2).stderr
    assert [*tmp_path.iterdir()] == [problem]


def test_truth_of_another_problem(run, problem, tmp_path):
    other = tmp_path / "other.npz"
    io.write(Matchings.from_labels([0, 0], [1, 1]), other)
    message = run("compare", problem, "--methods", "union-find", "--truth", other, code=2).stderr
    assert "both must describe the same points" in message


def test_a_scipy_matrix_without_sizes_names_what_is_missing(run, tmp_path):
    sparse.save_npz(tmp_path / "W.npz", sparse.csr_array(np.eye(3)))
    assert "sizes" in run("inspect", tmp_path / "W.npz", code=2).stderr


def test_pickle_is_never_loaded(run, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Path(tmp_path / "boom").touch, ())

    np.savez(tmp_path / "bomb.npz", sizes=np.array([Bomb()], dtype=object))
    with (tmp_path / "bomb.pkl").open("wb") as file:
        pickle.dump(Bomb(), file)
    for name in ("bomb.npz", "bomb.pkl"):
        run("inspect", tmp_path / name, code=2)
    assert not (tmp_path / "boom").exists()


def test_real_process_exit_code_and_no_traceback(tmp_path):
    truncated(tmp_path)
    program = Path(sys.executable).with_name("stiefelsync")
    done = subprocess.run([program, "inspect", tmp_path / "bad.npz"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_interrupt_writes_nothing(run, problem, tmp_path, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stiefelsync.cleaning.synchronise", interrupted)
    assert "interrupted: the work ended early" in run("sync", problem, "-o", tmp_path / "out.npz", code=130).stderr
    assert [*tmp_path.iterdir()] == [problem]
