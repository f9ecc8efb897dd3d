"""The one search: from its starts, by its moves, to samples of the posterior and the labels they decide on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stiefelsync.matching.matchings import Matchings
from stiefelsync.sync.likelihood.decision import Samples, decide, largest, shared
from stiefelsync.sync.likelihood.observations import Observations, observe
from stiefelsync.sync.likelihood.state import State
from stiefelsync.sync.method import Progress

__all__ = ["RECIPES", "Found", "Recipe", "affordable", "improve", "recipe_for", "search"]

Ints = NDArray[np.int64]
Start = Callable[[], Ints | None]

_COMPARED = 0.6  # share of all pairs of objects from which on all are taken to be compared
_FEW = 10  # objects up to which no start is likelier than another for certain
_MAX_CELLS = 50_000_000  # objects × points, of which the state keeps three arrays: 450 MB
_MAX_SAMPLED_CELLS = 30_000_000  # of these where labels are sampled, as every visit looks at all
_MAX_WORK = 4_000_000_000  # points × labels near them, over all objects: what a visit of all scores
_MAX_SCORES = 20_000_000  # of these for a single object: scores take 16 bytes each
_MAX_ALONE = 20_000_000  # of these where every point may begin with a label of its own
_BUDGET, _PER_POINT = 2_400_000_000, 2_000  # of these in all, a few seconds; and what else a point costs
_MAX_ASSIGNED = 500_000_000  # points² × labels of the largest object, up to which it is assigned labels at best
_LEAST_SWEEPS = 16
_SURE, _SURE_SWEEPS = 0.998, 8  # fscore of sampled labels among each other that needs no more of them
_JUDGING_VISITS = 6  # over which the likelihood of a start is averaged
_GAP = 10.0  # nats by which a start must be likelier for the other to be forgotten
_IMPROVE = 24  # visits of all objects at temperature zero at most
_OFTEN = 2.0  # exchanges per compared object and point, at most …
_MOST_EXCHANGES = 0.1  # … and per point


@dataclass(frozen=True)
class Recipe:
    """What is done for problems of one kind.

    Attributes
    ----------
    starts
        Labels to begin with: "spectral" (the paper's, improved at temperature zero), "tracks", and
        "alone", a label for every point, from which rates are learnt only after a while.
    burn
        Visits of all objects, at temperature one, before labels are compared.
    samples, every
        Labels sampled by each of two chains, and visits of all objects between two of them.
    rounds
        How often labels climb to the likeliest ones near, at temperature zero, while they burn in.
    """

    starts: tuple[str, ...]
    burn: int
    samples: int
    every: int
    rounds: int = 0


RECIPES = {
    "tree": Recipe(("tracks",), burn=0, samples=0, every=0),
    "few": Recipe(("spectral", "tracks", "alone"), burn=100, samples=75, every=2, rounds=2),
    "full": Recipe(("spectral",), burn=40, samples=20, every=2, rounds=1),
    "compared": Recipe(("spectral", "tracks", "alone"), burn=120, samples=30, every=2, rounds=1),
    "nearby": Recipe(("alone", "tracks"), burn=500, samples=40, every=2, rounds=5),
}
"""By kind: comparisons close no cycle, so that nothing contradicts a match; few objects; every object has all universe
points; (nearly) all objects were compared; some were."""

_CLIMBS = 5  # visits at temperature zero in a round
_LEARN_AFTER = 8  # visits from "alone" before rates are fitted


@dataclass
class Found:
    """What a search has found.

    Attributes
    ----------
    labels : (m,) int
        -1 where nobody else has the same.
    samples
        Of the posterior; None if there are none.
    expected_fscore
        Of the labels, by samples that did not choose them; None without samples.
    log_posterior
        Of the likeliest start.
    starts
        Names and log-posteriors of all that were tried.
    """

    labels: Ints
    samples: Samples | None = None
    expected_fscore: float | None = None
    log_posterior: float = float("nan")
    starts: dict[str, float] = field(default_factory=dict)


def recipe_for(seen: Observations, universe: int) -> Recipe:
    """Return the recipe for a problem with so many universe points, if that is known."""
    k = int(np.count_nonzero(seen.sizes))
    if seen.acyclic:
        return RECIPES["tree"]
    if len(seen.sizes) and (seen.sizes == universe).all():
        return RECIPES["full"]
    if k <= _FEW:
        return RECIPES["few"]
    return RECIPES["compared" if 2 * len(seen.pairs) >= _COMPARED * k * (k - 1) else "nearby"]


def affordable(matchings: Matchings, *, sampled: bool = True) -> bool:
    """Return whether a problem is small enough for a state, and for labels to be sampled."""
    sizes, (i, j) = matchings.sizes, matchings.pair_objects.T
    near = np.bincount(i, sizes[j], matchings.n_objects) + np.bincount(j, sizes[i], matchings.n_objects)
    scores = int((near * sizes).max(initial=0))
    cells = matchings.n_objects * matchings.n_points
    most = _MAX_SAMPLED_CELLS if sampled else _MAX_CELLS
    return cells <= most and scores <= _MAX_SCORES and _work(matchings) <= _MAX_WORK


def _work(matchings: Matchings) -> int:
    """Return how many points × labels near them there are, at most."""
    sizes = matchings.sizes.astype(np.int64)
    i, j = matchings.pair_objects.T
    return int(2 * (sizes[i] * sizes[j]).sum())


def improve(seen: Observations, labels: Ints, *, seed: int, most: int | None, exchange: bool = True) -> State:
    """Move labels to likelier ones, at temperature zero, until none changes."""
    state = State(seen, labels, seed=seed, most=most)
    for _ in range(_IMPROVE):
        before = state.labels.copy()
        state.move(temperature=0.0)
        if np.array_equal(before, state.labels):
            # Objects one by one have no more to gain; labels may have.
            if not exchange:
                break
            state.climb()
            if np.array_equal(before, state.labels):
                break
        state.fit()
    return state


def search(
    matchings: Matchings,
    universe: int,
    *,
    sure: bool,
    starts: Mapping[str, Start],
    rng: np.random.Generator,
    report: Callable[[Progress], bool],
) -> Found:
    """Sample labels and decide on those of largest expected fscore.

    Parameters
    ----------
    universe, sure
        Labels that more than one point may carry at most, if that is certain.
    starts
        What makes the labels of each start that the recipe names; "given" is tried as well.
    report
        Told how far things are; returns whether to stop.
    """
    seen = observe(matchings)
    recipe, most = recipe_for(seen, universe if sure else -1), universe if sure else None
    if not recipe.samples:
        labels = starts[recipe.starts[0]]()
        assert labels is not None
        return Found(labels if most is None else largest(labels, most))
    names = [*(["given"] if "given" in starts else []), *recipe.starts]
    if _work(matchings) > _MAX_ALONE and len(names) > 1:
        names = [name for name in names if name != "alone"]
    visits = len(names) * recipe.burn + 2 * recipe.samples * recipe.every
    cost = _work(matchings) + _PER_POINT * matchings.n_points
    scale = min(1.0, max(_BUDGET / cost, _LEAST_SWEEPS) / visits)
    burn, samples = max(int(scale * recipe.burn), 4), max(int(scale * recipe.samples), 4)
    largest_object = int(seen.sizes.max(initial=0))
    climbs = largest_object**2 * (universe + largest_object) <= _MAX_ASSIGNED
    exchanges, total = _exchanges(seen), int(scale * visits)
    climb = max(burn // (2 * recipe.rounds + 1), 1)  # in the first half of the burn-in
    found, done, states = Found(np.full(matchings.n_points, -1, dtype=np.int64)), 0, {}

    def told(stage: str) -> bool:
        return report(Progress(stage, min(done, total), total))

    try:
        for name in names:
            begin = np.arange(matchings.n_points) if name == "alone" else starts[name]()
            if begin is None:  # it costs too much
                if names != [name]:
                    continue
                begin = starts["tracks"]()
                assert begin is not None
            seed = int(rng.integers(2**62))
            if name == "spectral" and climbs:
                state = improve(seen, begin, seed=seed, most=most)
                found.labels = shared(state.compact())
                if matchings.n_objects > _FEW and (samples_of := _agreeing(state, matchings)) is not None:
                    found.samples, found.starts = samples_of, {name: state.log_posterior()}
                    found.log_posterior = found.starts[name]
                    found.expected_fscore = samples_of.expected_fscore(found.labels)
                    return found
            else:
                state = State(seen, begin, seed=seed, most=most, informed=name != "alone")
            states[name] = state
            for n in range(burn):
                if n >= _LEARN_AFTER or name != "alone":
                    state.fit()
                state.move(exchanges=exchanges)
                if (n + 1) % climb == 0 and n < burn // 2 and climbs:
                    for _ in range(_CLIMBS):
                        state.fit()
                        state.climb()
                done += 1
                if n % 8 == 0 and told(f"{name} start"):
                    break
            found.starts[name] = _mean_log_posterior(state, exchanges)
            if found.starts[name] >= max(found.starts.values()):
                found.labels = largest(shared(state.compact()), state.most)
                found.log_posterior = found.starts[name]
            if told(f"{name} start"):
                return found
        chains = _two_chains(states, found.starts, seen, most, rng, few=matchings.n_objects <= _FEW)
        drawn: tuple[list[NDArray[np.int32]], ...] = ([], [])
        for n in range(samples):
            for state, kept in zip(chains, drawn, strict=True):
                for _ in range(recipe.every):
                    state.fit()
                    state.move(exchanges=exchanges)
                kept.append(state.compact())
                done += recipe.every
            if told("samples") and n:
                break
    except KeyboardInterrupt:
        if found.log_posterior != found.log_posterior and (found.labels < 0).all():
            raise
        report.interrupted = True  # type: ignore[attr-defined]
        return found
    one, two = (Samples.of(seen.offsets, np.array(kept)) for kept in drawn)
    limit = matchings.n_points if most is None else most
    found.samples = Samples.of(seen.offsets, np.array([*drawn[0], *drawn[1]]))
    found.labels = decide(found.samples, limit)[0]
    # What one chain decides on is judged by the other, which did not choose it.
    found.expected_fscore = (
        two.expected_fscore(decide(one, limit)[0]) + one.expected_fscore(decide(two, limit)[0])
    ) / 2
    return found


def _exchanges(seen: Observations) -> int:
    """Return how many exchanges a visit of all objects tries: fewer where each costs more."""
    degree = 2 * len(seen.pairs) / max(len(seen.sizes), 1)
    return int(len(seen.owner) * min(_MOST_EXCHANGES, _OFTEN / max(degree, 1.0)))


def _mean_log_posterior(state: State, exchanges: int) -> float:
    """Return the mean over a few visits, as single labels vary."""
    values = []
    for _ in range(_JUDGING_VISITS):
        state.fit()
        state.move(exchanges=exchanges)
        values.append(state.log_posterior())
    return float(np.mean(values))


def _two_chains(
    states: dict[str, State], values: dict[str, float], seen: Observations, most: int | None,
    rng: np.random.Generator, *, few: bool,
) -> list[State]:  # fmt: skip
    """Return two states to sample from: the two likeliest, or the likeliest twice if the other is far behind."""
    order = sorted(states, key=lambda name: -values[name])
    best = states[order[0]]
    if len(order) > 1 and (few or values[order[0]] - values[order[1]] < _GAP):
        return [best, states[order[1]]]
    return [best, State(seen, best.labels, seed=int(rng.integers(2**62)), most=most)]


def _agreeing(state: State, matchings: Matchings) -> Samples | None:
    """Return a few samples if they hardly differ from the labels, or None."""
    before, drawn = state.compact(), []
    for _ in range(_SURE_SWEEPS):
        state.fit()
        state.move()
        drawn.append(state.compact())
    samples = Samples.of(state.seen.offsets, np.array(drawn))
    return samples if samples.expected_fscore(before.astype(np.int64)) >= _SURE else None
