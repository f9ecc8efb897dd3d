"""One small change at a time: what :mod:`benchmarks.mutants` makes of a module."""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/stiefelsync"
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
    lines
        First and last line of the statement, without what stands below it.
    before, after
        The expression or statement and what replaces it.
    number
        Its place among all mutants of the module.
    source
        Digest of the module it was made from.
    """

    module: str
    line: int
    lines: tuple[int, int]
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


def mutants_of(module: str) -> list[Mutant]:
    """Return all mutants of a module."""
    text = (ROOT / PACKAGE / module).read_text(encoding="utf-8")
    tree, digest = ast.parse(text), hashlib.sha256(text.encode()).hexdigest()[:10]
    statements, lines = _statements(tree), text.splitlines()
    return [
        Mutant(module, line, statements[line], lines[line - 1].strip(), _short(node), _short(other), number, digest)
        for number, (*_, node, other) in enumerate(_changes(tree))
        for line in [int(getattr(node, "lineno", 1))]
    ]


def mutated(mutant: Mutant) -> str:
    """Return the source text of a mutant."""
    tree = ast.parse((ROOT / PACKAGE / mutant.module).read_text(encoding="utf-8"))
    parent, name, index, _, other = next(itertools.islice(_changes(tree), mutant.number, None))
    if index is None:
        setattr(parent, name, other)
    else:
        getattr(parent, name)[index] = other
    return ast.unparse(ast.fix_missing_locations(tree))


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, ast.AST]]:
    """Yield (parent, field, index, node, replacement) of every mutant."""
    return ((*site, other) for site in sites(tree) for other in replacements(site[3]))


def _statements(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """Return the lines of the innermost statement that every line belongs to; of a compound one, those of its head."""
    spans: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):  # from the outermost to the innermost
        if isinstance(node, ast.stmt):
            below = getattr(node, "body", None)
            last = max(node.lineno, below[0].lineno - 1) if below else (node.end_lineno or node.lineno)
            spans |= dict.fromkeys(range(node.lineno, last + 1), (node.lineno, last))
    return spans


def _short(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]
