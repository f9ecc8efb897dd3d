"""The numbers that are printed are those of the file that was written."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from stiefelsync import Matchings, datasets, io
from stiefelsync.io.colmap import TABLES
from tests.io.colmap_schemas import build

VERIFIED, RAW = TABLES


def held(path, table):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT coalesce(sum(rows), 0) FROM {table}").fetchone()[0]


def pairs_of(path, table):
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT count(*) FROM {table} WHERE rows > 0").fetchone()[0]


@pytest.fixture
def database(tmp_path):
    """Raw and verified matches that contradict themselves, some points found twice, one match given twice."""
    made, _ = datasets.synthetic(30, 6, 0.8, 0.15, rng=1)
    rng = np.random.default_rng(0)
    at = np.floor(rng.uniform(0, 15, (made.n_points, 2)))
    raw = Matchings.from_pairs(made.pairs(), made.sizes, coordinates=at)
    verified = {pair: block[::2] for pair, block in raw.pairs().items()}
    verified[0, 1] = np.concatenate([verified[0, 1], verified[0, 1][:1]])
    build(tmp_path / "database.db", raw, verified)
    return tmp_path / "database.db"


@pytest.mark.parametrize("add", ["--add", "--no-add"])
@pytest.mark.parametrize("merge", [[], ["merge_px=3"]])
@pytest.mark.parametrize(
    ("options", "read", "written"),
    [
        ([], VERIFIED, VERIFIED),
        ([f"source={RAW}"], RAW, RAW),
        ([f"target={RAW}"], VERIFIED, RAW),
        ([f"source={RAW}", f"target={VERIFIED}"], RAW, VERIFIED),
    ],
)
def test_counts_of_sync_are_those_of_the_table_written(
    run, document, database, tmp_path, options, read, written, merge, add
):
    out = tmp_path / "out.db"
    settings = [part for option in options + merge for part in ("--option", option)]
    page = tmp_path / "page.html"
    command = ("sync", database, "-o", out, "--method", "tracks", add, *settings, "--report", page, "--force")
    told = document(*command)
    assert (told["table_read"], told["table_written"]) == (read, written)
    assert told["matches_read"] == held(database, read)
    assert told["matches_before"] == held(database, written)
    assert told["matches_after"] == held(out, written)
    assert told["matches_kept"] + told["matches_removed"] == told["matches_before"]
    assert told["matches_after"] == told["matches_kept"] + (told["matches_added"] if add == "--add" else 0)
    for name, path in (("before", database), ("after", out)):
        assert told[f"conflicts_{name}"] == document("inspect", path, "--option", f"source={written}")["conflicts"]
    assert written == RAW or held(out, RAW) == held(database, RAW)
    text = page.read_text(encoding="utf-8")
    more = f", {told['matches_added']} added" if add == "--add" else ""
    said = (
        f"What was written is the table {written} of out.db: {told['matches_before']} matches became "
        f"{told['matches_after']} ({told['matches_kept']} kept, {told['matches_removed']} removed{more})."
    )
    assert (said in text) == ("What was written" in text)
    assert said in text or (read == written and f"after </span>{told['matches_after']}</span>" in text)
    assert (f"that were read from the table {read}" in text) == (said in text)
    again = pairs_of(database, VERIFIED) - pairs_of(out, VERIFIED)
    assert told.get("pairs_to_verify", 0) == again
    assert (again > 0) == (written == RAW)
    table = run(*command).stdout
    assert (f"the verified matches of {again} pairs are to be computed again" in table) == (written == RAW)
    written_in_all = f"{told['matches_before']:,} → {told['matches_after']:,}" + (
        f", {told['matches_added']:,} of them added" if add == "--add" else ""
    )
    assert re.search(rf"^ *matches +{written_in_all} *$", table, re.MULTILINE)
    assert ("colmap geometric_verifier" in table) == (written == RAW)
    one_line = f"{written}, not {read}, was written and holds {held(out, written):,} matches now"
    assert (one_line in table) == (read != written)
    assert ("which merge_px keeps" in table) == bool(merge and told["conflicts_after"])


@pytest.mark.parametrize("merge", [[], ["--option", "merge_px=3"]])
def test_what_would_follow_is_what_add_adds(document, database, tmp_path, merge):
    command = ("sync", database, "-o", tmp_path / "out.db", "--method", "tracks", "--force", *merge)
    assert document(*command)["matches_added"] == document(*command, "--add")["matches_added"] > 0


def test_what_was_dropped_to_be_one_to_one_is_told(run, document, tmp_path):
    rows = "object_a,point_a,object_b,point_b\na,0,b,0\na,0,b,1\na,0,b,0\nb,1,c,0\n"
    (tmp_path / "many.csv").write_text(rows)
    to = (tmp_path / "out.csv", "--force")
    command = ("sync", tmp_path / "many.csv", "-o", *to, "--option", "one_to_many=repair")
    told = document(*command)
    assert (told["matches_read"], told["matches_dropped"], told["matches_before"]) == (4, 2, 2)
    said = "4 matches, 2 of them ignored to make them one-to-one"
    assert said in run(*command).stdout
    (tmp_path / "one.csv").write_text(rows.replace("a,0,b,1\na,0,b,0\n", ""))
    told = run("sync", tmp_path / "one.csv", "-o", *to).stdout
    assert "one-to-one" not in told
    assert "read" not in told
    assert document("sync", tmp_path / "one.csv", "-o", *to)["matches_dropped"] == 0


@pytest.mark.parametrize("add", ["--add", "--no-add"])
def test_counts_of_an_hloc_file(document, tmp_path, add):
    pytest.importorskip("h5py")
    made, _ = datasets.synthetic(30, 6, 0.8, 0.15, rng=1)
    io.write(made, tmp_path / "in.h5", add=True)
    told = document("sync", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--method", "union-find", add)
    assert told["matches_before"] == made.n_matches
    assert told["matches_after"] == io.read(tmp_path / "out.h5").n_matches
    assert "table_written" not in told


@pytest.mark.parametrize("ending", ["db", "h5"])
def test_convert_says_what_the_original_does_not_have(run, document, database, tmp_path, ending):
    original, table, back = tmp_path / f"original.{ending}", tmp_path / "raw.csv", tmp_path / f"back.{ending}"
    raw = io.read(database, source=RAW)
    if ending == "h5":
        pytest.importorskip("h5py")
        io.write(io.read(database), original)
    else:
        database.rename(original)
    io.write(raw, table)
    fewer = io.read(original).n_matches
    (said,) = [line for line in document("convert", table, back, "--like", original)["lost"] if "left out" in line]
    where = f"the table {VERIFIED} of {original}" if ending == "db" else original
    assert said.startswith(f"{raw.n_matches - fewer} matches that {where} does not have were left out; ")
    assert "write them too with add=True" in said
    assert io.read(back).n_matches == fewer
    assert "left out" not in run("convert", table, back, "--like", original, "--add", "--force").stdout
    assert io.read(back).n_matches == raw.n_matches
    if ending == "db":
        assert "choose another table with target=." in said
        run("convert", table, back, "--like", original, "--force", "--option", f"target={RAW}")
        assert io.read(back, source=RAW) == raw


def test_convert_of_a_database_counts_what_it_really_drops(document, database, tmp_path):
    for source in TABLES:
        options = ("--option", f"source={source}", "--option", "merge_px=3")
        lost = document("convert", database, tmp_path / "out.db", "--force", *options)["lost"]
        gone = held(database, source) - held(tmp_path / "out.db", source)
        again = pairs_of(database, VERIFIED) - pairs_of(tmp_path / "out.db", VERIFIED)
        verify = [f"The verified matches of {again} pairs are to be computed again."]
        assert (again > 0) == (source == RAW)
        assert lost == [f"{gone} matches of {database} left out to make it one-to-one.", *(verify if again else [])]


def test_report_compares_one_table(run, database, tmp_path, monkeypatch):
    compared = []
    monkeypatch.setattr(
        "stiefelsync.report.files.render",
        lambda found, **_: compared.append((found.counts.before, found.counts.after)) or "",
    )
    clean, page = tmp_path / "clean.db", tmp_path / "page.html"

    def refused(*files, options=()):
        return run("report", *files, "-o", page, *options, "--force", code=2).stderr

    run("sync", database, "-o", clean, "--method", "tracks", "--option", f"source={RAW}")
    assert 0 < held(clean, VERIFIED) < held(database, VERIFIED)  # pairs that did not change are still verified
    told = refused(database, clean)
    assert "pairs that are verified in" in told
    assert "with --option source=matches" in told
    run("report", database, clean, "-o", page, "--option", f"source={RAW}")
    with closing(sqlite3.connect(clean)) as writer, writer:
        writer.execute(f"DELETE FROM {VERIFIED}")
    assert "15 pairs that are verified in" in refused(database, clean)
    assert f"the table {RAW} would be read and of" in refused(clean, database)
    with closing(sqlite3.connect(clean)) as writer, writer:
        writer.execute("DELETE FROM matches")
    run("report", clean, clean, "-o", page, "--force")
    assert compared == [(289, 255), (0, 0)]
    run("sync", database, "-o", clean, "--method", "tracks", "--force")
    run("report", database, clean, "-o", page, "--force")
    assert "leave merge_px out" in refused(database, clean, options=("--option", "merge_px=3"))


def test_counts_of_a_copy_of_another_file_are_those_of_the_copy(run, document, database, tmp_path):
    table, out = tmp_path / "raw.csv", tmp_path / "out.db"
    io.write(io.read(database, source=RAW), table)
    command = ("sync", table, "-o", out, "--like", database, "--method", "tracks", "--force")
    told = document(*command)
    assert (told["matches_read"], told["matches_before"]) == (held(database, RAW), held(database, VERIFIED))
    assert told["matches_after"] == held(out, VERIFIED)
    assert told["conflicts_before"] == document("inspect", database)["conflicts"]
    assert f"read {held(database, RAW)} matches" in " ".join(run(*command).stdout.split())
