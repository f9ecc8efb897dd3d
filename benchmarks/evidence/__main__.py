"""Measure and write pages of docs/evidence.

python -m benchmarks.evidence large                 # measures, records, and writes the page with its plot
python -m benchmarks.evidence poses --run verdicts  # measures one of its commands only
python -m benchmarks.evidence --recorded            # writes all pages from what is recorded
python -m benchmarks.evidence --list                # pages, with the dates and versions of their records
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from dataclasses import replace

from benchmarks.evidence.headline import README, headline, insert
from benchmarks.evidence.page import DOCS, ROOT, Page, draw, read, render, run, words, write
from benchmarks.evidence.registry import PAGES


def digest(page: Page, name: str) -> str:
    """Return the digest of the file of lines that a command adds to, "" without one."""
    path = ROOT / page.lines[name] if name in page.lines else None
    return hashlib.sha256(path.read_bytes()).hexdigest() if path is not None and path.exists() else ""


def measure(page: Page, names: list[str]) -> None:
    """Run commands of a page and record what they print."""
    record = read(page.name)
    for name in names or page.runs:
        print(f"{page.name}: {page.runs[name]}", file=sys.stderr)
        before = digest(page, name)
        printed = run(page.runs[name])
        if before and before == digest(page, name) and name in record:
            # The lines are those measured before, and so are their date and version.
            printed = replace(printed, date=record[name].date, version=record[name].version)
        record[name] = printed
        write(page.name, record)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help=", ".join(PAGES))
    parser.add_argument("--run", nargs="+", default=[], help="names of commands; all of the page by default")
    parser.add_argument("--recorded", action="store_true", help="measure nothing")
    parser.add_argument("--list", action="store_true", help="list the pages")
    options = parser.parse_args()
    if unknown := set(options.pages) - PAGES.keys():
        parser.error(f"no page {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
    if not options.pages and not options.recorded and not options.list:
        parser.error("name the pages to measure, or give --recorded")
    for name in options.pages or PAGES:
        page = PAGES[name]
        if options.list:
            print(name, *sorted({f"{p.date} ({p.version})" for p in read(name).values()}), sep="\n  ")
            continue
        if not options.recorded:
            measure(page, options.run)
        if missing := page.runs.keys() - read(name).keys():
            print(f"{name}: nothing recorded for {', '.join(sorted(missing))}", file=sys.stderr)
            continue
        (DOCS / "evidence" / f"{name}.md").write_text(render(page, read(name)), encoding="utf-8")
        draw(page, read(name))
    if not options.list:
        README.write_text(insert(README, headline()), encoding="utf-8")
    print(f"{words(DOCS / 'evidence'):,} words in docs/evidence", file=sys.stderr)


if __name__ == "__main__":
    main()
