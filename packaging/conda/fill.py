"""Print the conda recipe with the checksum of a source distribution: ``python packaging/conda/fill.py SDIST``."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

RECIPE = Path(__file__).with_name("meta.yaml")


def fill(sdist: Path) -> str:
    """Return the recipe for a source distribution, whose version it must name."""
    text = RECIPE.read_text(encoding="utf-8")
    version = sdist.name.removeprefix("stiefelsync-").removesuffix(".tar.gz")
    if f'{{% set version = "{version}" %}}' not in text:
        sys.exit(f"{RECIPE.name} names another version than {sdist.name}")
    return text.replace("CHECKSUM", hashlib.sha256(sdist.read_bytes()).hexdigest())


if __name__ == "__main__":
    print(fill(Path(sys.argv[1])))
