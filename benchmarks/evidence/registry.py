"""All pages of evidence by name."""

from __future__ import annotations

from benchmarks.evidence import others, photographs, quality, size

__all__ = ["PAGES"]

PAGES = {page.name: page for module in (quality, photographs, others, size) for page in module.PAGES}
