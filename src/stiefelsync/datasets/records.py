"""Simulated records of recordings in several music catalogues, and the scored pairs of a record linkage program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync.datasets._drawn import drawn
from stiefelsync.errors import InputError
from stiefelsync.stiefel.checks import generator

__all__ = ["LinkedRecords", "records"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Distances that look like edit distances: artists lie well apart, albums of an artist nearer, titles nearer still.
_SPREAD = {"artist": 6.0, "album": 4.0, "title": 3.0, "length": 3.0}
_PER_ARTIST, _PER_ALBUM = 12, 4
_LOOK_ALIKE = 0.15  # share of entities that are another version of a recording: same artist, nearly the same title
_MISSING = 0.1  # share of the values that a record lacks
_BAD, _BAD_NOISE = 0.08, 3.0  # share of records that somebody typed in carelessly, and how much worse they are
_BLOCKING_LOSES = 0.1  # share of the pairs of one entity that no blocking rule finds
_TRAINING = 400  # entities of the separate draw that the scores are fitted on
_LOWEST = 0.01  # pairs less probable are not written, as with threshold_match_probability


@dataclass(frozen=True, eq=False)
class LinkedRecords:
    """Scored pairs of records, and which records are really the same.

    Attributes
    ----------
    pairs
        Columns of the table of pairs, with the names that Splink gives them: ``match_probability``,
        ``source_dataset_l``, ``unique_id_l``, ``source_dataset_r``, ``unique_id_r``.
    records
        Columns of the table of records: ``source_dataset``, ``unique_id``, ``entity`` (the truth).
    """

    pairs: dict[str, NDArray[Any]]
    records: dict[str, NDArray[Any]]

    @typed
    def truth_of(self, source: Any, ids: Any) -> Ints:
        """Return the entity of given records, shape (n,), by their sources and ids.

        Examples
        --------
        >>> drawn = records(20, sources=3, rng=0)
        >>> bool((drawn.truth_of(*list(drawn.records.values())[:2]) == drawn.records["entity"]).all())
        True
        """
        keys = zip(self.records["source_dataset"].tolist(), self.records["unique_id"].tolist(), strict=True)
        known = dict(zip(keys, self.records["entity"].tolist(), strict=True))
        asked = zip(np.asarray(source).tolist(), np.asarray(ids).tolist(), strict=True)
        return np.array([known[key] for key in asked], dtype=np.int64)


@drawn
def records(
    entities: int = 600,
    *,
    sources: int = 5,
    present: float = 0.7,
    duplicates: float = 0.0,
    noise: float = 0.15,
    rng: np.random.Generator | int | None = 0,
) -> LinkedRecords:
    """Draw recordings listed in several catalogues, and score pairs of their records as a linkage program does.

    An entity has an artist, an album, a title and a length. Every source lists it with probability `present`, and a
    share `duplicates` of these records once more. A record repeats the values with errors, lacks some, and may be a bad
    one, which spoils all its scores at once. Some entities are versions of another and look like it. Pairs are
    compared within blocks (nearly the same artist); a tenth of the true pairs is in no block. The probability of a
    pair comes from a logistic regression fitted on a separate draw, so it is calibrated, but says nothing that follows
    from other pairs.

    Parameters
    ----------
    entities
        Number of recordings.
    sources
        Number of catalogues.
    present
        Probability that a catalogue lists a recording.
    duplicates
        Share of records that are followed by a second one of the same recording in the same source. Pairs inside a
        source are scored only where this is above 0.
    noise
        Size of the errors of ordinary records, on the scale on which titles of an album differ by about 2.
    rng
        Generator or seed; the same seed gives the same tables.

    Returns
    -------
    LinkedRecords

    Notes
    -----
    About O(entities · sources²): blocks do not grow. What the shape is modelled on are the public benchmarks of
    records of music (five sources, look-alike versions, missing and spoilt fields); no data of theirs is in it.

    Examples
    --------
    >>> drawn = records(50, sources=3, rng=0)
    >>> sorted(drawn.pairs)
    ['match_probability', 'source_dataset_l', 'source_dataset_r', 'unique_id_l', 'unique_id_r']
    """
    if entities < 1 or sources < 1:
        raise InputError(f"records need at least one entity and one source, got {entities} and {sources}")
    if not 0 < present <= 1 or not 0 <= duplicates <= 1:
        raise InputError(f"present must lie in (0, 1] and duplicates in [0, 1], got {present} and {duplicates}")
    draws = generator(rng)
    inside = duplicates > 0
    # The score is fitted where truth is known: on other entities, drawn the same way.
    training = _draw(max(entities, _TRAINING), sources, present, duplicates, noise, draws)
    a, b = _candidates(training, inside, draws)
    weights = _logistic(_features(training, a, b), training.entity[a] == training.entity[b])
    drawn = _draw(entities, sources, present, duplicates, noise, draws)
    a, b = _candidates(drawn, inside, draws)
    probability = 1 / (1 + np.exp(-_features(drawn, a, b) @ weights))
    kept = probability >= _LOWEST
    a, b, probability = a[kept], b[kept], probability[kept]
    names = np.array([f"catalogue_{letter}" for letter in _letters(sources)])
    ids = _ids(drawn.source, draws)
    pairs = {
        "match_probability": probability.round(6),
        "source_dataset_l": names[drawn.source[a]],
        "unique_id_l": ids[a],
        "source_dataset_r": names[drawn.source[b]],
        "unique_id_r": ids[b],
    }
    listed = {"source_dataset": names[drawn.source], "unique_id": ids, "entity": drawn.entity}
    return LinkedRecords(pairs, listed)


@dataclass(frozen=True, eq=False)
class _World:
    """Records, grouped by source: entity and source of each, (m,), and the values of each attribute, NaN = missing."""

    entity: Ints
    source: Ints
    values: dict[str, Floats]


def _draw(
    entities: int, sources: int, present: float, duplicates: float, noise: float, draws: np.random.Generator
) -> _World:
    """Draw entities, and the records that sources have of them."""
    artist = np.arange(entities) // _PER_ARTIST
    album = np.arange(entities) // _PER_ALBUM
    # The whole world grows with the number of artists, so that blocks stay as crowded as they are.
    wide = _SPREAD["artist"] * np.sqrt(artist[-1] + 1)
    true = {
        "artist": wide * draws.random((artist[-1] + 1, 2))[artist],
        "album": _SPREAD["album"] * draws.standard_normal((album[-1] + 1, 3))[album],
        "title": _SPREAD["title"] * draws.standard_normal((entities, 3)),
        "length": _SPREAD["length"] * draws.standard_normal((entities, 1)),
    }
    # Another version of the recording before: live, remixed, remastered.
    alike = np.flatnonzero((draws.random(entities) < _LOOK_ALIKE) & (np.arange(entities) % _PER_ALBUM > 0))
    for n in alike.tolist():
        true["title"][n] = true["title"][n - 1] + 0.7 * draws.standard_normal(3)
        true["length"][n] = true["length"][n - 1] + 1.5 * draws.standard_normal(1)
    listed = draws.random((sources, entities)) < present
    again = listed & (draws.random((sources, entities)) < duplicates)
    source, entity = np.nonzero(np.concatenate([listed, again], axis=1))
    entity %= entities
    order = np.lexsort((draws.random(len(source)), source))
    source, entity = source[order], entity[order]
    # How carefully a record was typed in holds for all its values: its scores are wrong together.
    care = noise * draws.lognormal(0, 0.35, len(entity)) * np.where(draws.random(len(entity)) < _BAD, _BAD_NOISE, 1.0)
    values = {}
    for name, value in true.items():
        seen = value[entity] + care[:, None] * draws.standard_normal((len(entity), value.shape[1]))
        if name != "artist":
            seen[draws.random(len(entity)) < _MISSING] = np.nan
        values[name] = seen
    return _World(entity, source, values)


def _candidates(world: _World, inside: bool, draws: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the pairs of records a < b that blocking compares: those whose artists look nearly the same."""
    where = np.floor(world.values["artist"] / 3.0).astype(np.int64)
    where -= where.min(axis=0, initial=0)
    width = int(where[:, 1].max(initial=0)) + 3
    parts = []
    # Every record meets those of its own cell and of half of the cells around it, so that no pair is met twice.
    cell = (where[:, 0] + 1) * width + where[:, 1] + 1
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    for step in (0, 1, width - 1, width, width + 1):
        first = np.searchsorted(ordered, cell + step)
        count = np.searchsorted(ordered, cell + step, side="right") - first
        a = np.repeat(np.arange(len(cell)), count)
        stop = np.cumsum(count)
        b = order[np.repeat(first - stop + count, count) + np.arange(int(count.sum()))]
        parts.append(np.stack([a, b], axis=1)[(step > 0) | (a < b)])
    pairs = np.sort(np.concatenate(parts), axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    a, b = pairs.T
    # A key that both must share is spoilt now and then, whoever they are.
    found = draws.random(len(a)) >= _BLOCKING_LOSES
    found &= np.linalg.norm(world.values["artist"][a] - world.values["artist"][b], axis=1) < 2.5
    if not inside:
        found &= world.source[a] != world.source[b]
    return a[found], b[found]


def _features(world: _World, a: Ints, b: Ints) -> Floats:
    """Return what the score of a pair is made of: (n, f) distances, their squares, and what is missing."""
    columns = [np.ones(len(a))]
    for value in world.values.values():
        distance = np.linalg.norm(value[a] - value[b], axis=1)
        missing = np.isnan(distance)
        distance = np.where(missing, 0.0, np.minimum(distance, 4.0))
        columns += [distance, distance**2, missing.astype(float)]
    return np.stack(columns, axis=1)


def _logistic(X: Floats, same: NDArray[np.bool_]) -> Floats:
    """Return the weights, (f,), of a slightly regularised logistic regression, by Newton's method."""
    w = np.zeros(X.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(X @ w, -30, 30)))
        curvature = (X * (p * (1 - p))[:, None]).T @ X + 1e-2 * np.eye(len(w))
        step = np.linalg.solve(curvature, X.T @ (same - p) - 1e-2 * w)
        w += step
        if np.abs(step).max() < 1e-8:
            break
    return w


def _letters(n: int) -> list[str]:
    """Return n short different words: a, b, and on to z, then aa, ab and so on."""
    words: list[str] = []
    for i in range(n):
        word, rest = "", i
        while True:
            word, rest = chr(ord("a") + rest % 26) + word, rest // 26 - 1
            if rest < 0:
                break
        words.append(word)
    return words


def _ids(source: Ints, draws: np.random.Generator) -> NDArray[np.str_]:
    """Return an id for every record, (m,), unique within its source only, as sources have them."""
    ids = np.empty(len(source), dtype="U12")
    for s in np.unique(source).tolist():
        own = np.flatnonzero(source == s)
        ids[own] = [f"r{number:06d}" for number in draws.permutation(2 * len(own))[: len(own)]]
    return ids
