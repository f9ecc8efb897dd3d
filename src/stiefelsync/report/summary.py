"""What the top of the page says: the story in a sentence, four numbers before and after, and the facts below."""

from __future__ import annotations

from stiefelsync.matching.matchings import Matchings
from stiefelsync.report.collect import Change
from stiefelsync.sync.result import Synchronisation

__all__ = ["cards", "facts", "lead", "number", "percent"]


def lead(found: Change) -> str:
    """Return the whole story in a sentence or two.

    Examples
    --------
    >>> from stiefelsync.report.collect import change
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    >>> lead(change(problem, Matchings.from_labels([0, 0, 0], [1, 1, 1]))).split(", ")[1:]
    ['0 removed', '1 added. No track contradicts itself.']
    """
    before, after = found.before, found.after
    kept = before.matches - found.removed
    share = f" ({percent(kept / before.matches)})" if before.matches else ""
    text = f"{number(kept)} of {number(before.matches)} matches kept{share}, {number(found.removed)} removed"
    text += f", {_new(found)}. " if found.added.n_matches else ". "
    if before.conflicts == 0 and after.conflicts == 0:
        return text + "No track contradicts itself."
    was = "1 track contradicted itself" if before.conflicts == 1 else (
        f"{number(before.conflicts)} tracks contradicted themselves"
    )  # fmt: skip
    now = {0: "none does now", 1: "1 still does"}.get(after.conflicts, f"{number(after.conflicts)} still do")
    return f"{text}{was}; {now}."


def cards(found: Change) -> list[dict[str, str]]:
    """Return the numbers before and after, each with its label, a note and a tone."""
    before, after, m = found.before, found.after, max(found.input.n_points, 1)

    def card(label: str, a: str, b: str, note: str, tone: str = "") -> dict[str, str]:
        return {"label": label, "before": a, "after": b, "note": note, "tone": tone}

    conflicted_points = int(before.lengths[before.conflicted].sum())
    return [
        card(
            "Conflicting tracks",
            number(before.conflicts),
            number(after.conflicts),
            f"{number(conflicted_points)} points were in conflict",
            "good" if after.conflicts == 0 else "bad",
        ),
        card(
            "Matches",
            number(before.matches),
            number(after.matches),
            f"{number(found.removed)} removed, {_new(found)}",
        ),
        card(
            "Tracks",
            number(before.tracks),
            number(after.tracks),
            f"mean length {before.mean_length:.2f} → {after.mean_length:.2f}",
        ),
        card(
            "Points in tracks",
            number(before.matched_points),
            number(after.matched_points),
            f"{percent(before.matched_points / m)} → {percent(after.matched_points / m)} of all points",
        ),
    ]


def facts(found: Change, after: Synchronisation | Matchings, noun: str) -> list[tuple[str, str]]:
    """Return names and values: the size of the problem and, where it is known, how it was solved."""
    listed = [
        (f"{noun.capitalize()}s", number(found.input.n_objects)),
        ("Points", number(found.input.n_points)),
        ("Pairs with matches", number(len(found.input.pair_objects))),
    ]
    if isinstance(after, Matchings):
        return listed
    listed.append(("Method", str(after.method)))
    gap = percent(after.gap, 2)
    listed.append(("Objective", f"{after.objective:,.0f} of at most {after.upper_bound:,.0f}, gap {gap}"))
    listed.append(("Time", f"{sum(after.timings.values()):.3g} s"))
    unlike = after.outcome.details.get("matches", {}).get("unsupported", 0)
    if unlike:
        doubtful = after.outcome.details["matches"].get("doubtful", 0)
        others = f"{number(found.removed - unlike - doubtful)} contradict the tracks"
        third = f", {number(doubtful)} are doubtful" if doubtful else ""
        listed.append(("Removed", f"{number(unlike)} move unlike their neighbours, {others}{third}"))
    if hopeless := after.as_dict().get("hopeless_pairs"):
        listed.append(("Mostly wrong pairs", ", ".join(f"{a} – {b}" for a, b in hopeless)))
    return listed


def number(value: int) -> str:
    """Return a whole number with its thousands set apart.

    Examples
    --------
    >>> number(53108)
    '53,108'
    """
    return f"{value:,}"


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.5).split()
    ['50.0', '%']
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def _new(found: Change) -> str:
    return f"{number(found.added.n_matches)} {'added' if found.adds else 'more would follow'}"
