"""Read matches from a table, make them consistent, write them for two other programs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from stiefelsync import io, synchronise

# Point 0 of a is point 0 of b and c, point 1 is point 1; one line confuses them.
TABLE = """\
object_a,point_a,object_b,point_b
a,0,b,0
a,1,b,1
a,0,c,0
a,1,c,1
b,0,c,1
a,0,d,0
b,0,d,0
c,0,d,0
"""


def main() -> None:
    """Print the kept matches and what the conversion loses."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "matches.csv").write_text(TABLE)
        matches = io.read(folder / "matches.csv")
        result = synchronise(matches, 2, rng=0)
        print(f"{matches} -> {int(result.kept.sum())} of {matches.n_matches} matches kept")
        io.write(result, folder / "tracks.csv", "tracks")
        print((folder / "tracks.csv").read_text())
        io.write(result, folder / "clean.npz")
        for sentence in io.convert(folder / "clean.npz", folder / "clean.dd"):
            print(sentence)


if __name__ == "__main__":
    main()
