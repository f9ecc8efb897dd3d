"""The report as one HTML page that needs nothing else: numbers, match matrix, tracks, conflicts and a pair viewer."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._border import typed
from stiefelsync._version import __version__
from stiefelsync.errors import InputError, MissingExtraError, visible
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.matching.difference import Difference, difference
from stiefelsync.matching.matchings import Matchings
from stiefelsync.report.conflicts import Conflict, describe, worst_conflicts
from stiefelsync.report.corrections import Checked, tracks_to_check
from stiefelsync.report.corrections import cards as corrected_cards
from stiefelsync.report.counts import match_matrix, per_object, track_bins
from stiefelsync.report.summary import cards, facts, lead
from stiefelsync.report.viewer import PairTable, choose_pairs, encode, pack_objects, pack_pairs
from stiefelsync.sync.result import Synchronisation

if TYPE_CHECKING:
    from stiefelsync.report.pictures import Pictures

__all__ = ["check_page", "render", "write_report"]

MAX_MATCHES = 150_000  # in the viewer: at most 5 MB
PHOTOGRAPH_BYTES = 7_000_000  # all of them together, so that a page stays below 15 MB
MAX_ROWS = 400  # of the table of objects
OPEN_CONFLICTS = 4  # shown at once; the others unfold
MAX_LISTED = 200  # names in a note or a list of what was left out


@typed
def write_report(
    path: str | os.PathLike[str],
    before: Matchings,
    after: Synchronisation | Matchings,
    *,
    images: str | os.PathLike[str] | None = None,
    title: str | None = None,
    max_pairs: int = 200,
    certificate: bool = False,
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
    certificate
        Whether the page says how far the answer is from the best one at most, which may take as long as solving.
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
    target = Path(path)
    check_page(target)
    check_outputs([target], reads=[source, images], force=force)
    if isinstance(after, Matchings):
        found, result = difference(before, after), None
    else:
        if after.input is not before and after.input != before:
            raise InputError(
                f"the result is about {after.input}, not about {before}; pass the matches that were synchronised"
            )
        found, result = after.difference, after
    photographs = None if images is None else Path(images)
    page = render(found, result, images=photographs, title=title, max_pairs=max_pairs, certificate=certificate)
    with replacing(target, force=force) as temporary:
        temporary.write_bytes(page.encode("utf-8", "replace"))  # names may hold bytes that are not UTF-8
    return target


def check_page(path: Path) -> None:
    """Raise :class:`InputError` if a file that is there is not a web page, and an error if pages cannot be made here.

    Examples
    --------
    >>> check_page(Path("changes.html"))
    """
    if path.is_file():
        with path.open("rb") as opened:
            start = opened.read(64).lstrip().lower()
        if start and not start.startswith((b"<!doctype html", b"<html")):
            raise InputError(f"{path} is not a web page, so the report does not overwrite it; choose another name")
    _template()


@typed
def render(
    found: Difference,
    result: Synchronisation | None = None,
    *,
    certificate: bool = False,
    images: Path | None = None,
    title: str | None = None,
    max_pairs: int = 200,
    notes: Sequence[str] = (),
    more_facts: Sequence[tuple[str, str]] = (),
    suspects: Sequence[Checked] | None = None,
    command: str | None = None,
    save: str = "corrections.csv",
) -> str:
    """Return the page of :func:`write_report` as text.

    Parameters
    ----------
    found
        What changed. Where its `adds` is false, matches that were not there before are shown, but not counted as part
        of the answer: they would follow from it.
    result
        What was found and how, if known: the page then says so, and gives every match of the input its confidence.
    certificate
        Whether the page says how far the objective is from its upper bound, which may take as long as solving.
    notes
        Sentences for the top of the summary.
    more_facts
        Names and values to tell beside the usual ones.
    suspects
        The tracks to check, in this order; by default those of the worst conflicts and the least sure.
    command
        What to type to apply corrections.
    save
        Name of the file that the page saves them in.

    Examples
    --------
    >>> problem = Matchings.from_labels([0, 0], [1, 1])
    >>> "<h1><bdi>Twins &amp; co</bdi></h1>" in render(difference(problem, problem), title="Twins & co")
    True
    """
    confidence = result.confidence if result is not None and result.outcome.labels is not None else None
    names = found.input.names or [str(i) for i in range(found.input.n_objects)]
    table = choose_pairs(found, max_pairs=max_pairs, max_matches=MAX_MATCHES)
    worst = worst_conflicts(found)
    sure = result.point_confidence if result is not None and result.outcome.labels is not None else None
    checked = tracks_to_check(found, worst, sure) if suspects is None else suspects
    first = "The tracks that are most likely wrong come first."
    if suspects is None:
        first = (
            f"The tracks of the worst conflicts come first{', then the least sure ones' if sure is not None else ''}."
        )
    pictures, missing = None, list[str]()
    if images is not None:
        pictures, missing = _pictures(found, worst, checked, table.objects[table.embedded], images)
    noun = "image" if pictures and (pictures.sizes or found.input.coordinates is None) else "object"
    rendered: str = _template().render(
        title=title or "Before and after synchronisation",
        noun=noun,
        found=found,
        lead=lead(found),
        cards=cards(found),
        facts=[*facts(found, result, noun, certificate=certificate), *more_facts],
        notes=notes,
        missing=missing,
        new="added" if found.adds else "would follow",
        bins=[one for one in track_bins(found) if one.before or one.after or one.low == one.high],
        rows=_rows(found, names),
        max_rows=MAX_ROWS,
        conflicts=describe(found, worst, names, pictures.patches if pictures else {}),
        open_conflicts=OPEN_CONFLICTS,
        checked=corrected_cards(found, checked, names, pictures.patches if pictures else {}),
        command=command or f"stiefelsync sync MATCHES -o CORRECTED --constraints {save}",
        save=save,
        first=first,
        has_confidence=confidence is not None,
        left_out=[[names[i], names[j]] for i, j in table.objects[~table.embedded].tolist()],
        n_pairs=len(table.objects),
        max_listed=MAX_LISTED,
        data=_data(found, table, names, confidence, pictures),
    )
    return rendered


def _data(
    found: Difference,
    table: PairTable,
    names: Sequence[str],
    confidence: NDArray[np.float64] | None,
    pictures: Pictures | None,
) -> dict[str, Any]:
    """Return what the page's program draws: matrices, matches of the embedded pairs, their points and photographs."""
    pairs, used = pack_pairs(found, table, confidence)
    bounds, counts = match_matrix(found)
    return {
        "adds": found.adds,
        "names": [visible(name) for name in names],
        "matrix": {"bounds": bounds.tolist(), **{key: encode(value, "<u4") for key, value in counts.items()}},
        "pairs": pairs,
        "objects": pack_objects(found, used, pictures.sizes if pictures else {}),
        "photographs": dict(pictures.photographs) if pictures else {},
    }


def _pictures(
    found: Difference, worst: Sequence[Conflict], checked: Sequence[Checked], pairs: Any, folder: Path
) -> tuple[Pictures, list[str]]:
    """Take the pictures the page needs, and say which are missing."""
    names = found.input.names
    if names is None:
        raise InputError("images are found by the names of the objects, but these objects have no names")
    from stiefelsync.report.pictures import Pictures, find_images, take_pictures

    located = find_images(folder, names)
    if found.input.coordinates is None:
        return Pictures({}, {}, {}), ["The photographs are not shown: these points have no coordinates."]
    points = {p for one in worst for row in (*one.tracks, one.alone) for p in row}
    points |= {p for one in checked for p in one.points}
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
    return pictures, [f"{what} {_listed([names[i] for i in which])}." for what, which in groups.items() if which]


def _rows(found: Difference, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the table of objects; when it is too long for the page, those with most removed matches first."""
    counts = per_object(found)
    order = np.arange(len(names))
    if len(order) > MAX_ROWS:
        order = np.argsort(-counts["removed"], kind="stable")
    return [
        {
            "name": names[i],
            "order": i,
            "points": int(found.input.sizes[i]),
            **{key: int(value[i]) for key, value in counts.items()},
        }
        for i in order.tolist()
    ]


def _listed(names: list[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _template() -> Any:
    """Return the page with its program and style, but without content."""
    try:
        import jinja2
        from markupsafe import Markup  # comes with jinja2
    except ImportError as error:
        raise MissingExtraError("a report", "jinja2", "report") from error
    page, script, more_script, style, more_style = (
        files("stiefelsync.report").joinpath(name).read_text(encoding="utf-8")
        for name in ("report.html.j2", "report.js", "corrections.js", "report.css", "corrections.css")
    )
    script, style = f"{script}\n{more_script}", f"{style}\n{more_style}"

    def shown(value: Any) -> Any:
        return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, finalize=shown)
    environment.filters["number"] = "{:,}".format
    environment.globals |= {
        "version": __version__,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "script": Markup(script),
        "style": Markup(style),
    }
    return environment.from_string(page)
