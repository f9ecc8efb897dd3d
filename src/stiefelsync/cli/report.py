"""``stiefelsync report``: what changed, as a web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stiefelsync.cli.options import Features, Force, Format, Images, Input, Json, Options, Quiet, Unused, parse_options
from stiefelsync.cli.terminal import show, show_json
from stiefelsync.report import report_files

__all__ = ["run"]


def run(
    input: Input,
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same matches, synchronised.", show_default=False)],
    output: Annotated[Path, typer.Option("-o", "--output", help="Web page to write.", show_default=False)],
    images: Images = None,
    title: Annotated[str | None, typer.Option("--title", help="Headline of the page.")] = None,
    format: Format = None,
    features: Features = None,
    option: Options = [],  # noqa: B006  typer copies it
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
    seed: Unused = 0,
) -> None:
    """Write one self-contained web page that shows what synchronisation changed.

    Example: stiefelsync report database.db clean.db -o changes.html --images photos
    """
    page = report_files(
        input, after, output, images=images, title=title, format=format, force=force, **parse_options(option, features)
    )
    if json:
        show_json({"input": str(input), "after": str(after), "output": str(page)})
    elif not quiet:
        show(f"wrote {page}; open it in a browser")
