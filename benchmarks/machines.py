"""The same tests and the same labels on other processors: OpenBLAS imitates them on this one.

    python -m benchmarks.machines                      # the numerical tests, a few minutes: `make test-cpus`
    python -m benchmarks.machines --everything         # the whole suite, hours: `make test-everywhere`
    python -m benchmarks.machines --labels --seeds 5   # accurate, fast, tracks on the accuracy suite
    python -m benchmarks.machines --labels --few 700 715   # on three, four and five objects, seeds 700 to 714

One run per kind of processor and number of BLAS threads, each in a process of its own. OpenBLAS picks its kernels when
it is loaded and takes the environment variable OPENBLAS_CORETYPE for the processor there is; every kernel adds numbers
in another order. NumPy's own loops are told by NPY_DISABLE_CPU_FEATURES what such a processor lacks. A
table is printed as Markdown; the exit code is 1 if a run failed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
Answer: TypeAlias = tuple[str, int, str, list[int]]  # setting, seed, method, labels
# What a kernel needs of the processor, by the name that Linux has for it.
NEEDS = {"Haswell": "avx2", "SkylakeX": "avx512f", "Sandybridge": "avx", "Nehalem": "sse4_2", "Zen": "avx2"}
# The builds of OpenBLAS that NumPy and SciPy ship have no kernels of their own for Zen and use Haswell's.
SERVED_BY = {"Zen": {"Zen", "Haswell"}}
# What such a processor lacks, by the beginnings of NumPy's names: every found one begins with "".
LACKS = {"Haswell": ("AVX512", "X86_V4"), "SkylakeX": (), "Sandybridge": "", "Nehalem": "", "Zen": ("AVX512", "X86_V4")}
THREADS = (1, 2)
METHODS = ("accurate", "fast", "tracks")
# Where few matches say anything, and much is equal: noise, k, d, ρ, σ. The universe is estimated.
FEW = ("row 3 25 .8 .3", "row 4 25 .7 .4", "row 5 25 .6 .5")
# The tests whose outcome hangs on floating-point arithmetic; chosen so that ten runs take a few minutes on two cores.
# Examples other than the README's, and tests of memory, add time rather than arithmetic.
NUMERICAL = [
    "tests/stiefel", "tests/sync/test_literal.py", "tests/sync/test_outcome.py", "tests/sync/test_synchronise.py",
    "tests/test_examples.py", "src/stiefelsync/stiefel", "-m", "not data and not slow",
    "-k", "not example_runs and not within_memory and not mypy",
]  # fmt: skip


def kinds() -> list[str]:
    """Return the kinds of processor that this one can imitate; none where it is not an x86 under Linux."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return []
    return [kind for kind, flag in NEEDS.items() if flag in flags]


def environment(kind: str, threads: int) -> dict[str, str]:
    """Return the variables under which a process computes as on that processor."""
    return {
        **os.environ, "OPENBLAS_CORETYPE": kind, "NPY_DISABLE_CPU_FEATURES": " ".join(absent(kind)),
        "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads),
    }  # fmt: skip


def absent(kind: str) -> list[str]:
    """Return what NumPy's own loops (sums, exp, log) use of this processor and a processor of that kind lacks."""
    import numpy as np

    if os.environ.get("NPY_DISABLE_CPU_FEATURES"):
        return os.environ["NPY_DISABLE_CPU_FEATURES"].split()
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return [feature for feature in found if feature.startswith(LACKS[kind])]


def kernels() -> set[str]:
    """Return the kernels that the loaded copies of OpenBLAS really use: NumPy and SciPy bring one each."""
    import scipy.linalg  # noqa: F401  loads its BLAS

    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    found = set()
    for path in {line.split()[-1] for line in maps if "openblas" in line}:
        library = ctypes.CDLL(path)
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename64_"):
            if function := getattr(library, name, None):
                function.restype = ctypes.c_char_p
                found.add(function().decode())
    return found


def labels(seeds: Iterable[int], few: bool) -> Iterator[Answer]:
    """Yield setting, seed, method and labels for every synthetic setting of the accuracy suite, or for few objects."""
    from benchmarks.accuracy import SYNTHETIC, instance
    from stiefelsync import synchronise

    for setting, seed in product(FEW if few else SYNTHETIC, seeds):
        problem, _, d = instance(setting, seed)
        for method in METHODS:
            found = synchronise(problem, "auto" if few else d, method=method, rng=seed)
            yield setting, seed, method, found.labels.tolist()


def labels_on(kind: str, threads: int, seeds: range, *, few: bool = False) -> list[Answer]:
    """Return :func:`labels` as a processor of that kind finds them."""
    which = ["--few" if few else "--suite", str(seeds.start), str(seeds.stop)]
    command = [sys.executable, "-m", "benchmarks.machines", "--print-labels", *which]
    done = subprocess.run(command, cwd=ROOT, env=environment(kind, threads), capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    if not set(told["kernels"]) <= SERVED_BY.get(kind, {kind}):
        raise RuntimeError(f"asked for the kernels of {kind}, OpenBLAS uses those of {told['kernels']}")
    return [tuple(line) for line in told["labels"]]


def differences(mine: list[Answer], theirs: list[Answer]) -> list[dict[str, Any]]:
    """Return where two lists of :func:`labels` differ, with what both reach as this process computes it."""
    import numpy as np

    from benchmarks.accuracy import instance
    from stiefelsync.matching.metrics import objective
    from stiefelsync.sync.likelihood.observations import observe
    from stiefelsync.sync.likelihood.state import State

    found = []
    for (setting, seed, method, first), (*_, second) in zip(mine, theirs, strict=True):
        if first == second:
            continue
        problem = instance(setting, seed)[0]
        seen, both = observe(problem), [np.array(answer) for answer in (first, second)]
        found.append({
            "setting": setting, "seed": seed, "method": method, "objective": [objective(a, problem) for a in both],
            "log_posterior": [State(seen, a, seed=0).log_posterior() for a in both],
        })  # fmt: skip
    return found


def run_tests(kind: str, threads: int, arguments: list[str], workers: int) -> tuple[bool, str, float]:
    """Run pytest as on that processor and return whether it passed, its last line, and seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "worksteal", *arguments]
    started = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment(kind, threads), capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], file=sys.stderr)
    last = done.stdout.strip().splitlines()[-1].strip("= ") if done.stdout.strip() else "no output"
    return done.returncode == 0, last.rsplit(" in ", 1)[0], time.perf_counter() - started


def _test_table(everything: bool) -> bool:
    arguments = [] if everything else NUMERICAL
    print("| processor | BLAS threads | tests | seconds |\n|---|---|---|---|", flush=True)
    fine = True
    for kind in kinds():
        for threads in THREADS:
            # Most tests are not bound by BLAS: a worker per core is the quickest, however many threads each may use.
            workers = os.cpu_count() or 1
            passed, line, seconds = run_tests(kind, threads, arguments, workers)
            print(f"| {kind} | {threads} | {line} | {seconds:.0f} |", flush=True)
            fine &= passed
    return fine


def _label_table(seeds: range, few: bool) -> bool:
    print("| processor | BLAS threads | answers | that differ from the first row's |\n|---|---|---|---|", flush=True)
    first: list[Answer] = []
    fine = True
    for kind in kinds():
        for threads in THREADS:
            found = labels_on(kind, threads, seeds, few=few)
            first = first or found
            other = differences(first, found)
            print(f"| {kind} | {threads} | {len(found)} | {other or 'none'} |", flush=True)
            fine &= not other
    return fine


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--everything", action="store_true", help="the whole suite")
    parser.add_argument("--labels", action="store_true", help="compare labels instead of running tests")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds of the accuracy suite, for --labels")
    parser.add_argument(
        "--few", type=int, nargs=2, metavar=("FIRST", "END"), help="problems of few objects instead, for --labels"
    )
    parser.add_argument("--suite", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--print-labels", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    few, seeds = options.few is not None, range(*(options.few or options.suite or (0, options.seeds)))
    if options.print_labels:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = list(labels(seeds, few))
        print(json.dumps({"kernels": sorted(kernels()), "labels": found}))
        return 0
    if not kinds():
        print("this machine cannot imitate other processors: that takes an x86 under Linux", file=sys.stderr)
        return 0
    return 0 if (_label_table(seeds, few) if options.labels else _test_table(options.everything)) else 1


if __name__ == "__main__":
    sys.exit(main())
