"""The page about cells followed over days: fields of view in equal colours, and the worst cells first."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._version import __version__
from stiefelsync.errors import MissingExtraError, counted
from stiefelsync.registration.align import chained
from stiefelsync.registration.compare import Compared
from stiefelsync.registration.session import Session
from stiefelsync.registration.table import CellTable

__all__ = ["DOUBT", "check_template", "outlines", "render_sessions", "to_common"]

Floats = NDArray[np.float64]

RAYS = 16  # of an outline
STEP = 0.25  # pixels, in which their lengths are kept
MOST_SIDE = 700  # pixels of an image on the page
QUALITY = 80
DOUBT = 0.8  # places less sure are marked; those below .6 were left out


def check_template() -> None:
    """Raise an error if pages cannot be made here."""
    _template()
    _pillow()


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("a report", "pillow", "report") from None
    return Image


def render_sessions(
    table: CellTable,
    compared: Sequence[Compared | None],
    lines: Mapping[str, str],
    *,
    kind: str = "cells",
    title: str | None = None,
) -> str:
    """Return the page about a table.

    Parameters
    ----------
    compared
        For every imaging plane how its sessions lie over each other; None where there are no images (units).
    lines
        What is said at the top, by name.
    kind : {"cells", "units"}
    title
        Headline.

    Examples
    --------
    >>> from stiefelsync.registration import Trust, table_of
    >>> trust = Trust(np.full(2, 0.9), np.ones(1))
    >>> found = table_of(np.array([0, 0]), ["a", "b"], [np.array([4]), np.array([2])], trust)
    >>> "<h1><bdi>Mouse 1</bdi></h1>" in render_sessions(found, [None], {}, kind="units", title="Mouse 1")
    True
    """
    followed = int((table.sessions_per_cell > 1).sum())
    noun = kind.removesuffix("s")
    planes = [None if found is None else _plane(found) for found in compared]
    own = table.own
    data = {
        "noun": noun,
        "doubt": DOUBT,
        "names": list(table.names),
        "planes": planes,
        "starts": _starts(compared, len(table.names)),
        "rows": [
            {
                "c": None if np.isnan(table.confidence[cell]) else round(float(table.confidence[cell]), 4),
                "p": int(table.plane[cell]),
                "i": table.index[cell].tolist(),
                "n": own[cell].tolist(),
                "t": [None if np.isnan(trust) else round(float(trust), 4) for trust in table.places[cell]],
            }
            for cell in range(len(table))
        ],
    }
    rendered: str = _template().render(
        title=title or f"{kind.capitalize()} followed over {counted(len(table.names), 'session')}",
        lead=f"{counted(followed, noun)} of {len(table):,} in two or more sessions",
        noun=noun,
        doubt=f"{DOUBT:g}".lstrip("0"),
        lines=dict(lines),
        failed=[
            f"{found.sessions[i].name} and {found.sessions[j].name}"
            for found in compared
            if found is not None
            for i, j in found.failed
        ],
        pictures=any(plane is not None for plane in planes),
        data=data,
    )
    return rendered


def _starts(compared: Sequence[Compared | None], sessions: int) -> list[list[int]]:
    """Return for every plane where its detections begin among all of a session."""
    starts, at = list[list[int]](), [0] * sessions
    for found in compared:
        starts.append(list(at))
        if found is not None:
            at = [a + len(s) for a, s in zip(at, found.sessions, strict=True)]
    return starts


def _plane(found: Compared) -> dict[str, Any]:
    """Return what the page draws of a plane."""
    common = to_common(found)
    return {
        "number": found.sessions[0].plane,
        "diameter": found.reach,
        "sessions": [
            {
                "height": session.shape[0],
                "width": session.shape[1],
                "image": _image(session),
                "centres": _packed(np.nan_to_num(session.centroids), "<f4"),
                "rays": _packed(outlines(session), "u1"),
                "matrix": matrix.round(6).ravel().tolist(),
            }
            for session, matrix in zip(found.sessions, common, strict=True)
        ],
    }


def _packed(values: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def outlines(session: Session) -> NDArray[np.uint8]:
    """Return how far every cell reaches from its centroid in 16 directions, in quarters of a pixel; (n, 16).

    Examples
    --------
    >>> disc = np.hypot(*np.mgrid[-8:9, -8:9]) <= 6
    >>> reach = outlines(Session.from_masks("a", disc[None].astype(float)))
    >>> bool((abs(reach * STEP - 6.5) < 0.8).all())
    True
    """
    prints, n = session.footprints, len(session)
    x, y = session.columns
    centre = session.centroids[session.owner]
    dx, dy = x - centre[:, 0], y - centre[:, 1]
    top = np.zeros(n)
    np.maximum.at(top, session.owner, prints.data)
    inside = prints.data >= 0.2 * top[session.owner]
    ray = np.floor((np.arctan2(dy, dx) / (2 * np.pi) + 0.5 / RAYS) * RAYS).astype(np.int64) % RAYS
    reach = np.zeros((n, RAYS))
    np.maximum.at(reach, (session.owner[inside], ray[inside]), np.hypot(dx, dy)[inside] + 0.5)
    # A direction without any pixel is as far as its neighbours.
    between = (np.roll(reach, 1, axis=1) + np.roll(reach, -1, axis=1)) / 2
    reach = np.where(reach > 0, reach, np.maximum(between, 0.5))
    return np.clip(np.round(reach / STEP), 1, 255).astype(np.uint8)


def to_common(found: Compared) -> list[Floats]:
    """Return for every session the map, (2, 3), into the frame of the one in the middle that has cells.

    A session that was not laid over that one, as it is too far away or this failed, is led there by others.
    """
    count = len(found.sessions)
    with_cells = [s for s in range(count) if found.sessions[s].footprints.nnz] or [count // 2]
    maps = chained(found.alignments, with_cells[len(with_cells) // 2])
    return [maps.get(session, np.eye(2, 3)) for session in range(count)]


def _image(session: Session) -> str:
    """Return the mean image, or the sum of the footprints, as the address of a JPEG."""
    if session.image is not None:
        image = np.nan_to_num(session.image.astype(np.float64), posinf=0, neginf=0)
    else:
        top = np.zeros(len(session))
        np.maximum.at(top, session.owner, session.footprints.data)
        share = session.footprints.data / np.maximum(top[session.owner], 1e-12)
        flat = np.bincount(session.footprints.indices, share, session.shape[0] * session.shape[1])
        image = np.asarray(flat, dtype=np.float64).reshape(session.shape)
    low, high = np.percentile(image, [1, 99.7])
    grey = np.clip((image - low) / max(high - low, 1e-12), 0, 1) ** 0.8
    Image = _pillow()
    picture = Image.fromarray((grey * 255).astype(np.uint8))
    if max(picture.size) > MOST_SIDE:
        picture.thumbnail((MOST_SIDE, MOST_SIDE))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def _template() -> Any:
    """Return the page with its program and style, but without content."""
    try:
        import jinja2
        from markupsafe import Markup  # comes with jinja2
    except ImportError:
        raise MissingExtraError("a report", "jinja2", "report") from None
    names = "sessions.html.j2", "sessions.js", "report.css", "sessions.css"
    folder = files("stiefelsync.report")
    page, script, *styles = (folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.globals |= {
        "version": __version__,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "script": Markup(script),
        "style": Markup("\n".join(styles)),
    }
    return environment.from_string(page)
