"""What synchronisation returns: the answer, what it reaches, and what it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync._html import facts
from stiefelsync.errors import InputError, counted
from stiefelsync.matching.difference import Difference, difference
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.result import Status
from stiefelsync.sync.certificate import upper_bound
from stiefelsync.sync.confidence import match_confidence, track_confidence
from stiefelsync.sync.constraints import Constraints
from stiefelsync.sync.frame import Frame, frame_of
from stiefelsync.sync.method import METHODS, Callback, Outcome
from stiefelsync.sync.outcome import Record
from stiefelsync.sync.scored_pairs import ScoredPairs
from stiefelsync.sync.scores import MISSING, are_probabilities, match_values, move_confidence

if TYPE_CHECKING:
    from stiefelsync.matching.universe import UniverseEstimate

__all__ = ["Synchronisation"]


@dataclass(frozen=True, eq=False, repr=False)
class Synchronisation(Record):
    """One consistent answer to contradicting pairwise matches.

    Everything beyond the labels is computed on demand.

    Two results are equal if problem and answer are, however long they took.

    Attributes
    ----------
    input
        The matchings that were synchronised.
    method
        Name of the method.
    outcome
        What the method returned: labels, relaxed solution, history, details.
    universe_size
        Number of universe points the method worked with; labels lie in 0 … universe_size − 1, or
        are -1. They are numbered by first appearance without holes, so that ``labels.max() + 1``
        universe points are really used.
    estimate
        Where the universe size was estimated: how, and how surely.
    timings
        Seconds per stage.
    constraints
        What it was told for sure; :meth:`extend` goes on holding to it.
    pairs
        With a prior on pairs of objects: what is believed of them.

    Examples
    --------
    >>> from stiefelsync import Matchings, synchronise
    >>> result = synchronise(Matchings.from_labels([0, 1, 1, 0, 0, 1], [2, 2, 2]), 2, method="sparse-stiefel")
    >>> result.objective, result.gap, [track.tolist() for track in result.tracks()]
    (18.0, 0.0, [[[0, 0], [1, 1], [2, 0]], [[0, 1], [1, 0], [2, 1]]])
    """

    input: Matchings
    method: str
    outcome: Outcome
    universe_size: int
    estimate: UniverseEstimate | None = None
    timings: Mapping[str, float] = field(default_factory=dict, compare=False)
    constraints: Constraints | None = None
    pairs: ScoredPairs | None = None

    @property
    def consistent(self) -> bool:
        """Whether the answer is a labelling, hence cycle-consistent."""
        return self.outcome.labels is not None

    @property
    def labels(self) -> NDArray[np.int64]:
        """Universe point of every point, -1 = unmatched; shape (m,)."""
        if self.outcome.labels is None:
            raise InputError(f"method {self.method!r} is not cycle-consistent and gives no labels; use .matchings()")
        return self.outcome.labels

    @typed
    def extend(
        self,
        matchings: Matchings,
        *,
        constraints: Constraints | None = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> Synchronisation:
        """Return the answer to the problem as it is now, re-solving what changed.

        See :func:`~stiefelsync.sync.extend`.

        Parameters
        ----------
        matchings
            The whole problem: with new objects or matches, or without some.
        constraints
            About its points; those that the answer holds already go on to hold.
        """
        from stiefelsync.sync.extend import extend  # which needs this class

        return extend(self, matchings, constraints=constraints, callback=callback, **options)

    @property
    def status(self) -> Status:
        """How the run ended; it is a text, and the text is advice."""
        return self.outcome.status

    @property
    def converged(self) -> bool:
        """Whether the method came to its own end, not to that of a limit or of the callback."""
        return self.status.converged

    @cached_property
    def difference(self) -> Difference:
        """What became of the input: matches kept, removed and added, tracks and conflicts before and after."""
        if self.outcome.labels is not None:
            return difference(self.input, self.outcome.labels)
        assert self.outcome.matchings is not None
        return difference(self.input, self.outcome.matchings)

    @typed
    def matchings(self) -> Matchings:
        """Return all matches of the answer, those the input did not have included."""
        return self.difference.all_matches

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether the answer has each input match; shape (M,)."""
        return self.difference.kept

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """How strongly the answer supports each input match, from 0 to 1; shape (M,).

        See :func:`match_confidence`.
        """
        told = self.outcome.details.match_confidence(self.input)
        return match_confidence(self.input, self.labels) if told is None else told

    @cached_property
    def track_confidence(self) -> NDArray[np.float64]:
        """Mean confidence of the input matches inside each of :meth:`tracks`; shape (T,).

        NaN where there is none.

        Examples
        --------
        >>> from stiefelsync import Matchings, synchronise
        >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[0, 0], [1, 1]]}, [2, 1, 2])
        >>> synchronise(problem, 2, method="union-find").track_confidence.tolist()
        [0.75, 0.5]
        """
        held = np.bincount(self.labels[self.labels >= 0])
        return track_confidence(self.input, self.labels, self.confidence)[held > 1]

    @cached_property
    def point_confidence(self) -> NDArray[np.float64]:
        """Confidence of the track of every point, NaN for one in none; shape (m,).

        A method that knows how sure it is of every single point is believed. Points that are
        records, with scores that are probabilities, are asked how much better their cluster suits
        them than the next best place (:func:`~stiefelsync.sync.scores.move_confidence`).
        """
        told = self.outcome.details.point_confidence()
        if told is not None:
            return told
        if self.input.records is not None and are_probabilities(self.input):
            alone = self.labels < 0
            labels = np.where(alone, self.labels.max(initial=-1) + np.cumsum(alone), self.labels)
            return move_confidence(self.input.endpoints, match_values(self.input), labels, MISSING)
        by_label = track_confidence(self.input, self.labels, self.confidence)
        return np.append(by_label, np.nan)[self.labels]

    @typed
    def added(self) -> Matchings:
        """Return the matches of the answer that the input did not have."""
        return self.difference.added

    @cached_property
    def objective(self) -> float:
        """tr(PᵀWP), or ⟨W, X⟩ for a method that is not cycle-consistent."""
        weights, found = self.input.weights, self.difference
        kept = found.n_kept if weights is None else weights[found.kept].sum()
        return float(self.input.n_points + 2 * kept)

    @cached_property
    def upper_bound(self) -> float:
        """No consistent answer has a larger objective."""
        return upper_bound(self.input)

    @property
    def gap(self) -> float:
        """Share of the upper bound that the objective leaves open; 0 proves the answer optimal."""
        return max(0.0, 1 - self.objective / self.upper_bound)

    @typed
    def tracks(self) -> list[NDArray[np.int64]]:
        """Return the universe points seen by at least two objects, each as an (n, 2) array of (object, point)."""
        order = np.argsort(self.labels, kind="stable")
        order = order[self.labels[order] >= 0]
        owner = self.input.point_objects[order]
        rows = np.stack([owner, order - self.input.offsets[owner]], axis=1)
        cuts = np.flatnonzero(np.diff(self.labels[order])) + 1
        return [track for track in np.split(rows, cuts) if len(track) > 1]

    @typed
    def table(self) -> NDArray[np.int64]:
        """Return tracks × objects: the point of each object in each track of :meth:`tracks`, -1 = absent.

        Returns
        -------
        (T, k) int64
            Points are numbered within their object.

        Examples
        --------
        >>> from stiefelsync import Matchings, synchronise
        >>> problem = Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]], (1, 2): [[0, 0]]}, [2, 2, 1])
        >>> synchronise(problem, 2, method="union-find").table().tolist()
        [[0, 1, -1], [1, 0, 0]]
        """
        tracks = self.tracks()
        found = np.full((len(tracks), self.input.n_objects), -1, dtype=np.int64)
        for row, track in zip(found, tracks, strict=True):
            row[track[:, 0]] = track[:, 1]
        return found

    @typed
    def to_frame(self) -> Frame:
        """Return the answer as a table of one row per point, for any library of data frames.

        Returns
        -------
        Frame
            A dict of columns: ``track`` (-1 = in none), ``object``, ``point``, ``x`` and ``y``
            where known, and ``confidence``; of records ``cluster_id``, their source and own id, and
            ``confidence``. pandas, polars and Arrow make a frame of it by their usual constructors.

        Examples
        --------
        >>> from stiefelsync import Matchings, synchronise
        >>> result = synchronise(Matchings.from_labels([0, 1, 1, 0], [2, 2]), 2, method="union-find")
        >>> {name: column.tolist() for name, column in result.to_frame().items()}["track"]
        [0, 1, 1, 0]
        """
        return frame_of(self)

    @typed
    def to_networkx(self) -> Any:
        """Return all matches of the answer as a `networkx.Graph`.

        See :meth:`Matchings.to_networkx`.
        """
        return self.matchings().to_networkx()

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        figures = self.as_dict()
        names = (
            "status", "objects", "points", "universe_size", "tracks", "points_unmatched", "matches_before",
            "matches_kept", "matches_removed", "matches_added",
        )  # fmt: skip
        told = {name.replace("_", " "): figures.get(name) for name in names}
        return facts(f"Synchronisation by {self.method}", told | {"seconds": float(sum(self.timings.values()))})

    @typed
    def as_dict(self, *, certificate: bool = False) -> dict[str, Any]:
        """Return the figures of :meth:`summary` under stable names, ready for JSON.

        With `certificate` those of the upper bound are among them, which may take as long as
        solving.
        """
        labels = self.outcome.labels
        figures: dict[str, Any] = {
            "method": self.method,
            "status": str(self.status),
            "consistent": labels is not None,
            "objects": self.input.n_objects,
            "points": self.input.n_points,
            "universe_size": self.universe_size,
            "matches_before": self.input.n_matches,
            "matches_kept": self.difference.n_kept,
            "matches_removed": self.input.n_matches - self.difference.n_kept,
            "matches_added": self.difference.n_added,
            "objective": self.objective,
            **({"upper_bound": self.upper_bound, "gap": self.gap} if certificate else {}),
            "iterations": self.outcome.n_iter,
            "seconds": dict(self.timings),
        }
        if labels is not None:
            counts = np.bincount(labels[labels >= 0])
            figures["tracks"] = int((counts > 1).sum())
            figures["points_unmatched"] = int(self.input.n_points - counts[counts > 1].sum())
        if self.pairs is not None:
            figures |= self.pairs.figures(self.input)
        return figures | self.outcome.details.figures(self.input)

    @typed
    def summary(self, *, certificate: bool = False) -> str:
        """Return the answer in a few lines of text, with how far it can be from the best one if asked to."""
        f = self.as_dict(certificate=certificate)
        answer = (
            f"{counted(f['tracks'], 'track')}, {counted(f['points_unmatched'], 'point')} unmatched"
            if self.consistent
            else "not cycle-consistent"
        )
        bound = f", at most {f['upper_bound']:,.6g} possible (gap {f['gap']:.2%})" if certificate else ""
        rules = [f"  {f['rules']}"] if "rules" in f else []
        if self.pairs is not None:
            rules.append(
                f"  {counted(len(f['pairs_left_out']), 'pair')} left out by scores,"
                f" {counted(len(f['disputed_pairs']), 'pair')} judged otherwise than scored"
            )
        lines = [
            f"{self.method}: {METHODS[self.method].summary}" if self.method in METHODS else self.method,
            f"  {counted(f['objects'], 'object')}, {counted(f['points'], 'point')}, universe of"
            f" {f['universe_size']:,}: {answer}",
            f"  matches {f['matches_before']:,} → {f['matches_kept']:,} kept, {f['matches_removed']:,} removed,"
            f" {f['matches_added']:,} added",
            *rules,
            f"  objective {f['objective']:,.6g}" + bound,
            f"  {f['status']}, {sum(self.timings.values()):.3g} s",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        size, status = self.universe_size, str(self.status)
        return f"Synchronisation({self.method}, {self.input!r}, universe_size={size}, {status!r})"
