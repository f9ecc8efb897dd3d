"""The demo and the tests, with Python and pip and nothing else, on Linux, macOS and Windows.

    python run.py demo     # draws before and after into the folder out
    python run.py test     # all tests; more arguments go to pytest

Both install the package into ``.venv`` beside this file on first use, and again when its
requirements have changed. Nothing outside this folder is changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
EXTRAS = {"demo": "plot,report", "dev": "dev", "docs": "docs"}
# Parallel test workers each keep to one BLAS thread.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
NO_TORCH = "PyTorch's CPU build is not to be had here: its tests will be skipped"


def call(*arguments: str, check: bool = True) -> int:
    """Run the environment's Python and return its exit code; end with it if that is not 0."""
    environment = {**THREADS, **os.environ}
    environment.pop("PYTHONPATH", None)
    code = subprocess.run([str(PYTHON), *arguments], cwd=ROOT, env=environment).returncode
    if code and check:
        sys.exit(code)
    return code


def install(what: str) -> None:
    """Install the package with some of its extras, unless that was done since they changed."""
    stamp = VENV / f"{what}.stamp"
    made_of = [ROOT / "pyproject.toml", ROOT / ".ci" / "constraints.txt"]
    if stamp.exists() and all(stamp.stat().st_mtime >= path.stat().st_mtime for path in made_of):
        # The kernels may have changed since; without a system compiler pip brings one.
        if call("hatch_build.py", check=False):
            pip("-e", ".")
        return
    if not PYTHON.exists():
        print(f"installing into {VENV} (some minutes on first use)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    pip("-e", f".[{EXTRAS[what]}]")
    if what == "dev" and pip("-e", ".[torch]", check=False):
        print(NO_TORCH, flush=True)
    for done in {"dev": ("demo", "dev")}.get(what, (what,)):
        (VENV / f"{done}.stamp").touch()


def pip(*arguments: str, check: bool = True) -> int:
    """Install with the constraints of this checkout."""
    return call(
        *("-m", "pip", "install", "-q", "--disable-pip-version-check"),
        *("-c", ".ci/constraints.txt", *arguments),
        check=check,
    )


def main() -> None:
    """Do what the first argument says."""
    if sys.version_info < (3, 11):  # noqa: UP036 - who runs this may have an older one
        sys.exit(f"stiefelsync needs Python 3.11 or newer; this is {sys.version.split()[0]}")
    verb, *rest = sys.argv[1:] or ["--help"]
    if verb == "demo":
        install("demo")
        call("-m", "stiefelsync", "demo", "--force", "--output", "out", *rest)
    elif verb == "test":
        install("dev")
        call("-m", "pytest", "-n", "auto", "--dist", "worksteal", "-q", *rest)
    elif verb == "install" and rest and set(rest) <= EXTRAS.keys():
        for what in rest:
            install(what)
    else:
        sys.exit(__doc__ if verb in ("-h", "--help") else f"no verb {verb!r}: demo or test")


if __name__ == "__main__":
    main()
