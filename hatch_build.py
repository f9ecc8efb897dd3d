"""Compile the kernels: part of every build; ``python hatch_build.py`` puts them beside the sources.

The system's C compiler does it, CC first. Where there is none a build asks for the Python package
``ziglang``, which brings one.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "src" / "stiefelsync" / "_core"
# No contraction and no reordering: results must not depend on the processor. No errno: many roots
# at a time.
EXACT = ["-ffp-contract=off", "-fno-math-errno"]
FLAGS = ["-O3", "-std=c11", *EXACT, "-fvisibility=hidden", "-shared", "-Wall", "-Wextra"]
# Left to itself zig compiles for the very processor that it runs on.
ZIG, ZIG_FLAGS = [sys.executable, "-m", "ziglang", "cc"], ["-mcpu=baseline", "-s"]


def system_compilers() -> list[list[str]]:
    """Return the commands of the C compilers to try, the one asked for first."""
    asked = [shlex.split(command) for command in (os.environ.get("CC", ""), "cc", "gcc", "clang")]
    return [command for command in asked if command and shutil.which(command[0])]


def compilers() -> list[tuple[list[str], list[str]]]:
    """Return the commands to try and the flags of each.

    That of ``ziglang`` is the last, if it is installed.
    """
    found = [(command, ZIG_FLAGS if "ziglang" in command else system_flags()) for command in system_compilers()]
    return [*found, (ZIG, ZIG_FLAGS)] if importlib.util.find_spec("ziglang") else found


def system_flags() -> list[str]:
    """Return what the compilers of this system want to be told."""
    if sys.platform == "darwin":
        both = sysconfig.get_platform().endswith("universal2")
        return shlex.split(os.environ.get("ARCHFLAGS", "-arch arm64 -arch x86_64" if both else ""))
    return ["-static-libgcc"] if sys.platform == "win32" else ["-fPIC"]


def compile_kernels(library: Path, *flags: str) -> list[str]:
    """Compile the C sources into a library and return the command that did it.

    The library appears whole or not at all, so that a program that starts meanwhile finds the old
    one or the new one.
    """
    made_of = runpy.run_path(str(FOLDER / "library.py"))["fingerprint"]()
    sources = sorted(str(path) for path in FOLDER.glob("*.c"))
    errors = []
    for command, own in compilers():
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            made = Path(scratch) / library.name
            call = [*command, *FLAGS, *flags, f'-DFINGERPRINT="{made_of}"', *sources, "-o", str(made), *own, "-lm"]
            done = subprocess.run(call, capture_output=True, text=True)
            if done.returncode == 0:
                made.replace(library)
                return command
            errors.append(f"{shlex.join(command)}: {done.stderr.strip()}")
    raise RuntimeError(
        "the kernels were not compiled: " + ("; ".join(errors) or "there is no C compiler")
        + "; install one, name one that works as CC, or 'pip install ziglang'"
    )  # fmt: skip


def compile_beside_sources() -> Path:
    """Compile the library of a checkout, unless it is up to date, and return where it is."""
    told = runpy.run_path(str(FOLDER / "library.py"))
    library: Path = told["FILE"]
    if library.exists() and told["fingerprint"]().encode() in library.read_bytes():
        library.touch()  # newer than its sources, which are what it was made of
    else:
        compile_kernels(library)
    return library


def platform_tag(command: list[str]) -> str:
    """Return the platform that a wheel with the kernels that a command compiled is for."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("universal2", platform.machine()) if "ziglang" in command else tag


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run on its own
    pass
else:

    class CompiledKernels(BuildHookInterface[Any]):
        """The step of a build: one wheel per system, for all versions of Python."""

        PLUGIN_NAME = "custom"

        def dependencies(self) -> list[str]:
            """Return what the build needs besides: a compiler, where the system has none."""
            return [] if system_compilers() else ["ziglang>=0.13"]

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, into the wheel; or beside the sources, where these are what is installed."""
            self.scratch = tempfile.TemporaryDirectory()
            if version == "editable":
                compile_beside_sources()
                return
            library = Path(self.scratch.name) / runpy.run_path(str(FOLDER / "library.py"))["FILE"].name
            command = compile_kernels(library)
            build_data["force_include"][str(library)] = f"stiefelsync/_core/{library.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(command)}"

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Leave nothing behind."""
            self.scratch.cleanup()


if __name__ == "__main__":
    print(compile_beside_sources())
