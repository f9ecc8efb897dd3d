"""Problems whose objects have names, and their matches by these."""

from __future__ import annotations

from stiefelsync import Matchings


def named(problem: Matchings, names: list[str] | None = None, **more: object) -> Matchings:
    names = names or [f"{i:02}.jpg" for i in range(problem.n_objects)]
    return Matchings.from_endpoints(problem.endpoints, problem.sizes, names=names, **more)


def keys(problem: Matchings) -> set[tuple[object, ...]]:
    """The matches, by name and number."""
    owner, names = problem.point_objects, problem.names
    ends = [(names[owner[p]], int(p - problem.offsets[owner[p]])) for p in range(problem.n_points)]
    return {tuple(sorted((ends[a], ends[b]))) for a, b in problem.endpoints.tolist()}
