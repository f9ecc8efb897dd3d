"""Check the built site: links and anchors lead somewhere, pictures have texts, nothing is loaded from elsewhere.

``make docs`` runs it: it prints what is wrong and ends with code 1 if anything is. Other sites are not asked.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["check_site"]

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src"}


class Page(HTMLParser):
    """What a page is called by, links to, loads and shows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.without_text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given and given.get("rel") not in ("search", "next", "prev", "canonical"):
            self.loaded.append(given[LOADED[tag]])
        if tag == "img" and len(given.get("alt", "").strip()) < 5:
            self.without_text.append(given.get("src", "?"))


def check_site(root: Path) -> list[str]:
    """Return a sentence for everything that is wrong with the pages below a folder."""
    files = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.relative_to(root).parts]
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in files}
    return [
        f"{path.relative_to(root.resolve())}: {fault}" for path, page in pages.items() for fault in _faults(path, pages)
    ]


def _faults(path: Path, pages: dict[Path, Page]) -> list[str]:
    """Return what is wrong with one page."""
    page = pages[path]
    faults = [f"loads {name} from elsewhere" for name in page.loaded if urlsplit(name).netloc]
    faults += [f"the picture {name} has no text" for name in page.without_text]
    for link in dict.fromkeys([*page.links, *page.loaded]):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            faults.append(f"{link} leads nowhere")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            faults.append(f"{link} leads to no place of that page")
    return faults


if __name__ == "__main__":
    found = check_site(Path(sys.argv[1]))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.exit(bool(found))
