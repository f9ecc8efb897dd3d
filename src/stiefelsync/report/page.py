"""The report as one HTML page that needs nothing else: numbers, match matrix, tracks, conflicts and a pair viewer."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiefelsync._version import __version__
from stiefelsync.errors import InputError, MissingExtraError
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.matching.matchings import Matchings
from stiefelsync.report.collect import Change, Conflict, change, match_matrix, worst_conflicts
from stiefelsync.report.summary import cards, facts, lead, number
from stiefelsync.report.viewer import choose_pairs, encode, frame, pack_objects, pack_pairs
from stiefelsync.sync.result import Synchronisation

if TYPE_CHECKING:
    from stiefelsync.report.pictures import Pictures

__all__ = ["add_notes", "check_path", "encoded", "render", "save", "write_report"]

MAX_MATCHES = 150_000  # in the viewer: at most 5 MB
PHOTOGRAPH_BYTES = 7_000_000
MAX_ROWS = 400  # of the table of objects
MAX_COLUMNS = 12  # a conflict among at most this many objects has one column for each
OPEN_CONFLICTS = 4  # shown at once; the others unfold
MAX_LISTED = 200  # names in a note or a list of what was left out
NOTES = "<!-- notes -->"  # no name can hold it: names are escaped


def write_report(
    path: str | os.PathLike[str],
    before: Matchings,
    after: Synchronisation | Matchings,
    *,
    images: str | os.PathLike[str] | None = None,
    title: str | None = None,
    max_pairs: int = 200,
    source: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Path:
    """Write a self-contained HTML page that shows what synchronisation changed; it appears complete or not at all.

    Parameters
    ----------
    path
        The page to write.
    before
        The matches that were synchronised.
    after
        What synchronising them gave, or other matches of the same points.
    images
        Folder of the photographs, found by object name; coordinates are pixels of the original files, or normalised
        like OpenSfM's.
    title
        Headline of the page.
    max_pairs
        The viewer holds at most this many object pairs, those that lost most.
    source
        The file the matches came from, which is never overwritten.
    force
        Whether a web page of that name that is there already is replaced; no other file ever is.

    Returns
    -------
    path : Path
        The page.

    Raises
    ------
    InputError
        When `path` is an input or no web page, or the images cannot be found.
    MissingExtraError
        Without jinja2 (and pillow, if there are images).

    Notes
    -----
    The page is bounded at about 15 MB however large the problem: it says which pairs it leaves out.

    Examples
    --------
    >>> import tempfile
    >>> before = Matchings.from_pairs({(0, 1): [[0, 0], [1, 1]]}, [2, 2], names=["left", "right"])
    >>> after = Matchings.from_pairs({(0, 1): [[0, 0]]}, [2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/report.html", before, after)
    ...     page.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    check_path(path, source=source, force=force)
    check_outputs([path], reads=[images], force=force)
    page = render(before, after, images=None if images is None else Path(images), title=title, max_pairs=max_pairs)
    return save(page, path, source=source, force=force)


def check_path(
    path: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None, force: bool = False
) -> Path:
    """Return the path of a page that can be written, or say what is wrong: it is an input, no web page, or no jinja2.

    Examples
    --------
    >>> check_path("changes.html", source="matches.csv").name
    'changes.html'
    """
    target = Path(path)
    check_outputs([target], reads=[source], force=True)
    _check_page(target)
    check_outputs([target], force=force)
    _jinja2()
    return target


def save(
    page: str, path: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None, force: bool = False
) -> Path:
    """Write the text of a page (:func:`render`); the file appears complete or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save("<!doctype html>", f"{folder}/page.html").name
    'page.html'
    """
    target = check_path(path, source=source, force=force)
    with replacing(target, reads=[source], force=force) as temporary:
        temporary.write_bytes(encoded(page))
    return target


def encoded(page: str) -> bytes:
    """Return the bytes of a page; names of files may hold bytes that are no UTF-8, which become question marks."""
    return page.encode("utf-8", "replace")


def render(
    before: Matchings,
    after: Synchronisation | Matchings,
    *,
    images: Path | None = None,
    title: str | None = None,
    max_pairs: int = 200,
    adds: bool = True,
) -> str:
    """Return the page of :func:`write_report` as text.

    Where `adds` is false, the matches that were not there before are shown, but not counted as part of the answer: they
    would follow from it.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 0], [1, 1])
    >>> "<h1><bdi>Twins &amp; co</bdi></h1>" in render(problem, problem, title="Twins & co")
    True
    """
    jinja2 = _jinja2()
    from markupsafe import Markup  # comes with jinja2

    found = replace(change(before, after), adds=adds)
    table = choose_pairs(found, max_pairs=max_pairs, max_matches=MAX_MATCHES)
    worst = worst_conflicts(found)
    pictures, more = _pictures(found, worst, table.objects[table.embedded], images)
    pairs, used = pack_pairs(found, table)
    bounds, counts = match_matrix(found)
    script = _resource("report.js")
    noun = "image" if pictures and (pictures.sizes or before.coordinates is None) else "object"
    outside = table.objects[~table.embedded][:MAX_LISTED].tolist()
    bins = [one for one in found.track_bins() if one.before or one.after or one.low == one.high]
    rows = _rows(found)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["number"] = number
    page: str = environment.from_string(_resource("report.html.j2")).render(
        title=title or "Before and after synchronisation",
        version=__version__,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        script=Markup(script),
        style=Markup(_resource("report.css")),
        noun=noun,
        grouped=len(bounds) <= found.input.n_objects,
        lead=lead(found),
        cards=cards(found),
        facts=facts(found, after, noun),
        here=Markup(NOTES),
        notes=more,
        new="added" if adds else "would follow",
        bins=bins,
        tallest=max((max(one.before, one.after) for one in bins), default=0),
        rows=rows[:MAX_ROWS],
        rows_note=f"The {MAX_ROWS} with most removed matches of {len(rows)}." if len(rows) > MAX_ROWS else "",
        widest=max((row["kept"] + row["removed"] + row["added"] for row in rows), default=0),
        conflicts=[_conflict(found, one, pictures) for one in worst],
        open_conflicts=OPEN_CONFLICTS,
        conflicts_more=_others(found.before.conflicts - len(worst), "conflicting track", "with less surplus"),
        has_support=found.support is not None,
        left_out=[[found.name(i), found.name(j)] for i, j in outside],
        left_out_title=f"{number(table.left_out)} of {number(len(table.objects))} pairs are not in the viewer",
        left_out_more=number(table.left_out - len(outside)) if table.left_out > len(outside) else "",
        data={
            "adds": adds,
            "names": [found.name(i) for i in range(found.input.n_objects)],
            "matrix": {"bounds": bounds.tolist(), **{key: encode(value, "<u4") for key, value in counts.items()}},
            "pairs": pairs,
            "objects": pack_objects(found, used, pictures.sizes if pictures else {}),
            "photographs": dict(pictures.photographs) if pictures else {},
        },
    )
    return page


def add_notes(page: str, notes: Sequence[str]) -> str:
    """Return the text of a page (:func:`render`) with notes at the top of its summary.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 0], [1, 1])
    >>> '<p class="notice">a &lt; b</p>' in add_notes(render(problem, problem), ["a < b"])
    True
    """
    return page.replace(NOTES, NOTES + "".join(f'\n  <p class="notice">{html.escape(note)}</p>' for note in notes))


def _pictures(
    found: Change, worst: list[Conflict], pairs: Any, folder: Path | None
) -> tuple[Pictures | None, list[str]]:
    """Take the pictures the page needs, and say which are missing."""
    if folder is None:
        return None, []
    if found.input.names is None:
        raise InputError("images are found by the names of the objects, but these objects have no names")
    from stiefelsync.report.pictures import Pictures, find_images, take_pictures

    located = find_images(folder, found.input.names)
    if found.input.coordinates is None:
        return Pictures({}, {}, {}), ["The photographs are not shown: these points have no coordinates."]
    points = {p for one in worst for row in (*one.tracks, one.alone) for p in row}
    pictures = take_pictures(
        located,
        dict.fromkeys(pairs.ravel().tolist()),
        points,
        found.input.point_objects,
        found.input.coordinates,
        budget=PHOTOGRAPH_BYTES,
    )
    missing = [i for i in range(found.input.n_objects) if i not in located]
    groups = {
        "No image found for": missing,
        "No readable image for": pictures.unreadable,
        "Left out to keep the page small, the photographs of": pictures.left_out,
    }
    return pictures, [f"{what} {_listed([found.name(i) for i in which])}." for what, which in groups.items() if which]


def _rows(found: Change) -> list[dict[str, Any]]:
    """Return the table of objects; when it is too long for the page, those with most removed matches first."""
    counts = found.per_object()
    order = np.arange(found.input.n_objects)
    if len(order) > MAX_ROWS:
        order = np.argsort(-counts["removed"], kind="stable")
    return [
        {
            "name": found.name(i),
            "order": i,
            "points": int(found.input.sizes[i]),
            **{key: int(value[i]) for key, value in counts.items()},
        }
        for i in order.tolist()
    ]


def _conflict(found: Change, one: Conflict, pictures: Pictures | None) -> dict[str, Any]:
    shown = [p for row in (*one.tracks, one.alone) for p in row]
    owners = found.input.point_objects[shown].tolist()
    times = {i: owners.count(i) for i in sorted(set(owners))}
    columns = {i: c + 1 for c, i in enumerate(times)} if one.objects <= MAX_COLUMNS else {}

    def row(label: str, points: tuple[int, ...], length: int, alone: bool = False) -> dict[str, Any]:
        spots = [_spot(found, p, times, columns, pictures) for p in points]
        return {"label": label, "spots": spots, "length": length, "alone": alone}

    rows = [
        row(f"Track {chr(65 + t)}", points, length)
        for t, (points, length) in enumerate(zip(one.tracks, one.track_lengths, strict=True))
    ]
    if one.n_alone:
        rows.append(row("Unmatched", one.alone, one.n_alone, alone=True))
    parts = [f"{number(one.n_tracks)} {'track' if one.n_tracks == 1 else 'tracks'}"]
    if one.n_alone:
        parts.append(f"{number(one.n_alone)} unmatched")
    return {
        "points": one.points,
        "objects": one.objects,
        "outcome": " and ".join(parts),
        "rows": rows,
        "columns": len(columns) or MAX_COLUMNS,
        "more_tracks": one.n_tracks - len(one.tracks),
    }


def _spot(
    found: Change, point: int, times: dict[int, int], columns: dict[int, int], pictures: Pictures | None
) -> dict[str, Any]:
    """Describe one point: its patch, or where it lies among the points of its object."""
    problem = found.input
    i = int(problem.point_objects[point])
    spot: dict[str, Any] = {
        "name": found.name(i),
        "index": point - int(problem.offsets[i]),
        "times": times[i],
        "column": columns.get(i),
        "patch": pictures.patches.get(point) if pictures else None,
        "position": "",
        "place": None,
    }
    if problem.coordinates is not None and np.isfinite(problem.coordinates[point]).all():
        here = problem.coordinates[problem.offsets[i] : problem.offsets[i + 1]].astype(np.float64)
        low, extent = frame(here)
        share = (problem.coordinates[point] - low) / extent
        x, y = problem.coordinates[point].tolist()
        spot["position"] = f"({x:.5g}, {y:.5g})"
        spot["place"] = [round(80 * float(v), 1) for v in share]
    return spot


def _others(count: int, noun: str, which: str) -> str:
    return f"{number(count)} more {noun}{'' if count == 1 else 's'} {which}." if count > 0 else ""


def _listed(names: list[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {number(more)} more" if more > 0 else "")


def _resource(name: str) -> str:
    return files("stiefelsync.report").joinpath(name).read_text(encoding="utf-8")


def _jinja2() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("a report", "jinja2", "report") from error
    return jinja2


def _check_page(target: Path) -> None:
    """Refuse to write over anything but an earlier page."""
    if target.is_file():
        with target.open("rb") as opened:
            start = opened.read(64).lstrip().lower()
        if start and not start.startswith((b"<!doctype html", b"<html")):
            raise InputError(f"{target} is no web page, so the report does not overwrite it; choose another name")
