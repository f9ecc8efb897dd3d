"""Compile the kernels with the system's C compiler: part of every build, and ``python hatch_build.py`` on its own.

Without a compiler the package is built without them and works as well, only slower. STIEFELSYNC_COMPILED=require makes
a failure an error, as releases want it; STIEFELSYNC_COMPILED=0 leaves the kernels out.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "src" / "stiefelsync" / "_kernels"
# No contraction and no reordering: results must not depend on the processor. No errno: many roots at a time.
EXACT = ["-ffp-contract=off", "-fno-math-errno"]
FLAGS = ["-O3", "-std=c11", *EXACT, "-fvisibility=hidden", "-shared", "-Wall", "-Wextra"]


def compilers() -> list[str]:
    """Return the C compilers to try, those asked for first."""
    asked = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    return [command for command in asked if command and shutil.which(shlex.split(command)[0])]


def system_flags() -> list[str]:
    """Return what this system wants to be told."""
    if sys.platform == "darwin":
        both = sysconfig.get_platform().endswith("universal2")
        return shlex.split(os.environ.get("ARCHFLAGS", "-arch arm64 -arch x86_64" if both else ""))
    return ["-static-libgcc"] if sys.platform == "win32" else ["-fPIC", "-lm"]


def compile_kernels(folder: Path = FOLDER) -> Path | None:
    """Compile the C sources of a folder into the library beside them, unless it is up to date; None without a compiler.

    The library appears whole or not at all, so that a program that starts meanwhile finds the old one or the new one.
    """
    found = runpy.run_path(str(folder / "library.py"))
    library: Path = found["FILE"]
    asked = os.environ.get("STIEFELSYNC_COMPILED", "")
    if asked == "0":
        library.unlink(missing_ok=True)
        return None
    if found["library"]() is not None:
        return library
    errors = []
    for command in compilers():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            made = Path(scratch) / library.name
            sources = sorted(str(path) for path in folder.glob("*.c"))
            call = [*shlex.split(command), *FLAGS, f'-DSOURCES="{found["fingerprint"]()}"', *sources, "-o", str(made)]
            done = subprocess.run([*call, *system_flags()], capture_output=True, text=True)
            if done.returncode == 0:
                made.replace(library)
                return library
            errors.append(f"{command}: {done.stderr.strip()}")
    library.unlink(missing_ok=True)
    message = "the kernels were not compiled: " + ("; ".join(errors) or "there is no C compiler")
    if asked == "require":
        raise RuntimeError(message)
    print(message, file=sys.stderr)
    return None


def platform_tag() -> str:
    """Return the platform that a wheel with compiled kernels is for."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run on its own
    pass
else:

    class CompiledKernels(BuildHookInterface[Any]):
        """The step of a build: one wheel per system, for all versions of Python."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile, and put the library into the wheel."""
            if self.target_name != "wheel":
                return
            library = compile_kernels()
            if library is not None:
                build_data["artifacts"].append(library.relative_to(self.root).as_posix())
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform_tag()}"


if __name__ == "__main__":
    print(compile_kernels() or "no kernels")
