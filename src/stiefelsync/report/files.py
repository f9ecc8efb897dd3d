"""The page about two files: the matches before, and the same ones synchronised."""

from __future__ import annotations

import os
import shlex
import warnings
from pathlib import Path
from typing import Any

from stiefelsync._border import typed
from stiefelsync.errors import InputError, counted
from stiefelsync.io.dispatch import detect, find, read
from stiefelsync.io.files import check_outputs, replacing
from stiefelsync.io.route import share
from stiefelsync.matching.difference import difference
from stiefelsync.report.page import check_page, render

__all__ = ["report_files"]

Name = str | os.PathLike[str]


@typed
def report_files(
    before: Name,
    after: Name,
    output: Name,
    *,
    images: Name | None = None,
    title: str | None = None,
    format: str | None = None,
    force: bool = False,
    **options: Any,
) -> Path:
    """Write the page of :func:`write_report` about the matches of two files.

    Parameters
    ----------
    before, after
        The matches before, and the same ones synchronised. A warning says if it looks as if these were swapped.
    output
        The page to write.
    images, title, force
        As for :func:`write_report`.
    format
        Format of `before`; told from its content by default, as that of `after` is.
    **options
        Of the formats; each goes to all that know it.

    Raises
    ------
    InputError
        When the files are about different objects or points, or something is wrong with them or the output.
    """
    old, new, target = Path(before), Path(after), Path(output)
    check_outputs([target], reads=[old, new, images], force=True)
    readers = detect(old) if format is None else find(format), detect(new)
    given = share(options, before=readers[0].read_options, after=readers[1].read_options)
    if given["before"].get("merge_px"):
        raise InputError("a report compares the matches of two files as they are; leave merge_px out")
    check_page(target)
    files = [*readers[0].check("read", given["before"]), *readers[1].check("read", given["after"])]
    check_outputs([target], reads=files, force=force)
    matches = read(old, readers[0].name, **given["before"]), read(new, readers[1].name, **given["after"])
    found = difference(*matches)  # files about different objects are told first
    if readers[0] is readers[1] and readers[0].check_comparable is not None and "source" not in given["before"]:
        readers[0].check_comparable(old, new)
    if found.after.conflicts and not found.before.conflicts:
        warnings.warn(
            f"{new} holds {counted(found.after.conflicts, 'conflicting track')} and {old} none;"
            " the matches before synchronisation are named first: were they swapped?",
            stacklevel=2,
        )
    corrected = old.with_name(f"{old.stem}-corrected{old.suffix}")
    command = shlex.join(["stiefelsync", "sync", str(old), "-o", str(corrected), "--constraints", "corrections.csv"])
    text = render(found, images=None if images is None else Path(images), title=title, command=command)
    with replacing(target, force=force) as temporary:
        temporary.write_bytes(text.encode("utf-8", "replace"))
    return target
