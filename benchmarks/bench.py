"""All areas in one run, each as a ratio to a baseline beside it: ``python -m benchmarks.bench`` (``make bench``).

    python -m benchmarks.bench --areas presets product --output bench.json
    python -m benchmarks.bench --compare old.json new.json       # make bench-compare BASE=old.json or a commit

Every line has the ratio baseline / ours by the clock and in processor seconds, the best of several alternating runs,
and the quality of both; a line whose quality is below its baseline's ends the run with exit code 1. Above 1 is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import SEEDS, SUITE, instance
from benchmarks.baseline import algorithm1

ROOT = Path(__file__).parents[1]
FIGURE = [f"row {k} {d} {o} {e}" for k, d, o, e in (
    *((30, 25, 0.6, e / 10) for e in range(10)), *((30, 25, o / 10, 0.6) for o in (3, 4, 5, 8, 10)),
    *((k, 25, 0.6, 0.5) for k in (5, 10, 20, 50, 80)), *((30, d, 0.6, 0.5) for d in (10, 40, 60, 80)),
)]  # fmt: skip
Line = dict[str, Any]


def best(*calls: Callable[[], Any], repeats: int, slow: int = 0) -> list[tuple[float, float, Any]]:
    """Return the least seconds by clock and processor of every call, run in turn, and what it returned last.

    The first `slow` calls are run only once, so noise can make them look slower, by what other work costs a long run.
    """
    found: list[tuple[float, float, Any]] = [(np.inf, np.inf, None)] * len(calls)
    for again in range(repeats):
        for n, call in enumerate(calls):
            if again and n < slow:
                continue
            clock, processor = time.perf_counter(), time.process_time()
            value = call()
            took = time.perf_counter() - clock, time.process_time() - processor
            found[n] = min(found[n][0], took[0]), min(found[n][1], took[1]), value
    return found


def line(area: str, name: str, base: Any, ours: Any, quality: tuple[float, float] | None = None) -> Line:
    """Return one line of the table from two entries of :func:`best`, and the quality of baseline and ours."""
    good = quality is None or bool(quality[1] >= quality[0] - 1e-3)
    return {
        "area": area, "name": name, "seconds": list(ours[:2]), "ratio": [base[0] / ours[0], base[1] / ours[1]],
        "quality": quality and list(quality), "good": good,
    }  # fmt: skip


def _plain(problem: Any, d: int) -> Any:
    """Return the labels of Algorithm 1 in plain NumPy, projected."""
    from stiefelsync.sync.rounding import project

    return project(algorithm1(problem.to_matrix(), d, np.random.default_rng(0))[0], problem.sizes)


def _labels(*problem: Any, **options: Any) -> Any:
    from stiefelsync import synchronise

    return synchronise(*problem, **options).labels


def _against(setting: str, seed: int, repeats: int, methods: tuple[str, ...], slow: int = 0) -> dict[str, Any]:
    from stiefelsync import score

    problem, truth, d = instance(setting, seed)
    calls = [
        partial(_plain, problem, d) if m == "plain" else partial(_labels, problem, d, method=m, rng=seed)
        for m in methods
    ]
    found = best(*calls, repeats=repeats, slow=slow)
    return {m: (*entry[:2], score(entry[2], truth).fscore) for m, entry in zip(methods, found, strict=True)}


def presets(repeats: int, cases: tuple[str, ...]) -> Iterator[Line]:
    """Presets against Algorithm 1 in plain NumPy."""
    for setting in cases:
        slow = not setting.startswith("house")  # half a minute for the baseline, or a quarter of an hour
        found = _against(setting, 0, repeats, ("plain", "fast", "accurate"), slow=int(slow))
        for m in ("fast", "accurate"):
            yield line("presets", f"{m}, {setting}", found["plain"], found[m], (found["plain"][2], found[m][2]))


def suite(repeats: int) -> Iterator[Line]:
    """Median over the 125 instances of the suite."""
    runs = [_against(s, seed, repeats, ("plain", "fast", "accurate")) for s in SUITE for seed in SEEDS]
    for m in ("fast", "accurate"):
        middle = [float(np.median([run["plain"][i] / run[m][i] for run in runs])) for i in (0, 1)]
        took = [float(np.median([run[m][i] for run in runs])) for i in (0, 1)]
        f = [float(np.mean([run[who][2] for run in runs])) for who in ("plain", m)]
        yield line("suite", f"{m}, median", (took[0] * middle[0], took[1] * middle[1]), took, (f[0], f[1]))


def figure(repeats: int) -> Iterator[Line]:
    """The quick preset against `spectral` at all settings of the figure of the synthetic experiments.

    Every line is about five seeds, since one decides nothing: their seconds added up, and their mean quality.
    """
    for setting in FIGURE:
        runs = [_against(setting, seed, repeats, ("spectral", "fast")) for seed in SEEDS]
        base, ours = ([sum(run[m][i] for run in runs) for i in range(3)] for m in ("spectral", "fast"))
        quality = base[2] / len(runs), ours[2] / len(runs)
        yield line("figure", f"fast for spectral, {setting}", base, ours, quality)


def product(repeats: int) -> Iterator[Line]:
    """The sparse product against its roofline: what it gathers over the bandwidth for an array like U, or GEMM."""
    from stiefelsync.stiefel.product import sparse_product

    problem, _, d = instance("row 100 150 1 .8", 0)
    W = problem.to_matrix().astype(np.float32)
    U = np.random.default_rng(0).standard_normal((W.shape[0], d), dtype=np.float32)
    square, flat = np.ones((1024, 1024), np.float32), U.ravel()
    multiply = sparse_product(W)
    multiply(U)
    gemm, stream, ours, scipy_ = best(
        lambda: square @ square, lambda: flat @ flat, lambda: multiply(U), lambda: W @ U, repeats=repeats
    )
    roof = [max(2 * W.nnz * d / (2 * 1024**3 / gemm[i]), W.nnz * d * 4 / (flat.nbytes / stream[i])) for i in (0, 1)]
    yield line("product", "roofline over product", (*roof, None), ours)
    yield line("product", "SciPy over product", scipy_, ours)


def _processes(repeats: int, *codes: str) -> list[tuple[float, float, None]]:
    """Return the least seconds, by clock and processor, of programs run in turn in processes of their own."""
    import resource

    least = [[np.inf, np.inf] for _ in codes]
    for _ in range(repeats):
        for found, code in zip(least, codes, strict=True):
            before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            found[:] = min(found[0], time.perf_counter() - clock), min(found[1], took)
    return [(clock, processor, None) for clock, processor in least]


def _command(*arguments: str) -> str:
    return f"import sys; from stiefelsync._start import main; sys.argv[1:] = {list(arguments)!r}; main()"


def start_up(repeats: int) -> Iterator[Line]:
    """Imports and ``--version`` against ``import numpy, scipy.sparse``, in processes of their own."""
    names = "import stiefelsync", "stiefelsync --version"
    base, *ours = _processes(repeats, "import numpy, scipy.sparse", names[0], _command("--version"))
    for name, entry in zip(names, ours, strict=True):
        yield line("start-up", name, base, entry)


def sceaux(repeats: int) -> Iterator[Line]:
    """``sync`` of a COLMAP database against reading and writing it alone; both with their start-up."""
    if "STIEFELSYNC_DATA" not in os.environ:
        print("sceaux needs STIEFELSYNC_DATA, the folder with sceaux/database.db", file=sys.stderr)
        return
    database = str(Path(os.environ["STIEFELSYNC_DATA"]) / "sceaux" / "database.db")
    with tempfile.TemporaryDirectory() as folder:
        copy, clean = (str(Path(folder) / name) for name in ("copy.db", "clean.db"))
        plain = f"io.write(io.read({database!r}), {copy!r}, like={database!r}, force=True)"
        base, ours = _processes(
            repeats, f"from stiefelsync import io; {plain}", _command("sync", database, "-o", clean, "--force")
        )
    yield line("sceaux", "read and write over sync", base, ours)


def formats(repeats: int) -> Iterator[Line]:
    """Writing and reading 200,000 matches against NumPy's own save and load of them."""
    from stiefelsync import datasets, io

    problem, _ = datasets.synthetic(100, 70, 1.0, 0.3, rng=0)
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("npz", "csv"):
            path = Path(folder) / f"problem.{ending}"
            plain = path.with_suffix(".npy")
            for name, base, ours in (
                (
                    "write",
                    lambda p=plain: np.save(p, problem.endpoints),
                    lambda p=path: io.write(problem, p, force=True),
                ),
                ("read", lambda p=plain: np.load(p), lambda p=path: io.read(p)),
            ):
                yield line("formats", f"{name} {ending}", *best(base, ours, repeats=repeats))


def tracks(repeats: int) -> Iterator[Line]:
    """What ``benchmarks.large`` says, run on its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json"
        done = subprocess.run([sys.executable, "-m", "benchmarks.large", "--quick", "--json", str(path)], cwd=ROOT)
        found = json.loads(path.read_text()) if path.exists() else {}
    for name, figures in found.items():
        yield {"area": "tracks", "name": name, "figures": figures, "good": done.returncode == 0}


HOUSE, MIDDLE, LARGE = "house 111 30 1 0", "row 100 150 1 .8", "row 200 300 1 .8"
AREAS: dict[str, Callable[[int], Iterator[Line]]] = {
    "presets": partial(presets, cases=(HOUSE, MIDDLE)), "large": partial(presets, cases=(LARGE,)), "suite": suite,
    "figure": figure, "product": product, "tracks": tracks, "formats": formats, "start-up": start_up,
    "sceaux": sceaux,
}  # fmt: skip
USUAL = [name for name in AREAS if name != "large"]  # whose baseline takes a quarter of an hour


def show(entry: Line) -> str:
    """Return a line as text."""
    if "ratio" not in entry:
        return f"{entry['area']:9s} {entry['name']:40s} {entry['figures']}"
    quality = "" if entry["quality"] is None else " quality {:.4f} for {:.4f}".format(*reversed(entry["quality"]))
    clock, processor = entry["ratio"]
    ours = entry["seconds"]
    return (
        f"{entry['area']:9s} {entry['name']:40s} {clock:7.2f} (processor {processor:.2f}) in {ours[0]:.4f} s{quality}"
        + ("" if entry["good"] else "  TOO LOW")
    )


def compare(old: Path, new: Path) -> None:
    """Print how the ratios of two runs differ."""
    before = {(e["area"], e["name"]): e for e in json.loads(old.read_text())}
    for entry in json.loads(new.read_text()):
        was = before.get((entry["area"], entry["name"]))
        if was is not None and "ratio" in entry:
            change = [a / b for a, b in zip(entry["ratio"], was["ratio"], strict=True)]
            print(f"{entry['area']:9s} {entry['name']:40s} {change[0]:.2f}× by clock, {change[1]:.2f}× by processor")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--areas", nargs="+", choices=list(AREAS), default=USUAL)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    options = parser.parse_args()
    if options.compare:
        compare(*options.compare)
        return 0
    lines = []
    for area in options.areas:
        for entry in AREAS[area](options.repeats):
            lines.append(entry)
            print(show(entry), flush=True)
            if options.output:
                options.output.write_text(json.dumps(lines, indent=1))
    return 0 if all(entry["good"] for entry in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
