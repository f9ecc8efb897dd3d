"""One instance of an experiment: a problem, a method and a seed; and what is measured on it."""

from __future__ import annotations

import base64
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync import datasets
from stiefelsync.errors import ConvergenceWarning
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.metrics import cycle_error, score
from stiefelsync.stiefel.result import State
from stiefelsync.stiefel.secondary import sparsity
from stiefelsync.stiefel.solve import sparse_stiefel
from stiefelsync.stiefel.subspace import dominant_subspace
from stiefelsync.sync.methods.rivals.subgradient import SubgradientDetails
from stiefelsync.sync.rounding import project
from stiefelsync.sync.synchronise import synchronise

__all__ = ["INPUT", "Task", "load", "measure", "pack", "unpack"]

INPUT = "input"
"""The name under which the unsynchronised matches are scored."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """What is run once and recorded in one line. Equal keys mean equal results.

    Attributes
    ----------
    problem
        ``{"data": "house", "k": …}``, ``{"data": "synthetic", "d": …, "k": …, "rho": …, "sigma":
        …}`` or ``{"data": "toy"}``.
    method, options
        A registered method, or "input".
    seed
        Of the problem (its noise, or the order of the house's points) and, in a stream of its own,
        of the method.
    action
        "synchronise", or "iterate" to follow the solver's iterates.
    keep
        What to keep beside the figures: "U", or "ends", the matches between first and last object.
    """

    problem: Mapping[str, Any]
    method: str
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    action: str = "synchronise"
    keep: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Everything that decides the result, as canonical JSON.

        Examples
        --------
        >>> Task({"data": "toy"}, "input", 3).key == Task({"data": "toy"}, "input", 3, {}).key
        True
        """
        return json.dumps(self.as_dict(), sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return {**asdict(self), "keep": list(self.keep)}


def load(problem: Mapping[str, Any], seed: int) -> tuple[Matchings, NDArray[np.int64], int]:
    """Return the matchings, the true labels and the universe size of a problem.

    The house's points are shuffled, since its ground truth is the identity and ties would be
    rewarded.

    Examples
    --------
    >>> load({"data": "synthetic", "d": 5, "k": 3, "rho": 1.0, "sigma": 0.0}, 0)[2]
    5
    """
    return _load(json.dumps(problem, sort_keys=True), seed)


@lru_cache(maxsize=2)
def _load(problem: str, seed: int) -> tuple[Matchings, NDArray[np.int64], int]:
    spec = json.loads(problem)
    rng = np.random.default_rng([seed, 0])
    if spec["data"] == "house":
        return *datasets.house(spec["k"], rng=rng), 30
    drawn = datasets.synthetic(spec["d"], spec["k"], spec["rho"], spec["sigma"], rng=rng)
    return *drawn, spec["d"]


def measure(task: Task) -> dict[str, Any]:
    """Run one task and return its record's ``result``, ``seconds`` and ``cpu_seconds``.

    Examples
    --------
    >>> problem = {"data": "synthetic", "d": 5, "k": 4, "rho": 1.0, "sigma": 0.0}
    >>> measure(Task(problem, "union-find", 0))["result"]["fscore"]
    1.0
    """
    with warnings.catch_warnings():
        # A run that does not converge says so in its recorded status.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dict(_short(ACTIONS[task.action](task)))


def _synchronise(task: Task) -> dict[str, Any]:
    problem, truth, d = load(task.problem, task.seed)
    k = problem.n_objects
    if task.method == INPUT:
        quality = score(problem, truth)
        result = {**asdict(quality), "cycle_error": cycle_error(problem, max_triplets=2000).value}
        return {"result": {**result, **_kept(task, problem, None)}, "seconds": 0.0, "cpu_seconds": 0.0}
    _warm_up(task.method)
    wall, cpu = time.perf_counter(), time.process_time()
    answer = synchronise(problem, d, method=task.method, rng=np.random.default_rng([task.seed, 1]), **task.options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    quality = score(answer.labels if answer.consistent else answer.matchings(), truth)
    result = {**asdict(quality), "status": answer.status, "iterations": answer.outcome.n_iter}
    if answer.consistent:
        result["objective"] = answer.objective / k**2
    else:
        result["cycle_error"] = cycle_error(answer.matchings(), max_triplets=2000).value
    U = answer.outcome.U
    if isinstance(answer.outcome.details, SubgradientDetails):
        # The method turned columns of its U over before projecting; what it found by itself is of
        # interest, too.
        U = U * answer.outcome.details.signs
        result["fscore_unsigned"] = score(project(U, problem.sizes), truth).fscore
    if U is not None:
        result.update(_shape(U))
    return {"result": {**result, **_kept(task, answer.matchings, U)}, "seconds": wall, "cpu_seconds": cpu}


@lru_cache(maxsize=64)
def _warm_up(method: str) -> None:
    """Let a method import and compile what it needs before it is timed."""
    problem, _ = datasets.synthetic(6, 6, 1.0, 0.2, rng=0)
    synchronise(problem, 6, method=method, rng=0)


def _shape(U: NDArray[Any]) -> dict[str, float]:
    """Return how sparse U is, and how much of it is negative: the share of Σ U² that negative entries carry."""
    return {
        "sparsity": sparsity(U, 0.1),
        "negative": float((np.minimum(U, 0) ** 2).sum() / (U**2).sum()),
        "peak": float((np.abs(U).max(axis=1) ** 2).sum() / (U**2).sum()),
    }


def _kept(task: Task, answer: Matchings | Callable[[], Matchings], U: NDArray[Any] | None) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    if "ends" in task.keep:
        matchings = answer if isinstance(answer, Matchings) else answer()
        kept["ends"] = matchings.pair(0, matchings.n_objects - 1).tolist()
    if "U" in task.keep and U is not None:
        kept["U"] = pack(U)
    return kept


def _iterate(task: Task) -> dict[str, Any]:
    """Follow the solver: f, g and the distance to the dominant subspace after each update."""
    wall, cpu = time.perf_counter(), time.process_time()
    if task.problem["data"] == "toy":
        W, d = np.diag([1.0, 1.0, 1.0, 0.5, 0.5, 0.5]), 3
    else:
        problem, _, d = load(task.problem, task.seed)
        W = problem.to_matrix()
    best = dominant_subspace(W, d, method="eigh")
    V = best.V
    distances: list[float] = []

    def follow(state: State) -> None:
        distances.append(float(np.linalg.norm(state.U - V @ (V.T @ state.U), 2)))

    run = sparse_stiefel(W, d, rng=np.random.default_rng([task.seed, 1]), callback=follow, **task.options)
    result = {
        **_shape(run.U),
        "status": run.status.value,
        "iterations": run.n_iter,
        "optimum": float(best.values.sum()),
        "objective": run.history.objective.tolist(),
        "secondary": run.history.secondary.tolist(),
        "distance": distances,
        **({"U": pack(run.U)} if "U" in task.keep else {}),
    }
    return {"result": result, "seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


ACTIONS: dict[str, Callable[[Task], dict[str, Any]]] = {"synchronise": _synchronise, "iterate": _iterate}


def _short(value: Any) -> Any:
    """Return a result with eight significant digits, which keeps records short."""
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return float(f"{value:.8g}") if isinstance(value, float) else value


def pack(U: NDArray[Any]) -> dict[str, Any]:
    """Return U in 8 bits per entry, enough for a picture and short enough for a record.

    Examples
    --------
    >>> unpack(pack(np.array([[1.0, -0.5]]))).round(2).tolist()
    [[1.0, -0.5]]
    """
    scale = float(np.abs(U).max()) or 1.0
    data = base64.b64encode(np.rint(U / scale * 127).astype(np.int8).tobytes()).decode()
    return {"shape": list(U.shape), "scale": scale, "int8": data}


def unpack(packed: Mapping[str, Any]) -> Floats:
    """Return what :func:`pack` packed, to within 1/254 of the largest entry."""
    entries = np.frombuffer(base64.b64decode(packed["int8"]), dtype=np.int8).astype(np.float64)
    return np.asarray(entries.reshape(packed["shape"]) * (packed["scale"] / 127))
