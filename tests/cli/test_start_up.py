"""The version is told at once: without NumPy, SciPy or Typer."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stiefelsync
from stiefelsync import _start


def test_the_version_needs_no_library():
    program = (
        "import sys; from stiefelsync._start import main; sys.argv[1:] = ['--version']; main();"
        "print(*sorted({'numpy', 'scipy', 'typer', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, *_, modules = done.stdout.splitlines()
    assert first == f"stiefelsync {stiefelsync.__version__}"
    assert modules == ""


def test_without_kernels_the_version_says_so(monkeypatch):
    message = "the compiled kernels of stiefelsync are missing: install them"

    def missing():
        raise ImportError(message)

    monkeypatch.setattr(_start, "about", missing)
    expected = f"stiefelsync {stiefelsync.__version__}\nkernels none: {message}"
    assert _start.version() == expected


def test_all_else_is_for_the_command_line():
    program = "import sys; from stiefelsync._start import main; sys.argv[1:] = ['methods', '--json']; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "accurate" in done.stdout


def test_no_command_waits_for_what_others_need():
    program = (
        "import sys, stiefelsync.cli.app; print(*(name for name in sys.modules if name.startswith('stiefelsync.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"stiefelsync.datasets", "stiefelsync.experiments"} & set(done.stdout.split())


def test_arrow_does_not_bring_pandas_along(tmp_path):
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    (tmp_path / "a.csv").write_text("id1,id2,score\nx,y,0.9\ny,z,0.8\n")
    program = (
        "import sys; from stiefelsync._start import main\n"
        "sys.argv[1:] = ['sync', 'a.csv', '-o', 'b.parquet']\n"
        "try: main()\n"
        "finally: assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.parquet").exists()
