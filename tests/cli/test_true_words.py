"""What `inspect` and `sync` say of six real databases is true, and they agree on the numbers that they share."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stiefelsync import io, synchronise
from stiefelsync.matching.graph import conflicts
from stiefelsync.positions.grid import resolution

DATABASES = [
    "sceaux/database.db",
    "herz-jesu-p8/database.db",
    "strecha/fountain-P11/verified.db",
    "strecha/entry-P10/verified.db",
    "strecha/entry-P10/ratio95.db",
    "strecha/fountain-P11/grid8.db",
]
pytestmark = [pytest.mark.data, pytest.mark.slow]


def numbers(text: str) -> list[float]:
    return [float(word.replace(",", "")) for word in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", text)]


def line(told: str, name: str) -> str:
    """Return what is said on a line and those that it runs on to."""
    found = re.search(rf"^{name}  +(.*(?:\n {{8,}}.*)*)", told, re.MULTILINE)
    assert found is not None, (name, told)
    return " ".join(found[1].split())


@pytest.mark.parametrize("name", DATABASES)
def test_every_sentence_is_true(name: str, run: Any, document: Any, data_dir: Path, tmp_path: Path) -> None:
    source, clean = data_dir / name, tmp_path / "clean.db"
    inspected, told = document("inspect", source), run("inspect", source, "--verbose").stdout
    synced = document("sync", source, "-o", clean)
    said = run("sync", source, "-o", tmp_path / "again.db", "--verbose").stdout
    problem, answer = io.read(source), synchronise(io.read(source), method="tracks")
    rule = answer.outcome.details.matches_by_rule

    # Both verbs count alike.
    assert synced["method"] == "tracks"
    assert inspected["matches"] == synced["matches_before"] == problem.n_matches
    assert inspected["conflicts"] == synced["conflicts_before"] == conflicts(problem).count
    assert inspected["alone_share"] == synced["matches_by_rule"]["unsupported"] / problem.n_matches
    doubted = synced["matches_by_rule"]["removed"] + synced["matches_by_rule"]["doubtful"]
    assert inspected["doubtful_share"] == doubted / problem.n_matches
    assert inspected["hopeless_pairs"] == len(synced.get("hopeless_pairs", []))
    assert synced["matches_by_rule"] == vars(rule)
    assert sum(vars(rule).values()) == problem.n_matches

    # What is printed are these numbers.
    shares = numbers(line(told, "doubtful"))
    assert shares == [
        round(100 * inspected["alone_share"], 1), round(100 * inspected["doubtful_share"], 1),
        inspected["hopeless_pairs"],
    ]  # fmt: skip
    assert numbers(line(told, "matches"))[:2] == [problem.n_matches, len(problem.pair_objects)]
    assert numbers(line(told, "conflicts"))[0] == inspected["conflicts"]

    # The copy is what `sync` says that it is.
    left = io.read(clean)
    assert left.n_matches == synced["matches_after"] == int(answer.kept.sum())
    assert conflicts(left).count == synced["conflicts_after"] == 0
    removed = problem.n_matches - left.n_matches
    assert line(said, "result") == (
        f"consistent: {removed:,} matches ({100 * removed / problem.n_matches:.1f} %) removed"
    )
    assert numbers(line(said, "matches")) == [problem.n_matches, left.n_matches]
    full = line(said, "in full")
    assert numbers(full) == [left.n_matches, removed, synced["matches_added"]]
    assert "would follow" in full
    assert not synced["added_written"]
    with_them = document("sync", source, "-o", tmp_path / "more.db", "--add")
    assert with_them["matches_after"] == left.n_matches + synced["matches_added"]
    reasons = line(said, "decided").split("matches removed: ")[1].split(";")[0]
    assert sum(numbers(reasons)) == removed

    # Advice: verified or not, on a grid or not, worth it or not.
    with closing(sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)) as opened:
        bare = opened.execute(
            "SELECT count(*) FROM two_view_geometries WHERE rows > 0 AND F IS NULL AND E IS NULL AND H IS NULL"
        ).fetchone()[0]
    assert any("nobody verified them" in text for text in inspected["advice"]) == (bare > 0)
    on_grid = bool((resolution(problem.coordinates, problem.sizes) >= 2).all())
    assert any("lie on a grid" in text for text in inspected["advice"]) == on_grid == ("grid" in name)
    moved = np.abs(left.coordinates - problem.coordinates).max(axis=1) > 0
    assert ("moved off the grid" in said) == on_grid == bool(moved.any())
    if on_grid:
        assert numbers(line(said, "positions"))[0] == moved.sum()
    share = removed / problem.n_matches
    assert inspected["worth"].split(":")[0] in (("yes",) if share > 0.015 else ("hardly", "yes", "no"))
    assert document("inspect", clean)["worth"].split(":")[0] in ("no", "hardly")
