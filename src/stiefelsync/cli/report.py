"""``stiefelsync report``: what changed, as a web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync import io
from stiefelsync.cli.options import Force, Format, Images, Input, Json, Options, Unused, share_out
from stiefelsync.cli.terminal import show, show_json
from stiefelsync.errors import InputError
from stiefelsync.io.colmap import COLMAP, check_same_table
from stiefelsync.io.convert import find
from stiefelsync.io.files import check_outputs
from stiefelsync.report import write_report
from stiefelsync.report.collect import places

__all__ = ["run"]


def run(
    input: Input,
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same matches, synchronised.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Web page to write.", show_default=False)],
    images: Images = None,
    title: Annotated[str | None, typer.Option("--title", help="Headline of the page.")] = None,
    format: Format = None,
    option: Options = [],  # noqa: B006  typer copies it
    force: Force = False,
    json: Json = False,
    seed: Unused = 0,
) -> None:
    """Write one self-contained web page that shows what synchronisation changed.

    Example: stiefelsync report database.db clean.db -o changes.html --images photos
    """
    check_outputs([output], reads=[input, after, images], force=True)
    readers = io.detect(input) if format is None else find(format), io.detect(after)
    given = share_out(option, before=readers[0].read_options, after=readers[1].read_options)
    if given["before"].get("merge_px"):
        raise InputError("a report compares the matches of two files as they are; leave merge_px out")
    files = [*readers[0].files_of(given["before"]), *readers[1].files_of(given["after"])]
    check_outputs([output], reads=files, force=force)
    before, synchronised = io.read(input, format, **given["before"]), io.read(after, **given["after"])
    places(before, synchronised)  # files about different images are told first
    if readers[0] is readers[1] is COLMAP and "source" not in given["before"]:
        check_same_table(input, after)
    page = write_report(output, before, synchronised, images=images, title=title, source=input, force=force)
    if json:
        show_json({"input": str(input), "after": str(after), "output": str(page)})
    else:
        show(f"wrote {page}; open it in a browser")
