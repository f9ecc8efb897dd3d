"""Would the tests notice? Change the numerical core in one small place at a time and run the tests of that place.

``python -m benchmarks.mutants`` draws a seeded sample of mutants from every module, runs for each the tests that belong
to the module, and prints the share that was noticed. Every result is written at once: started again, it goes on where
it was interrupted; a mutant is run anew only if the source of its module has changed, or with ``--again`` if it
survived. The working tree is never touched: tests run on a copy.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import hypothesis  # noqa: F401  this and what follows before forking, so that it is imported once
import pytest
import scipy.optimize
import scipy.sparse.csgraph
import scipy.spatial
import scipy.special  # noqa: F401

ROOT = Path(__file__).parents[1]
PACKAGE = "src/stiefelsync"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.csv")
JUDGED = ("module", "text", "before", "after")  # what tells a mutant judged equivalent from others
SEED = 2021
OPTIONS = (
    "-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not data", "-k", "not memory and not scene",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # of hypothesis, imported before
)  # fmt: skip

# What is mutated, and the tests that should notice: the first entry whose key starts the module's path counts.
TESTS = {
    "matching/_canonical.py": "matching/test_bad_matchings.py matching/test_building.py matching/test_matchings.py",
    "matching/_arrays.py": "matching/test_bad_matchings.py matching/test_building.py matching/test_matchings.py",
    "matching/_flat.py": "matching/test_bad_matchings.py matching/test_building.py matching/test_matchings.py",
    "matching/matchings.py": "matching/test_bad_matchings.py matching/test_building.py matching/test_matchings.py",
    "matching/copies.py": "matching/test_copies.py matching/test_grid.py",
    "matching/difference.py": "matching/test_difference.py",
    "matching/doubt.py": "matching/test_doubt.py",
    "matching/graph.py": "matching/test_graph.py",
    "matching/inspection.py": "matching/test_inspection.py",
    "matching/metrics.py": "matching/test_metrics.py",
    "matching/neighbour_support.py": "matching/test_neighbour_support.py matching/test_grid.py",
    "matching/universe.py": "matching/test_universe.py",
    "sync/likelihood/": "sync/likelihood",
    "sync/tracks/changes.py": "sync/test_extend.py sync/tracks/test_start.py sync/tracks/test_literal.py",
    "sync/tracks/group": "sync/tracks/test_literal.py sync/tracks/test_grouped.py",
    "sync/tracks/pieces.py": "sync/tracks/test_literal.py sync/tracks/test_grouped.py",
    "sync/tracks/keypoints.py": "sync/tracks/test_keypoints_literal.py io/test_io_correspondences.py",
    "sync/tracks/decisions.py": "sync/tracks/test_decisions.py",
    "sync/tracks/": "sync/tracks/test_literal.py sync/tracks/test_start.py sync/tracks/test_tracks.py",
    "stiefel/block.py": "stiefel/test_block.py stiefel/test_linear_algebra.py",
    "stiefel/checks.py": "stiefel/test_errors.py stiefel/test_rotation.py",
    "stiefel/lanczos.py": "stiefel/test_literal.py stiefel/test_linear_algebra.py",
    "stiefel/operators.py": "stiefel/test_literal.py stiefel/test_linear_algebra.py stiefel/test_errors.py",
    "stiefel/orthonormal.py": "stiefel/test_linear_algebra.py",
    "stiefel/product.py": "stiefel/test_linear_algebra.py sync/likelihood/test_refine.py",
    "stiefel/rotation.py": "stiefel/test_rotation.py stiefel/test_errors.py stiefel/test_solve.py",
    "stiefel/secondary.py": "stiefel/test_literal.py",
    "stiefel/steps.py": "stiefel/test_literal.py stiefel/test_solve.py",
    "stiefel/subspace.py": "stiefel/test_linear_algebra.py stiefel/test_errors.py",
    "stiefel/": "stiefel/test_literal.py stiefel/test_errors.py stiefel/test_solve.py",
}
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
NAMES = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin", "argmin": "argmax",
    "any": "all", "all": "any", "log": "log1p", "flatnonzero": "argsort", "ones": "zeros", "zeros": "ones",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One small change of one module.

    Attributes
    ----------
    module
        Path below the package.
    line, text
        Where, in the original.
    before, after
        The expression or statement and what replaces it.
    number
        Its place among all mutants of the module.
    source
        Digest of the module it was made from.
    """

    module: str
    line: int
    text: str
    before: str
    after: str
    number: int
    source: str

    @property
    def key(self) -> str:
        """Name of the mutant, the same in every run on the same source."""
        return f"{self.module}:{self.number}:{self.source}"


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Return what may stand in the place of one node."""
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in ARITHMETIC:
        yield _changed(node, op=ARITHMETIC[type(node.op)]())
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield _changed(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])
    if isinstance(node, ast.BoolOp):
        yield _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield node.operand
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield ast.Constant(node.value + 1)
        elif isinstance(node.value, float):
            yield ast.Constant(2 * node.value if node.value else 1.0)
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield _changed(node, attr=NAMES[node.attr])
    if isinstance(node, ast.Name) and node.id in ("max", "min", "any", "all"):
        yield _changed(node, id=NAMES[node.id])
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and isinstance(node.test, (ast.Name, ast.Call, ast.Attribute)):
        yield _changed(node, test=ast.UnaryOp(ast.Not(), node.test))
    if _droppable(node):
        yield ast.Pass()


def _droppable(node: ast.AST) -> bool:
    """Whether a statement can be left out without a name going missing."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    if isinstance(node, ast.Assign):
        return all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets)
    return isinstance(node, (ast.AugAssign, ast.Raise, ast.Break, ast.Continue))


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    new = type(node)(**{name: getattr(node, name) for name in node._fields} | fields)
    return ast.copy_location(new, node)


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield (parent, field, index, node) of every node that code computes with: no annotation, message or docstring."""
    todo: list[ast.AST] = [tree]
    while todo:
        parent = todo.pop(0)
        for name, value in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list", "type_params") or (
                isinstance(parent, ast.Subscript) and name == "slice" and _is_type(parent.value)
            ):
                continue
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST) or isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)):
                    continue
                if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                    continue
                yield parent, name, index, node
                if not isinstance(node, ast.Raise):  # that an error is raised counts, how it is worded does not
                    todo.append(node)


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("NDArray", "Callable", "dict", "tuple", "list", "Literal", "cast")


def mutants_of(module: str) -> list[tuple[Mutant, str]]:
    """Return all mutants of a module with their source text."""
    text = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
    tree, digest = ast.parse(text), hashlib.sha256(text.encode()).hexdigest()[:10]
    found: list[tuple[Mutant, str]] = []
    for parent, name, index, node in list(sites(tree)):
        for other in replacements(node):
            _put(parent, name, index, other)
            code = ast.unparse(ast.fix_missing_locations(tree))
            _put(parent, name, index, node)
            line = int(getattr(node, "lineno", 1))
            before, after = (_short(x) for x in (node, other))
            at = text.splitlines()[line - 1].strip()
            found.append((Mutant(module, line, at, before, after, len(found), digest), code))
    return found


def _put(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _short(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]


def modules() -> list[str]:
    """Return the modules that have an entry in `TESTS`."""
    every = sorted((ROOT / PACKAGE).rglob("*.py"))
    paths = [path.relative_to(ROOT / PACKAGE).as_posix() for path in every]
    return [path for path in paths if any(path.startswith(key) for key in TESTS) and not path.endswith("__init__.py")]


def selection(module: str) -> list[str]:
    """Return the tests of a module: the files named in `TESTS` that exist, and its own examples."""
    named = next(tests for key, tests in TESTS.items() if module.startswith(key)).split()
    return [*(f"tests/{path}" for path in named if (ROOT / "tests" / path).exists()), f"{PACKAGE}/{module}"]


def run(tests: list[str], folder: Path, limit: float) -> tuple[str, float]:
    """Run tests in a forked process with so many processor seconds; return how they ended and the seconds used.

    Forked, because then NumPy, SciPy and pytest are imported once for all mutants.
    """
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = os.fork()
    if not child:
        sink = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder)]
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))
        code = 1
        try:
            code = int(pytest.main([*OPTIONS, *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)  # without the cleaning up that is the parent's
    _, status = os.waitpid(child, 0)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
    if os.WIFSIGNALED(status):
        return "timed out", seconds
    return {0: "survived"}.get(os.waitstatus_to_exitcode(status), "caught"), seconds


def main() -> None:
    """Draw, run, record, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=ROOT / "out" / "mutants.jsonl")
    parser.add_argument("--share", type=float, default=0.11, help="share of every module's mutants that is drawn")
    parser.add_argument("--only", default="", help="run only mutants of modules whose path starts so")
    parser.add_argument("--again", action="store_true", help="run those that survived again")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; go on another time")
    given = parser.parse_args()
    every = {module: mutants_of(module) for module in modules()}
    sample = [one for module, found in every.items() for one in _drawn(module, found, given.share)]
    random.Random(SEED).shuffle(sample)  # so that an interrupted run has seen a bit of everything
    given.record.parent.mkdir(parents=True, exist_ok=True)
    done = _read(given.record)
    if given.again:
        done = {key: row for key, row in done.items() if row["outcome"] != "survived"}
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as name, given.record.open("a", encoding="utf-8") as file:
        folder = _copy(Path(name))
        limits: dict[tuple[str, ...], float] = {}
        for mutant, code in sample:
            if mutant.key in done or not mutant.module.startswith(given.only) or time.monotonic() > end:
                continue
            row = asdict(mutant) | _try(mutant, code, folder, limits)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            done[mutant.key] = row
            print(f"{row['outcome']:9} {mutant.module}:{mutant.line}  {mutant.before}  →  {mutant.after}", flush=True)
    _summarise([done[mutant.key] for mutant, _ in sample if mutant.key in done], sum(map(len, every.values())))


def _drawn(module: str, found: list[tuple[Mutant, str]], share: float) -> list[tuple[Mutant, str]]:
    """Return some mutants of a module, at least one; what is drawn does not depend on other modules."""
    chosen = random.Random(f"{SEED} {module}").sample(
        range(len(found)), min(round(share * len(found)) or 1, len(found))
    )
    return [found[number] for number in sorted(chosen)]


def _copy(folder: Path) -> Path:
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _try(mutant: Mutant, code: str, folder: Path, limits: dict[tuple[str, ...], float]) -> dict[str, object]:
    """Run the tests of one mutant; the limit is a multiple of what they need on the original."""
    tests = selection(mutant.module)
    path = folder / PACKAGE / mutant.module
    original = path.read_text(encoding="utf-8")
    if tuple(tests) not in limits:
        outcome, seconds = run(tests, folder, 600)
        if outcome != "survived":
            log = (folder / "log.txt").read_text(encoding="utf-8")
            raise SystemExit(f"{log}\nthe tests of {mutant.module} fail without any change: {' '.join(tests)}")
        limits[tuple(tests)] = 5 * seconds + 10
    try:
        path.write_text(code, encoding="utf-8")
        outcome, seconds = run(tests, folder, limits[tuple(tests)])
    finally:
        path.write_text(original, encoding="utf-8")
    return {"outcome": outcome, "seconds": round(seconds, 2)}


def _read(record: Path) -> dict[str, dict[str, object]]:
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()] if record.exists() else []
    return {f"{row['module']}:{row['number']}:{row['source']}": row for row in rows}


def _summarise(rows: list[dict[str, object]], total: int) -> None:
    """Print the score over all, and by room; those judged equivalent count for nothing."""
    with EQUIVALENT.open(encoding="utf-8", newline="") as file:
        judged = {tuple(row[name] for name in JUDGED) for row in csv.DictReader(file)}
    survivors = [row for row in rows if row["outcome"] == "survived"]
    equivalent = [row for row in survivors if tuple(row[name] for name in JUDGED) in judged]
    open_ones = [row for row in survivors if row not in equivalent]
    for row in open_ones:
        print(f"unnoticed  {row['module']}:{row['line']}  {row['before']}  →  {row['after']}")
    rooms = Counter(str(row["module"]).rpartition("/")[0] for row in rows)
    for room, n in sorted(rooms.items()):
        missed = sum(str(row["module"]).rpartition("/")[0] == room for row in open_ones)
        same = sum(str(row["module"]).rpartition("/")[0] == room for row in equivalent)
        print(f"{room:16} {n - same - missed:4} of {n - same:4} noticed, {same} equivalent")
    counted = len(rows) - len(equivalent)
    noticed = counted - len(open_ones)
    seconds = sum(float(str(row["seconds"])) for row in rows)
    print(
        f"{len(rows)} of {total} mutants, seed {SEED}: {noticed} of {counted} noticed"
        f" ({noticed / max(counted, 1):.1%}), {len(equivalent)} judged equivalent; {seconds / 60:.0f} processor minutes"
    )


if __name__ == "__main__":
    os.environ["HYPOTHESIS_PROFILE"] = "brief"
    main()
