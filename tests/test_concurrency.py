"""Processes and threads after the package was used, other interpreters, and numbers of other libraries."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, clean, datasets, io, synchronise

PROBLEM, TRUTH = datasets.scene(120, 12, 60, 80, 0.1, 0.3, rng=0)
METHODS = ("accurate", "tracks")


PROGRAM = """
import multiprocessing, sys
import numpy as np
from stiefelsync import datasets, synchronise

METHODS = "accurate", "tracks"

def solve(method):
    return synchronise(datasets.scene(120, 12, 60, 80, 0.1, 0.3, rng=0)[0], method=method).labels

if __name__ == "__main__":
    expected = [solve(method) for method in METHODS]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        found = pool.map(solve, METHODS)
    assert all(map(np.array_equal, found, expected))
"""


def solve(method: str) -> np.ndarray:
    return synchronise(PROBLEM, method=method).labels


@pytest.mark.parametrize("how", multiprocessing.get_all_start_methods())
def test_processes_started_after_use_give_the_same_answer(how, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-W", "ignore", str(tmp_path / "program.py"), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_is_busy():
    expected, stop = solve("tracks"), threading.Event()

    def spin() -> None:
        while not stop.is_set():
            solve("tracks")

    busy = threading.Thread(target=spin)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                code = 1
                try:
                    import signal

                    signal.alarm(60)  # a lock that nobody gives back would never end
                    code = int(not np.array_equal(solve("tracks"), expected))
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        busy.join()


def test_answers_from_many_threads_are_the_same():
    expected = {method: solve(method) for method in METHODS}
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(solve, METHODS * 6))
    for labels, method in zip(found, METHODS * 6, strict=True):
        np.testing.assert_array_equal(labels, expected[method])


def test_files_cleaned_in_threads(tmp_path):
    io.write(PROBLEM, tmp_path / "a.csv")
    clean(tmp_path / "a.csv", tmp_path / "alone.csv", method="tracks")
    expected = (tmp_path / "alone.csv").read_bytes()
    with ThreadPoolExecutor(6) as pool:
        runs = [pool.submit(clean, tmp_path / "a.csv", tmp_path / f"b{n}.csv", method="tracks") for n in range(6)]
        # And all to one file, which one of them may write.
        same = [pool.submit(clean, tmp_path / "a.csv", tmp_path / "one.csv", method="tracks") for _ in range(6)]
    assert [run.exception() for run in runs] == [None] * 6
    failed = [run.exception() for run in same if run.exception() is not None]
    assert len(failed) == 5
    assert all(isinstance(error, InputError) and "is there already" in str(error) for error in failed)
    for name in ("one.csv", *(f"b{n}.csv" for n in range(6))):
        assert (tmp_path / name).read_bytes() == expected
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


INTERPRETERS = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import numpy as np
from stiefelsync import Matchings, synchronise
problem = Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]], (1, 2): [[0, 0], [1, 1]]}, [2, 2, 2])
before = synchronise(problem).labels
one = interpreters.create()
code = '''
try:
    import stiefelsync
    from stiefelsync import Matchings, synchronise
    synchronise(Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 1]), method="tracks")
except ImportError as error:
    print("ImportError", error)
else:
    print("works")
'''
failed = getattr(interpreters, "run_string")(one, code)
assert failed is None, failed
interpreters.destroy(one)
np.testing.assert_array_equal(synchronise(problem).labels, before)
print("goes on")
"""


def test_another_interpreter_does_no_harm(tmp_path):
    """NumPy refuses to be loaded twice; that is an ImportError, and the first interpreter goes on."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            __import__(name)
        except ImportError:
            continue
        break
    else:
        pytest.skip("this Python has one interpreter")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", INTERPRETERS], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].startswith(("ImportError", "works"))
    assert said[-1] == "goes on"


def test_tensors_are_taken_as_arrays():
    torch = pytest.importorskip("torch")
    W, sizes = PROBLEM.to_matrix().toarray(), PROBLEM.sizes
    assert Matchings.from_matrix(torch.from_numpy(W.copy()), torch.from_numpy(sizes.copy())) == Matchings.from_matrix(
        W, sizes
    )
    labels = torch.from_numpy(TRUTH.copy())
    assert Matchings.from_labels(labels, sizes) == Matchings.from_labels(TRUTH, sizes)
    pairs = {pair: torch.from_numpy(rows.astype(np.int64)) for pair, rows in PROBLEM.pairs().items()}
    assert Matchings.from_pairs(pairs, sizes) == Matchings.from_pairs(PROBLEM.pairs(), sizes)
    # One that cannot be turned into an array says so.
    with pytest.raises(InputError):
        Matchings.from_matrix(torch.from_numpy(W.copy()).double().requires_grad_(), sizes)


# ---------------------------------------------------------------- other systems, as far as they can be seen from here

WITHOUT = """
import sys
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
import os
for name in ("fork", "getuid", "register_at_fork"):
    if hasattr(os, name):
        delattr(os, name)
import warnings
from stiefelsync.cli import main
main()
"""


def test_what_only_posix_has_is_not_needed(tmp_path):
    """Windows has no fork and no fcntl; and a file opened without an encoding is read differently there."""
    io.write(PROBLEM, tmp_path / "a.csv")
    for arguments in (
        ["inspect", "a.csv"],
        ["sync", "a.csv", "-o", "b.csv", "--quiet"],
        ["convert", "b.csv", "c.npz"],
        ["compare", "a.csv", "--methods", "tracks"],
    ):
        command = [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-c", WITHOUT]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert done.returncode == 0, (arguments, done.stderr)
    clean(tmp_path / "a.csv", tmp_path / "here.csv")
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
def test_line_ends_of_other_systems_are_read(tmp_path, ends):
    io.write(PROBLEM, tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes((tmp_path / "a.csv").read_bytes().replace(b"\n", ends))
    assert io.read(tmp_path / "b.csv") == io.read(tmp_path / "a.csv")
    assert b"\r" not in (tmp_path / "a.csv").read_bytes()


def test_no_file_of_the_sources_has_a_name_that_some_system_refuses():
    root = Path(__file__).parents[1]
    names = [path.relative_to(root) for folder in ("src", "tests", "fuzz") for path in (root / folder).rglob("*.*")]
    kept = [path for path in names if "__pycache__" not in path.parts]
    assert len({str(path).lower() for path in kept}) == len(kept)
    reserved = {"con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))}
    assert not [
        path for path in kept if path.name.partition(".")[0].lower() in reserved or set(path.name) & set('<>:"|?*')
    ]
