"""Calls of the public functions and classes with wrong values, drawn by number.

What is public is looked up in the reference, where a test asks for every name, so that what is added is called, too.
Arguments that must be given are sound, as far as their name or type tells what they are; one or two are not.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import itertools
import os
import random
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import stiefelsync
from stiefelsync import Matchings, datasets, io, synchronise
from stiefelsync.errors import ConvergenceWarning, StiefelSyncError

__all__ = ["Call", "draw", "outcome", "perform", "public", "ready"]

REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "api.md"
FEW = 5  # values taken of what is returned bit by bit
UNSEEN = ("TracksEstimator",)  # of another program's classes, which is not there


@cache
def public() -> dict[str, Callable[..., Any]]:
    """Return the functions, classes and methods that users are offered, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for name in re.findall(r"^   ([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE):
        try:
            value = _named(name)
        except ImportError:  # an extra that is not installed
            continue
        if name.rpartition(".")[2] in UNSEEN or not callable(value):
            continue
        if not inspect.isclass(value):
            found[name] = value
        elif not issubclass(value, BaseException | enum.Enum) and not getattr(value, "_is_protocol", False):
            found[name] = value
            for own, method in vars(value).items():
                if not callable(getattr(value, own, None)) or (own.startswith("_") and own != "__getitem__"):
                    continue
                if isinstance(method, classmethod):
                    found[f"{name}.{own}"] = getattr(value, own)
                elif inspect.isfunction(method) and _instance(value) is not None:
                    found[f"{name}.{own}"] = method
    return {name: value for name, value in sorted(found.items()) if _signature(value) is not None}


def _named(name: str) -> Any:
    """Return what a dotted name stands for inside the package."""
    value: Any = stiefelsync
    place = "stiefelsync"
    for part in name.split("."):
        place += f".{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(place)
    return value


def _signature(value: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


# ---------------------------------------------------------------- sound values


@cache
def _world() -> dict[str, Any]:
    """Return what sound arguments are made of."""
    rng = np.random.default_rng(0)
    labels = np.array([0, 1, 2, 1, 0, 2, 0, 2, 1])
    bare = Matchings.from_labels(labels, [3, 3, 3], names=["a", "b", "c"], coordinates=rng.uniform(0, 900, (9, 2)))
    problem = bare.keep(np.arange(bare.n_matches) != 2)
    answer = synchronise(problem, 3)
    network = datasets.synthetic(6, 4, 1.0, 0.1, rng=0)[0]
    return {"problem": problem, "labels": answer.labels, "answer": answer, "W": network.to_matrix()}


def ready(_: Path) -> list[bytes]:
    """Make what sound arguments are made of, so that this does not count for the first call; there are no files."""
    public()
    _world()
    return []


def _file(folder: Path) -> Path:
    path = folder / "sound.csv"
    if not path.exists():
        io.write(_world()["problem"], path)
    return path


def _output(folder: Path) -> Path:
    path = folder / "made.csv"
    path.unlink(missing_ok=True)
    return path


NAMES: dict[str, Callable[[Path], Any]] = {
    "W": lambda _: _world()["W"],
    "V": lambda _: np.linalg.qr(np.random.default_rng(0).normal(size=(9, 3)))[0],
    "U": lambda _: np.eye(9)[:, :3],
    "d": lambda _: 3,
    "n": lambda _: 3,
    "k": lambda _: 4,
    "sizes": lambda _: [3, 3, 3],
    "labels": lambda _: _world()["labels"],
    "truth": lambda _: _world()["labels"],
    "after": lambda _: _world()["labels"],
    "pairs": lambda _: {(0, 1): [[0, 0]], (1, 2): [[0, 1]]},
    "scores": lambda _: {(0, 1): [[0.9, 0.1, 0.0]] * 3, (1, 2): [[0.9, 0.1, 0.0]] * 3},
    "blocks": lambda _: {(0, 1): np.eye(3), (1, 2): np.eye(3)},
    "objects": lambda _: [[0, 1], [1, 2]],
    "points": lambda _: [[0, 0], [1, 2]],
    "ends": lambda _: [[0, 4], [1, 7]],
    "mask": lambda _: np.ones(_world()["problem"].n_matches, dtype=bool),
    "weights": lambda _: np.ones(_world()["problem"].n_matches),
    "table": lambda _: {"id_left": ["a", "a"], "id_right": ["x", "y"], "score": [0.9, 0.6]},
    "method": lambda _: "fast",
    "i": lambda _: 0,
    "j": lambda _: 1,
    "path": _file,
    "problems": lambda _: _world()["problem"],
    "observed": lambda _: 0.9,
    "universe": lambda _: 6,
    "error": lambda _: 0.1,
    "source": _file,
    "input": _file,
    "output": _output,
    "target": _output,
}
TYPES: list[tuple[str, Callable[[Path], Any]]] = [
    ("Matchings", lambda _: _world()["problem"]),
    ("Synchronisation", lambda _: _world()["answer"]),
    ("str", lambda _: "a"),
    ("bool", lambda _: False),
    ("int", lambda _: 3),
    ("float", lambda _: 0.5),
]


def _sound(parameter: inspect.Parameter, folder: Path) -> Any:
    """Return what a parameter may be, as far as its type and name tell."""
    kind = str(parameter.annotation)
    if kind.startswith("Matchings"):
        return _world()["problem"]
    if parameter.name in NAMES:
        return NAMES[parameter.name](folder)
    for name, make in TYPES:
        if re.match(rf"{name}\b", kind):
            return make(folder)
    return _world()["problem"]


def _instance(kind: type) -> Any:
    """Return something of a class whose methods are called, or None."""
    world = _world()
    for made in (world["problem"], world["answer"], world["answer"].difference, world["answer"].difference.counts):
        if isinstance(made, kind):
            return made
    return None


# ---------------------------------------------------------------- wrong values


def _explode(*_: object) -> None:
    raise StopIteration


WRONG: list[Callable[[], Any]] = [
    lambda: None,
    lambda: True,
    lambda: -1,
    lambda: 0,
    lambda: 1.5,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: -1e308,
    lambda: 2**70,
    lambda: np.int64(2**62),
    lambda: np.float16(1),
    lambda: 1j,
    lambda: "",
    lambda: "x",
    lambda: "\x1b[2J\n",
    lambda: "nul\0",
    lambda: "\ud800",
    lambda: b"x",
    list,
    dict,
    set,
    object,
    lambda: type,
    lambda: (1,),
    lambda: iter([1]),
    lambda: range(3),
    lambda: {1: 2},
    lambda: {(0, 1): None},
    lambda: {("a", "b"): [[0, 0]]},
    lambda: [[1, 2], [3]],
    lambda: [None],
    lambda: ["a", 1],
    lambda: lambda: 0,
    lambda: np.array([]),
    lambda: np.array("a"),
    lambda: np.array([["a"]]),
    lambda: np.array([1 + 2j]),
    lambda: np.array([None, 1], dtype=object),
    lambda: np.array([2, 2, 2], dtype=">i4"),
    lambda: np.array([2**63], dtype=np.uint64),
    lambda: np.array([[0, 2**62]]),
    lambda: np.array([np.nan, np.inf]),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.zeros((0, 2)),
    lambda: np.ma.masked_array([1, 2], [1, 0]),
    lambda: np.datetime64("2020-01-01"),
    lambda: np.array(["2020-01-01"], dtype="M8[s]"),
    lambda: np.eye(9)[:, ::-1],
    lambda: sparse.coo_array((2, 3)),
    lambda: sparse.csr_array(np.full((9, 9), np.nan)),
    lambda: Matchings.from_pairs({}, []),
    lambda: Matchings.from_pairs({}, [2, 2]),
    lambda: _world()["problem"],
    lambda: _world()["answer"],
    lambda: _world()["labels"].astype(float),
    lambda: -_world()["labels"] - 5,
    lambda: Path("nowhere") / "at-all.csv",
    lambda: Path("."),
]


class Call:
    """A call: what of, with which arguments, and which of them are wrong."""

    def __init__(self, name: str, function: Callable[..., Any], given: list[Any], named: dict[str, Any]) -> None:
        self.name, self.function, self.given, self.named = name, function, given, named

    def __str__(self) -> str:
        """Return the call as one would write it, shortened."""
        shown = [_shown(value) for value in self.given]
        shown += [f"{name}={_shown(value)}" for name, value in self.named.items()]
        return f"{self.name}({', '.join(shown)})"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) < 80 else text[:77] + "..."


def draw(number: int, folder: Path) -> Call:
    """Return call `number`: the first ones are sound, one of everything that is public."""
    rng, offered = random.Random(number), public()
    names = list(offered)
    name = names[number] if number < len(names) else rng.choice(names)
    function = offered[name]
    given: list[Any] = []
    named: dict[str, Any] = {}
    wanted = []
    parameters = list((_signature(function) or inspect.Signature()).parameters.values())
    if parameters and parameters[0].name == "self":
        given.append(_instance(_named(name.rpartition(".")[0])))
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            wanted.append("nonsense")
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            wanted.append(parameter.name)
            if parameter.default is parameter.empty:
                value = _sound(parameter, folder)
                if parameter.kind is parameter.KEYWORD_ONLY:
                    named[parameter.name] = value
                else:
                    given.append(value)
    if number >= len(names) and wanted:
        first = 1 if len(given) and parameters is not None and "self" in str(_signature(function)) else 0
        for spot in rng.sample(wanted, min(len(wanted), rng.choice((1, 1, 1, 2)))):
            at = first + wanted.index(spot)
            value = rng.choice(WRONG)()
            if at < len(given):
                given[at] = value
            else:
                named[spot] = value
    return Call(name, function, given, named)


def perform(call: Call) -> str:
    """Return what became of a call: "accepted", "refused", or what went wrong."""
    methods, formats = dict(stiefelsync.METHODS), dict(io.FORMATS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            made = call.function(*call.given, **call.named)
            if isinstance(made, Iterator):
                list(itertools.islice(made, FEW))
        return "accepted"
    except StiefelSyncError as error:
        return "refused" if str(error) else f"untyped: {call}: no word"
    except BaseException as error:
        return f"untyped: {call}: {type(error).__name__}: {error}"
    finally:
        for registry, before in ((stiefelsync.METHODS, methods), (io.FORMATS, formats)):
            if dict(registry) != before:
                registry.clear()
                registry.update(before)
        for left in Path.cwd().iterdir():
            if left.name.startswith("made") and left.is_file():
                os.unlink(left)


def outcome(path: Path) -> str:
    """Make the call whose number stands in a file, in the folder of that file."""
    os.chdir(path.parent)
    return perform(draw(int(path.read_text()), path.parent))
