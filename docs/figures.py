"""Pictures of the gallery: figures of ``stiefelsync.plotting``, unknown to pyplot, and texts of thumbnails."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from matplotlib.figure import Figure
from sphinx import addnodes
from sphinx_gallery.scrapers import figure_rst

__all__ = ["add_short_anchors", "describe_thumbnails", "figure_of_the_block"]

EXAMPLES = Path(__file__).parents[1] / "examples" / "gallery"


def figure_of_the_block(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **_: Any) -> str:
    """Save what a block calls ``figure``, unless pyplot made it, and return the lines that show it."""
    figure = block_vars["example_globals"].get("figure")
    if not isinstance(figure, Figure) or hasattr(figure, "number"):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path)
    del block_vars["example_globals"]["figure"]
    titles = [text for text in (figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)) if text]
    return str(figure_rst([path], gallery_conf["src_dir"], ", ".join(dict.fromkeys(titles))))


def describe_thumbnails(app: Any, doctree: Any) -> None:
    """Give every thumbnail of the gallery's front page the title of its example as text alternative."""
    for image in doctree.findall(nodes.image):
        found = re.search(r"sphx_glr_(plot_\w+)_thumb", image["uri"])
        if found and not image.get("alt"):
            image["alt"] = (EXAMPLES / f"{found[1]}.py").read_text(encoding="utf-8").splitlines()[1]


def add_short_anchors(app: Any, doctree: Any) -> None:
    """Give names of a module an anchor without the module, too.

    Pages of sources link to all names of a module by the shortest way in which one of them is documented.
    """
    for signature in doctree.findall(addnodes.desc_signature):
        for name in list(signature["ids"]):
            short = re.sub(r"^stiefelsync\.(?:[a-z_]+\.)+", "stiefelsync.", name)
            if short not in signature["ids"]:
                signature["ids"].append(short)
