"""Count the functions that ``stiefelsync sync database.db -o clean.db --report page.html`` passes through.

Run ``python -m benchmarks.walk``, with ``--commit REVISION`` for an earlier state of the code and ``--list`` for every
function and every change of layer by name. The database is that of Sceaux (STIEFELSYNC_DATA), or any other named with
``--database``. What is counted:

* *functions*: different functions of this package with a name of their own (``def``, also those inside others and
  properties) that are called while the command runs. Not counted are lambdas, comprehensions, what dataclasses
  generate, and whatever runs while modules are imported.
* *files*: the files that these stand in.
* *changes of layer*: different pairs of a function and a function called by it that stand in different layers. A layer
  is a folder, or a module, directly inside ``stiefelsync``; calls by way of other packages count as calls of the last
  function of ours.
* *runs*: calls of functions of interest, however often.
* *used once*: functions that the source names in one place only, and that one function of the walk calls. With them
  inlined there, smallest first, as far as no body exceeds 40 lines, so many functions would be left: a bound on what
  merging functions can do to the walk.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

MOST_LINES = 40  # of a body, as tests/test_architecture.py asks for
RUNS = ("canonical", "components", "connected", "trees", "_load_rows", "load_rows", "upper_bound", "render")
HERE = Path(__file__).resolve().parent.parent
Name = tuple[str, str]


class Walk:
    """Collects the calls of functions below a folder; made for ``sys.setprofile``."""

    def __init__(self, root: Path) -> None:
        self.root = f"{root}{os.sep}"
        self.calls: Counter[Name] = Counter()
        self.changes: set[tuple[Name, Name]] = set()
        self.callers: dict[Name, set[Name]] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call and, where it leads into another layer, from where."""
        if event != "call" or not self._ours(frame.f_code):
            return
        callee, caller = self._name(frame.f_code), None
        back = frame.f_back
        while back is not None:
            if back.f_code.co_filename.startswith(self.root) and back.f_code.co_name == "<module>":
                return  # part of an import
            if caller is None and self._ours(back.f_code):
                caller = self._name(back.f_code)
            back = back.f_back
        self.calls[callee] += 1
        self.callers.setdefault(callee, set()).update([] if caller is None else [caller])
        if caller is not None and layer(caller) != layer(callee):
            self.changes.add((caller, callee))

    def _ours(self, code: CodeType) -> bool:
        return code.co_filename.startswith(self.root) and not code.co_name.startswith("<")

    def _name(self, code: CodeType) -> Name:
        return code.co_filename.removeprefix(self.root).replace(os.sep, "/"), code.co_qualname


def layer(name: Name) -> str:
    """Return the layer of a function, named by its file and itself.

    >>> layer(("io/colmap.py", "read")), layer(("clean.py", "clean"))
    ('io', 'clean')
    """
    return name[0].split("/")[0].removesuffix(".py")


def inlined(root: Path, callers: dict[Name, set[Name]]) -> tuple[int, int]:
    """Return how many functions are used once, and how many would be left with those inlined.

    Parameters
    ----------
    callers
        The functions of the walk, and who called each of them.
    """
    lines: dict[Name, int] = {}
    uses: Counter[str] = Counter()
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                uses[node.attr] += 1
            elif isinstance(node, ast.Name):
                uses[node.id] += 1
            elif isinstance(node, ast.FunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                where = path.relative_to(root).as_posix(), node.name
                lines[where] = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 1
    short = {name: (name[0], name[1].split(".")[-1]) for name in callers}
    size = {name: lines.get(short[name], 1) for name in callers}
    once = [name for name, by in callers.items() if len(by) == 1 and uses[short[name][1]] == 1]
    into: dict[Name, Name] = {}
    for name in sorted(once, key=lambda name: (size[name], name)):
        (target,) = callers[name]
        while target in into:
            target = into[target]
        if target != name and size[target] + size[name] - 1 <= MOST_LINES:
            size[target] += size[name] - 1
            into[name] = target
    return len(once), len(callers) - len(into)


def trace(database: Path) -> dict[str, Any]:
    """Run the command on a database with the package that is imported here, and return what it passed."""
    import stiefelsync
    from stiefelsync.cli import main

    walk = Walk(Path(stiefelsync.__file__).parent)
    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["stiefelsync", "sync", str(database), "-o", f"{folder}/clean.db", "--report", f"{folder}/page.html"]
        sys.setprofile(walk)
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise
        finally:
            sys.setprofile(None)
        assert Path(folder, "page.html").exists(), "the command wrote no page"
    return {
        "functions": sorted(walk.calls),
        "changes": sorted(walk.changes),
        "inlined": inlined(Path(stiefelsync.__file__).parent, walk.callers),
        "runs": {one: sum(n for (_, name), n in walk.calls.items() if name == one) for one in RUNS},
    }


def trace_apart(database: Path, source: Path) -> dict[str, Any]:
    """Trace the package below the folder `source` in a process of its own."""
    code = "import json, sys; from walk import trace; from pathlib import Path; found = trace(Path(sys.argv[1])); "
    code += "print('\\n' + json.dumps(found))"
    paths = os.pathsep.join([str(source), str(HERE / "benchmarks")])
    done = subprocess.run(
        [sys.executable, "-c", code, str(database)],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commit", help="trace the code of this revision instead of the one that lies here")
    parser.add_argument("--database", type=Path, help="a COLMAP database; that of Sceaux by default")
    parser.add_argument("--list", action="store_true", help="name every function and every change of layer")
    given = parser.parse_args()
    database = given.database or Path(os.environ["STIEFELSYNC_DATA"], "sceaux", "database.db")
    with tempfile.TemporaryDirectory() as folder:
        source = HERE
        if given.commit:
            archive = subprocess.run(
                ["git", "-C", str(HERE), "archive", given.commit, "src"], check=True, capture_output=True
            ).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
            source = Path(folder)
        found = trace_apart(database.resolve(), source / "src")
    files = {file for file, _ in found["functions"]}
    print(f"{len(found['functions'])} functions in {len(files)} files, {len(found['changes'])} changes of layer")
    print("by layer:", dict(Counter(layer(name) for name in found["functions"])))
    print("runs:", found["runs"])
    once, left = found["inlined"]
    print(
        f"used once: {once}; with these inlined, bodies of at most {MOST_LINES} lines, {left} functions would be left"
    )
    if given.list:
        for file, name in found["functions"]:
            print(f"  {file} {name}")
        for caller, callee in found["changes"]:
            print(f"  {' '.join(caller)} → {' '.join(callee)}")


if __name__ == "__main__":
    main()
