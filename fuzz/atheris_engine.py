"""The same targets under atheris (libFuzzer, led by coverage), where it is installed: ``make fuzz ENGINE=atheris``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz.targets import TARGETS

__all__ = ["fuzz"]

_DONE = re.compile(r"Done (\d+) runs")


def fuzz(name: str, seconds: float, first: int, keep: Path, most: int):  # type: ignore[no-untyped-def]
    """Run one target for so long; what libFuzzer finds is kept under its own names."""
    from fuzz.__main__ import HANG, Tally

    tally = Tally(name)
    keep.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, seed in enumerate(TARGETS[name].seeds(Path(folder))):
            (corpus / str(number)).write_bytes(seed)
        command = [
            sys.executable, "-m", "fuzz.atheris_engine", name, folder, str(corpus), f"-max_total_time={int(seconds)}",
            f"-timeout={int(HANG)}", "-rss_limit_mb=2048", f"-seed={first + 1}", f"-runs={most}",
            f"-artifact_prefix={keep}/{name}-",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    runs = _DONE.search(done.stderr)
    tally.outcomes["read" if runs else "bad"] += int(runs.group(1)) if runs else 1
    if done.returncode:
        tally.bad.append(done.stderr[-2000:])
    return tally


def main() -> None:
    """Be the process that libFuzzer drives."""
    import atheris

    with atheris.instrument_imports():
        from fuzz.child import read
    name, folder, *arguments = sys.argv[1:]
    path = Path(folder, f"case{TARGETS[name].suffix}")

    def one(data: bytes) -> None:
        TARGETS[name].place(path, data)
        outcome = read(name, path)
        if outcome not in ("accepted", "refused"):
            raise AssertionError(outcome)

    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
