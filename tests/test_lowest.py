"""The constraints of `make test-lowest` are the lower bounds of pyproject.toml, no more and no less."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Extras whose code needs them to be tested at the lower bound; documentation and developers' tools are not.
EXTRAS = ("plot", "report", "hloc", "colmap", "rivals", "distributed")
TOOLS = ("hypothesis", "joblib", "pytest", "pytest-xdist")
BENEATH = ("click", "pyparsing")  # packages that ours need and we do not name


def version(text: str) -> tuple[int, ...]:
    parts = [int(part) for part in text.split(".")]
    while parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def bounds(requirements: list[str]) -> dict[str, tuple[int, ...]]:
    found = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)$", text) for text in requirements)
    return {match[1]: version(match[2]) for match in found if match}


def test_constraints_are_the_lower_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    allowed = bounds([*project["dependencies"], *(text for name in EXTRAS for text in extras[name])])
    allowed |= {name: bound for name, bound in bounds(extras["dev"]).items() if name in TOOLS}
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith(("#", *BENEATH)))
    assert {name: version(text) for name, text in pinned.items()} == allowed


def test_no_upper_bound_keeps_users_from_installing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: texts for name, texts in project["optional-dependencies"].items() if name != "dev"}
    everything = [*project["dependencies"], *(text for texts in extras.values() for text in texts)]
    assert [text for text in everything if re.search(r"==|<|~=", text)] == []


def test_every_requirement_is_imported_by_some_module():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        name: texts for name, texts in project["optional-dependencies"].items() if name not in ("dev", "docs", "all")
    }
    required = {re.split(r"[\[>]", text)[0] for texts in (project["dependencies"], *extras.values()) for text in texts}
    modules = {"pillow": "PIL", "dask": "distributed"}  # of dask its extra is what is asked for
    imported = {
        name.partition(".")[0]
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imports(node)
    }
    assert {name for name in required if modules.get(name, name) not in imported} == set()


def imports(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
