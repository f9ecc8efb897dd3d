"""What somebody knows for sure: points that are one, and points that are not.

A method need not know of constraints: its labels are changed as little as makes them hold. Taking
the matches that contradict them from its problem as well was tried, and makes answers worse: what a
method learns of errors from all matches is no longer true of those that are left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stiefelsync._border import typed
from stiefelsync._core.binding import call
from stiefelsync.errors import InputError, counted
from stiefelsync.matching.graph import connected, numbered
from stiefelsync.matching.matchings import Matchings
from stiefelsync.stiefel.checks import as_integers
from stiefelsync.sync.outcome import Record

__all__ = ["Constrained", "Constraints", "constrain", "owners"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_LAST_BITS = (1 << 20) - 1

_NOTHING = np.empty((0, 4), dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Constraints(Record):
    """Pairs of points that must have one label, and pairs that cannot.

    Attributes
    ----------
    must, cannot : (n, 4) int64
        Object and point, object and point; points are numbered within their object.

    Examples
    --------
    >>> Constraints(must=[[0, 3, 1, 5]])
    Constraints(1 must link, 0 cannot links)
    >>> Constraints.keep([[[0, 3], [1, 5], [2, 2]]]).must.tolist()
    [[0, 3, 1, 5], [1, 5, 2, 2]]
    """

    must: Ints = field(default_factory=lambda: _NOTHING)
    cannot: Ints = field(default_factory=lambda: _NOTHING)

    @typed
    def __post_init__(self) -> None:
        for name in ("must", "cannot"):
            object.__setattr__(self, name, _as_links(getattr(self, name), name))

    @classmethod
    @typed
    def keep(cls, tracks: Iterable[ArrayLike]) -> Constraints:
        """Return that the points of every one of these tracks stay together; others may join them.

        Parameters
        ----------
        tracks
            Arrays (n, 2) of object and point, such as ``result.tracks()`` returns.
        """
        chains = [_chain(track) for track in tracks]
        return cls(must=np.concatenate([_NOTHING, *chains]))

    @classmethod
    @typed
    def split(cls, *parts: ArrayLike) -> Constraints:
        """Return that every part stays together, and that no two parts are in one track.

        Parameters
        ----------
        parts
            Arrays (n, 2) of object and point, of which each holds at least one.

        Examples
        --------
        >>> Constraints.split([[0, 3], [1, 5]], [[2, 2]]).cannot.tolist()
        [[0, 3, 2, 2]]
        """
        firsts = np.array([as_integers(part, "a part").reshape(-1, 2)[0] for part in parts])
        one, two = np.triu_indices(len(firsts), 1)
        return cls(cls.keep(parts).must, np.concatenate([firsts[one], firsts[two]], axis=1))

    @classmethod
    @typed
    def reject(cls, tracks: Iterable[ArrayLike]) -> Constraints:
        """Return that no two points of any of these tracks are one.

        Examples
        --------
        >>> Constraints.reject([[[0, 3], [1, 5], [2, 2]]]).cannot.tolist()
        [[0, 3, 1, 5], [0, 3, 2, 2], [1, 5, 2, 2]]
        """
        found = [_NOTHING]
        for track in tracks:
            rows = as_integers(track, "a track").reshape(-1, 2)
            one, two = np.triu_indices(len(rows), 1)
            found.append(np.concatenate([rows[one], rows[two]], axis=1))
        return cls(cannot=np.concatenate(found))

    def __or__(self, other: Constraints) -> Constraints:
        """Return all that either says."""
        return Constraints(*(np.concatenate([getattr(x, name) for x in (self, other)]) for name in ("must", "cannot")))

    def __len__(self) -> int:
        return len(self.must) + len(self.cannot)

    def __repr__(self) -> str:
        return f"Constraints({counted(len(self.must), 'must link')}, {counted(len(self.cannot), 'cannot link')})"

    @typed
    def carried(self, before: Matchings, after: Matchings, place: Ints) -> Constraints:
        """Return what still holds of points whose objects have other numbers now.

        Parameters
        ----------
        before, after
            The problem these constraints are about, and the one they will be.
        place : (k,) int64
            Number that every object has in `after`, -1 if it is gone.

        Examples
        --------
        What is said by way of an object that is gone still holds.

        >>> three, two = (Matchings.from_labels([0] * k, [1] * k) for k in (3, 2))
        >>> Constraints.keep([[[0, 0], [1, 0], [2, 0]]]).carried(three, two, np.array([0, -1, 1])).must.tolist()
        [[0, 0, 1, 0]]
        """
        points, unit, apart = _units(before, self)
        owner = before.point_objects[points].astype(np.int64)
        index = points - before.offsets[owner]
        left = np.flatnonzero((place[owner] >= 0) & (index < after.sizes[place[owner]]))
        left = left[np.argsort(unit[left], kind="stable")]
        rows, units = np.stack([place[owner[left]], index[left]], axis=1), unit[left]
        links = np.flatnonzero(units[1:] == units[:-1])
        first = np.full(len(points), -1, dtype=np.int64)
        first[units[::-1]] = np.arange(len(units))[::-1]
        ends = first[apart]
        ends = ends[(ends >= 0).all(axis=1)]
        return Constraints(
            np.concatenate([rows[links], rows[links + 1]], axis=1),
            np.concatenate([rows[ends[:, 0]], rows[ends[:, 1]]], axis=1),
        )


@dataclass(frozen=True, eq=False)
class Constrained:
    """A problem, and what is known of its points for sure.

    Attributes
    ----------
    problem
        All its matches.
    owner : (m,) int64
        No two points of one owner are ever one: its object, or its source where that holds
        everything once.
    points : (n,) int64
        Points that constraints are about, ascending.
    unit : (n,) int64
        Which of them must be one: the place in `points` of the first.
    apart : (c, 2) int64
        Units that cannot be one.
    """

    problem: Matchings
    owner: Ints
    points: Ints
    unit: Ints
    apart: Ints

    def possible(self, ends: Ints) -> Bools:
        """Return which matches, pairs of global points (n, 2), do not contradict the constraints; shape (n,).

        Examples
        --------
        Point 0 of object 0 is point 0 of object 2, so that its match with point 1 of that is wrong.

        >>> problem = Matchings.from_pairs({(0, 2): [[0, 1], [1, 0]], (0, 1): [[0, 0]]}, [2, 1, 2])
        >>> constrain(problem, Constraints(must=[[0, 0, 2, 0]])).possible(problem.endpoints).tolist()
        [True, False, False]
        """
        n = len(self.points)
        unit_of = np.full(self.problem.n_points, -1, dtype=np.int64)
        unit_of[self.points] = self.unit
        a, b = ends.T
        u, v = unit_of[a], unit_of[b]
        # Matches between units that are apart.
        asked = np.flatnonzero((u >= 0) & (v >= 0))
        one, two = self.apart.T
        barred = np.sort(np.minimum(one, two) * n + np.maximum(one, two))
        key = np.minimum(u[asked], v[asked]) * n + np.maximum(u[asked], v[asked])
        wrong = [asked[_find(barred, key) >= 0]]
        # A unit has its point of an object already: its matches with others of that object are
        # wrong.
        width = int(self.owner.max(initial=-1)) + 1
        held = self.unit * width + self.owner[self.points]
        order = np.argsort(held)
        for mine, other in ((u, b), (v, a)):
            asked = np.flatnonzero(mine >= 0)
            at = _find(held[order], mine[asked] * width + self.owner[other[asked]])
            wrong.append(asked[(at >= 0) & (self.points[order[at]] != other[asked])])
        possible = np.ones(len(ends), dtype=bool)
        possible[np.concatenate(wrong)] = False
        return possible

    def enforce(self, labels: Ints) -> Ints:
        """Return labels under which all constraints hold, changed where they did not; -1 = unmatched.

        Tracks in which no constraint is violated stay as they are. Where points that must be one
        are in several tracks, these become one, if they have no two points of one object and
        nothing holds them apart; otherwise the points go to the track that more matches join them
        with, and take the place of other points of their objects there. A track that holds points
        which cannot be one is built anew from its own matches, those in most triangles first.

        Parameters
        ----------
        labels : (m,) int64
            No two points of an object share one.

        Notes
        -----
        O(m + M) and a few sorts of the tracks concerned.
        """
        known = labels >= 0
        d = int(labels.max(initial=-1)) + 1
        names = np.where(known, labels, d - 1 + np.cumsum(~known))
        given = names[self.points]
        mixed_unit = np.zeros(len(self.points), dtype=bool)
        mixed_unit[self.unit[given != given[self.unit]]] = True
        mixed = mixed_unit[self.unit]
        met = self.apart[(given[self.apart[:, 0]] == given[self.apart[:, 1]]) & ~mixed_unit[self.apart].any(axis=1)]
        n_names = int(names.max(initial=-1)) + 1
        forbidden, concerned = np.zeros(n_names, dtype=bool), np.zeros(n_names, dtype=bool)
        forbidden[given[met]] = True
        concerned |= forbidden
        concerned[given[mixed]] = True
        if not concerned.any():
            return labels
        here = np.flatnonzero(concerned[names])
        local = np.full(len(names), -1, dtype=np.int64)
        local[here] = np.arange(len(here))
        part = _Part(self, here, local, names[here], forbidden[names[here]], mixed)
        edges, owner = part.order()
        track = np.empty(len(owner), dtype=np.int64)
        call("join_in_order", owner, len(owner), int(owner.max()) + 1, edges, len(edges), track)
        track = numbered(track[: len(here)])
        # What was unmatched and is still alone stays unmatched.
        alone = (np.bincount(track)[track] == 1) & ~known[here]
        changed = labels.copy()
        changed[here] = np.where(alone, -1, d + track)
        return changed


@dataclass(frozen=True, eq=False)
class _Part:
    """The tracks that have to change, their points numbered from 0: in which order to join them anew.

    Attributes
    ----------
    here : (p,) int64
        The points.
    local : (m,) int64
        The number of each point of the problem here, -1 for others.
    name : (p,) int64
        The track each of them had.
    forbidden : (p,) bool
        Whether that held points which cannot be one.
    mixed : (n,) bool
        Whether a constrained point is of a unit that was in several tracks.
    """

    about: Constrained
    here: Ints
    local: Ints
    name: Ints
    forbidden: Bools
    mixed: Bools

    def order(self) -> tuple[Ints, Ints]:
        """Return the edges to join along, first come, first served, and the owner of every end."""
        about = self.about
        at = self.local[about.points]
        inside = np.flatnonzero(at >= 0)
        inside = inside[np.argsort(about.unit[inside], kind="stable")]
        unit, point = about.unit[inside], at[inside]
        same = unit[1:] == unit[:-1]
        musts = np.stack([point[:-1][same], point[1:][same]], axis=1)
        # Two units that cannot be one get a point each of an owner made for that, and so never
        # share a track.
        apart = at[about.apart]
        apart = apart[(apart >= 0).all(axis=1)]
        p, c = len(self.here), len(apart)
        virtual = p + np.arange(2 * c).reshape(c, 2)
        bars = np.stack([virtual.ravel(), apart.ravel()], axis=1)
        owner = about.owner[self.here]
        owner = np.append(owner, int(owner.max()) + 1 + np.repeat(np.arange(c), 2))
        mixed_unit = np.full(p, -1, dtype=np.int64)
        chosen = self.mixed[inside]
        mixed_unit[point[chosen]] = unit[chosen]
        edges = [musts, bars, self._edges_inside_forbidden(), *self._blocks(mixed_unit)]
        return np.ascontiguousarray(np.concatenate(edges)), owner

    def _edges_inside_forbidden(self) -> Ints:
        """Return the matches inside tracks that must fall apart, by descending number of triangles, then neighbours.

        The neighbours, in the order of points, keep together what has no match.
        """
        if not self.forbidden.any():
            return np.empty((0, 2), dtype=np.int64)
        a, b = self.matches.T
        inside = self.forbidden[a] & (self.name[a] == self.name[b])
        ends = self.matches[inside]
        ends = ends[np.lexsort(ends.T[::-1])]
        support = np.zeros(len(ends), dtype=np.int64)
        one, two = (np.ascontiguousarray(end) for end in ends.T)
        call("count_edge_triangles", one, two, len(ends), len(self.here), support)
        return np.concatenate([ends[np.argsort(-support, kind="stable")], self._chain(np.flatnonzero(self.forbidden))])

    def _blocks(self, mixed_unit: Ints) -> tuple[Ints, Ints, Ints]:
        """Return edges inside the other tracks, then from units that were in several of them to each of these.

        Parameters
        ----------
        mixed_unit : (p,) int64
            The unit of points of such units, -1 for others.
        """
        placed = np.flatnonzero(mixed_unit >= 0)
        width = int(self.name.max()) + 1
        held = np.unique(mixed_unit[placed] * width + self.name[placed])
        # How many matches, and points of its own, join a unit with each of the tracks it is in.
        key = [mixed_unit[placed] * width + self.name[placed]]
        for mine, other in (self.matches.T, self.matches.T[::-1]):
            which = np.flatnonzero(mixed_unit[mine] >= 0)
            key.append(mixed_unit[mine[which]] * width + self.name[other[which]])
        found = _find(held, np.concatenate(key))
        count = np.bincount(found[found >= 0], minlength=len(held))
        unit, name = np.divmod(held, width)
        order = np.lexsort((name, unit, -count))
        unit, name = unit[order], name[order]
        # The track that a unit is joined with most is its own; of several that want a track, the
        # first clears it.
        own = np.zeros(len(unit), dtype=bool)
        own[np.unique(unit, return_index=True)[1]] = True
        mine = np.flatnonzero(own)
        mine = mine[np.sort(np.unique(name[mine], return_index=True)[1])]
        block = np.flatnonzero((mixed_unit < 0) & ~self.forbidden)
        expelled = self._expelled(block, placed, mixed_unit, unit[mine], name[mine])
        chains = [self._chain(block[~expelled]), self._chain(block[expelled])]
        # Any point of a unit, and any of what stays of a track, stand for the whole.
        keeps = np.full(width, -1, dtype=np.int64)
        keeps[self.name[block[~expelled]]] = block[~expelled]
        of_unit = np.full(len(self.about.points), -1, dtype=np.int64)
        of_unit[mixed_unit[placed]] = placed
        stands = keeps[name]
        reach = stands >= 0
        to = np.stack([of_unit[unit], stands], axis=1)
        return np.concatenate(chains), to[own & reach], to[~own & reach]

    def _expelled(self, block: Ints, placed: Ints, mixed_unit: Ints, unit: Ints, name: Ints) -> Bools:
        """Return which points of tracks make room for a unit with a point of their owner."""
        owner = self.about.owner[self.here]
        width = int(owner.max()) + 1
        claim = np.full(len(self.about.points), -1, dtype=np.int64)
        claim[unit] = name
        claimed = claim[mixed_unit[placed]]
        taken = np.sort((claimed * width + owner[placed])[claimed >= 0])
        return np.asarray(_find(taken, self.name[block] * width + owner[block]) >= 0)

    def _chain(self, points: Ints) -> Ints:
        """Return edges between points that follow each other in one track."""
        points = points[np.argsort(self.name[points], kind="stable")]
        same = self.name[points[1:]] == self.name[points[:-1]]
        return np.stack([points[:-1][same], points[1:][same]], axis=1)

    @cached_property
    def matches(self) -> Ints:
        """The matches here that decide anything, of those that do not contradict the constraints; shape (M', 2).

        They lie in tracks that must fall apart, or lead to a unit that was in several.
        """
        a, b = self.about.problem.endpoints.T
        asked, inside = np.zeros(len(self.local), dtype=bool), np.zeros(len(self.local), dtype=bool)
        inside[self.here] = True
        asked[self.here] = self.forbidden
        asked[self.about.points[self.mixed]] = True
        chosen = np.flatnonzero(asked[a] | asked[b])
        chosen = chosen[inside[a[chosen]] & inside[b[chosen]]]
        ends = self.about.problem.endpoints[chosen]
        return np.asarray(self.local[ends[self.about.possible(ends)]])


def constrain(problem: Matchings, constraints: Constraints) -> Constrained:
    """Check constraints against a problem and each other.

    Raises
    ------
    InputError
        If they are about points that are not there, or contradict each other; the message is the
        shortest chain of them that shows it.

    Examples
    --------
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [2, 1, 1], names=["a", "b", "c"])
    >>> constrain(problem, Constraints(must=[[0, 0, 1, 0], [1, 0, 0, 1]]))
    Traceback (most recent call last):
    stiefelsync.errors.InputError: these constraints contradict each other: point 0 of 'a' must be point 0 of 'b', which
    must be point 1 of 'a'; but points 0 and 1 of 'a' are never one
    >>> known = constrain(problem, Constraints(cannot=[[0, 0, 1, 0]]))
    >>> known.enforce(np.array([0, 1, 0, 0])).tolist()
    [2, 1, 3, 3]
    """
    points, unit, apart = _units(problem, constraints)
    owner = owners(problem)
    width = int(owner.max(initial=-1)) + 1
    key = np.sort(unit * width + owner[points])
    if (key[1:] == key[:-1]).any() or (apart[:, 0] == apart[:, 1]).any():
        raise InputError(_contradiction(problem, constraints, points, unit, owner))
    return Constrained(problem, owner, points, unit, apart)


def owners(problem: Matchings) -> Ints:
    """Return the owner of every point, of whom a track has one point at most; shape (m,).

    It is the object, or the source of records that holds everything once.

    Examples
    --------
    >>> owners(Matchings.from_labels([0, 1, 0], [2, 1])).tolist()
    [0, 0, 1]
    """
    owner = problem.point_objects.astype(np.int64)
    if problem.records is None:
        return owner
    source = problem.records.apart
    return np.where(source >= 0, problem.n_objects + source, owner)


def _units(problem: Matchings, constraints: Constraints) -> tuple[Ints, Ints, Ints]:
    """Return the constrained points, which of them must be one, and which of these units cannot.

    A unit is told by the place of its first point.
    """
    ends = [_points(problem, links) for links in (constraints.must, constraints.cannot)]
    points = np.unique(np.concatenate(ends))
    must, cannot = (np.searchsorted(points, pairs) for pairs in ends)
    unit = connected(len(points), must)
    return points, unit, unit[cannot]


def _points(problem: Matchings, links: Ints) -> Ints:
    """Return links as pairs of global points, (n, 2), or say which point is not there."""
    objects, points = links[:, 0::2], links[:, 1::2]
    strange = np.flatnonzero(((objects < 0) | (objects >= problem.n_objects)).any(axis=1))
    if len(strange):
        raise InputError(
            f"a constraint is about object {int(objects[strange[0]].max())}; there are {problem.n_objects}"
        )
    strange = np.flatnonzero(((points < 0) | (points >= problem.sizes[objects])).any(axis=1))
    if len(strange):
        row = strange[0]
        side = int(points[row, 0] in range(problem.sizes[objects[row, 0]]))
        i, p = int(objects[row, side]), int(points[row, side])
        name = f"object {i}" if problem.names is None else repr(problem.names[i])
        raise InputError(f"a constraint is about point {p} of {name}, which has {counted(problem.sizes[i], 'point')}")
    return np.asarray(problem.offsets[objects] + points)


def _contradiction(problem: Matchings, constraints: Constraints, points: Ints, unit: Ints, owner: Ints) -> str:
    """Return what is wrong: the shortest chain of points that must be one and whose ends cannot."""
    must, cannot = (np.searchsorted(points, _points(problem, x)) for x in (constraints.must, constraints.cannot))
    beside: dict[int, list[int]] = {}
    for a, b in must.tolist():
        beside.setdefault(a, []).append(b)
        beside.setdefault(b, []).append(a)
    barred: dict[int, set[int]] = {}
    for a, b in cannot[unit[cannot[:, 0]] == unit[cannot[:, 1]]].tolist():
        barred.setdefault(a, set()).add(b)
        barred.setdefault(b, set()).add(a)
    width = int(owner.max()) + 1
    _, which, times = np.unique(unit * width + owner[points], return_inverse=True, return_counts=True)
    starts = sorted({*np.flatnonzero(times[which] > 1).tolist(), *barred})
    group, best = which.tolist(), list[int]()
    for start in starts:
        chain = _shortest(start, beside, barred.get(start, set()), group, len(best) or len(points) + 1)
        best = chain or best
    names = [_called(problem, int(points[x])) for x in best]
    told = f"{names[0]} must be {names[1]}" if len(best) > 1 else f"{names[0]} is itself"
    told += "".join(f", which must be {name}" for name in names[2:])
    if best[-1] in barred.get(best[0], ()):
        end = f"{names[0]} cannot be {names[-1]}"
    else:
        i = int(problem.point_objects[points[best[0]]])
        a, b = (int(points[x] - problem.offsets[i]) for x in (best[0], best[-1]))
        name = f"object {i}" if problem.names is None else repr(problem.names[i])
        end = f"points {a} and {b} of {name} are never one"
        if problem.records is not None:
            end = f"{names[0]} and {names[-1]} are never one, as their source holds everything once"
    return f"these constraints contradict each other: {told}; but {end}"


def _shortest(start: int, beside: dict[int, list[int]], barred: set[int], group: list[int], below: int) -> list[int]:
    """Return the shortest way from a point to one that it cannot be, of fewer than `below` points."""
    came, waiting = {start: -1}, deque([(start, 1)])
    while waiting:
        x, length = waiting.popleft()
        if x in barred or (x != start and group[x] == group[start]):
            way = [x]
            while came[way[-1]] >= 0:
                way.append(came[way[-1]])
            return way[::-1]
        if length + 1 >= below:
            continue
        for y in beside.get(x, ()):
            if y not in came:
                came[y] = x
                waiting.append((y, length + 1))
    return []


def _called(problem: Matchings, p: int) -> str:
    """Return a point in the words of its owner."""
    if problem.records is not None:
        source = problem.records.sources[problem.records.source[p]]
        return f"record {problem.records.ids[p]}" + (f" of {source!r}" if source else "")
    i = int(problem.point_objects[p])
    name = f"object {i}" if problem.names is None else repr(problem.names[i])
    return f"point {p - int(problem.offsets[i])} of {name}"


def _find(sorted_keys: Ints, asked: Ints) -> Ints:
    """Return where each of the numbers asked for is among ascending ones, -1 if it is not."""
    found = np.full(len(asked), -1, dtype=np.int64)
    # Most are not, and the last bits of most of those tell.
    bits = np.zeros(_LAST_BITS + 1, dtype=bool)
    bits[sorted_keys & _LAST_BITS] = True
    likely = np.flatnonzero(bits[asked & _LAST_BITS])
    if len(likely):
        at = np.minimum(np.searchsorted(sorted_keys, asked[likely]), len(sorted_keys) - 1)
        found[likely] = np.where(sorted_keys[at] == asked[likely], at, -1)
    return found


def _as_links(given: ArrayLike, name: str) -> Ints:
    """Return links as an array (n, 4) of whole numbers."""
    links = np.asarray(given)
    if not links.size:
        return _NOTHING
    if links.ndim != 2 or links.shape[1] != 4 or not np.issubdtype(links.dtype, np.integer):
        raise InputError(
            f"{name} must hold rows of object, point, object, point; got {links.dtype} of shape {links.shape}"
        )
    return links.astype(np.int64)


def _chain(track: ArrayLike) -> Ints:
    """Return links between points of a track that follow each other, (n - 1, 4)."""
    rows = as_integers(track, "a track").reshape(-1, 2)
    return np.concatenate([rows[:-1], rows[1:]], axis=1)
