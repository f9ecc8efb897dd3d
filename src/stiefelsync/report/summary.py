"""What the top of the page says: the story in a sentence, four numbers before and after, and the facts below."""

from __future__ import annotations

from stiefelsync.matching.difference import Difference
from stiefelsync.sync.result import Synchronisation

__all__ = ["cards", "facts", "lead", "percent"]


def lead(found: Difference) -> str:
    """Return the whole story in a sentence or two.

    Examples
    --------
    >>> from stiefelsync.matching.difference import difference
    >>> from stiefelsync.matching.matchings import Matchings
    >>> problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    >>> lead(difference(problem, Matchings.from_labels([0, 0, 0], [1, 1, 1]))).split(", ")[1:]
    ['0 removed', '1 added. No track contradicts itself.']
    """
    counts, before, after = found.counts, found.before.conflicts, found.after.conflicts
    share = f" ({percent(counts.kept / counts.before)})" if counts.before else ""
    new = f", {counts.added:,} {'added' if found.adds else 'more would follow'}" if counts.added else ""
    text = f"{counts.kept:,} of {counts.before:,} matches kept{share}, {counts.removed:,} removed{new}. "
    if before == after == 0:
        return text + "No track contradicts itself."
    was = "1 track contradicted itself" if before == 1 else f"{before:,} tracks contradicted themselves"
    now = {0: "none does now", 1: "1 still does"}.get(after, f"{after:,} still do")
    return f"{text}{was}; {now}."


def cards(found: Difference) -> list[tuple[str, int, int, str]]:
    """Return the numbers before and after, each with its label before and a note behind."""
    counts, before, after, m = found.counts, found.before, found.after, max(found.input.n_points, 1)
    conflicted_points = int(before.lengths[before.conflicted].sum())
    new = f"{counts.added:,} {'added' if found.adds else 'more would follow'}"
    length = [side.matched_points / max(side.tracks, 1) for side in (before, after)]
    share = [percent(side.matched_points / m) for side in (before, after)]
    in_conflict = f"{conflicted_points:,} points were in conflict"
    of_all = f"{share[0]} → {share[1]} of all points"
    return [
        ("Conflicting tracks", before.conflicts, after.conflicts, in_conflict),
        ("Matches", counts.before, counts.after, f"{counts.removed:,} removed, {new}"),
        ("Tracks", before.tracks, after.tracks, f"mean length {length[0]:.2f} → {length[1]:.2f}"),
        ("Points in tracks", before.matched_points, after.matched_points, of_all),
    ]


def facts(
    found: Difference, result: Synchronisation | None, noun: str, *, certificate: bool = False
) -> list[tuple[str, str]]:
    """Return names and values: the size of the problem and, where it is known, how it was solved.

    The certificate is computed only where it is asked for.
    """
    listed = [
        (f"{noun.capitalize()}s", f"{found.input.n_objects:,}"),
        ("Points", f"{found.input.n_points:,}"),
        ("Pairs with matches", f"{len(found.input.pair_objects):,}"),
    ]
    if result is None:
        return listed
    figures = result.as_dict(certificate=certificate)
    bound = ""
    if certificate:
        bound = f" of at most {figures['upper_bound']:,.0f}, gap {percent(figures['gap'], 2)}"
    listed.append(("Method", figures["method"]))
    listed.append(("Objective", f"{figures['objective']:,.0f}{bound}"))
    listed.append(("Time", f"{sum(figures['seconds'].values()):.3g} s"))
    matches = figures.get("matches_by_rule", {})
    if unlike := matches.get("unsupported", 0):
        doubtful, copies = matches.get("doubtful", 0), matches.get("copies", 0)
        scored = matches.get("scored", 0)
        others = f"{found.counts.removed - unlike - doubtful - copies - scored:,} contradict the tracks"
        third = f", {doubtful:,} are doubtful" if doubtful else ""
        third += f", {copies:,} lead to another copy of a keypoint" if copies else ""
        third += f", {scored:,} are of pairs that scores speak against" if scored else ""
        listed.append(("Removed", f"{unlike:,} move unlike their neighbours, {others}{third}"))
    if hopeless := figures.get("hopeless_pairs"):
        listed.append(("Pairs doubtful as a whole", ", ".join(f"{a} – {b}" for a, b in hopeless)))
    if left_out := figures.get("pairs_left_out"):
        listed.append(("Pairs left out by scores", ", ".join(f"{a} – {b}" for a, b in left_out)))
    if disputed := figures.get("disputed_pairs"):
        said = (f"{a} – {b} (scored {given:.2f}, judged {found:.2f})" for a, b, given, found in disputed)
        listed.append(("Pairs judged otherwise than scored", ", ".join(said)))
    return listed


def percent(share: float, digits: int = 1) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.5).split()
    ['50.0', '%']
    """
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"
