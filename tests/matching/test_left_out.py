"""Images, pairs and tracks that are not to be written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stiefelsync import Matchings, clean, io, synchronise
from stiefelsync.cleaning import LeftOut
from stiefelsync.cli.app import app
from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.pair_scores import read_pairs
from stiefelsync.matching.left_out import are_among, pairs_to_drop
from stiefelsync.sync.longest import keep_longest
from tests.io.test_io_colmap_positions import build
from tests.io.test_io_colmap_positions import problem as views


def test_a_dropped_pair_is_not_written_though_the_others_imply_it(tmp_path: Path) -> None:
    given = views(0.0)
    build(tmp_path / "database.db", given, given)
    for add in (False, True):
        path = tmp_path / f"{add}.db"
        done = clean(tmp_path / "database.db", path, add=add, left_out=LeftOut(pairs=[("c.jpg", "a.jpg")]))
        left = io.read(path)
        assert left.pair_objects.tolist() == [[0, 1], [1, 2]]
        assert done.counts.kept == left.n_matches == 2 * given.n_matches // 3


def test_a_dropped_image_has_no_match(tmp_path: Path) -> None:
    given = views(0.0)
    build(tmp_path / "database.db", given, given)
    clean(tmp_path / "database.db", tmp_path / "clean.db", left_out=LeftOut(["b.jpg"]))
    assert io.read(tmp_path / "clean.db").pair_objects.tolist() == [[0, 2]]
    with pytest.raises(InputError, match=r"d\.jpg"):
        clean(tmp_path / "database.db", tmp_path / "other.db", left_out=LeftOut(["d.jpg"]))
    assert not (tmp_path / "other.db").exists()


def test_names_are_numbers_where_there_are_none() -> None:
    problem = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1])
    assert pairs_to_drop(problem, ["2"], []).tolist() == [[1, 2]]
    assert pairs_to_drop(problem, [], []).tolist() == []
    with pytest.raises(InputError, match="two names"):
        pairs_to_drop(problem, [], ["01"])


def test_rows_among_pairs_by_a_plain_search() -> None:
    rng = np.random.default_rng(0)
    rows, pairs = rng.integers(0, 6, (200, 2)), np.sort(rng.integers(0, 5, (4, 2)), axis=1)
    wanted = {tuple(pair) for pair in pairs.tolist()}
    assert are_among(rows, pairs).tolist() == [tuple(sorted(row)) in wanted for row in rows.tolist()]


def test_the_longest_tracks_stay_and_of_equal_ones_the_surest() -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.permutation(40)[:25] for _ in range(8)])
    problem = Matchings.from_labels(truth, [25] * 8)
    problem = problem.keep(rng.random(problem.n_matches) < 0.6)
    answer = synchronise(problem, method="tracks")
    length = np.bincount(answer.labels[answer.labels >= 0])
    sure = {int(t): s for t, s in zip(answer.labels, answer.point_confidence, strict=True) if t >= 0}
    for count in (1, 7, 20):
        few = keep_longest(answer, count)
        kept = {int(t) for t in answer.labels[few.labels >= 0]}
        expected = sorted(range(len(length)), key=lambda t: (-length[t], -sure[t], t))[:count]
        assert kept == set(expected)
        for t in kept:
            assert len({int(label) for label in few.labels[answer.labels == t]}) == 1
        assert few.kept.sum() == sum(answer.kept & np.isin(answer.labels[problem.endpoints[:, 0]], expected))
    assert keep_longest(answer, 10**6) is answer
    for wrong in (0, 1.5, True):
        with pytest.raises(InputError, match="whole number, 1 or more"):
            keep_longest(answer, wrong)


def test_few_tracks_are_written(tmp_path: Path) -> None:
    given = views(0.0)
    build(tmp_path / "database.db", given, given)
    clean(tmp_path / "database.db", tmp_path / "clean.db", left_out=LeftOut(keep_tracks=7))
    assert io.read(tmp_path / "clean.db").n_matches == 3 * 7


def test_the_command_line_drops_and_keeps(tmp_path: Path) -> None:
    given = views(0.0)
    build(tmp_path / "database.db", given, given)
    (tmp_path / "pairs.txt").write_text("a.jpg c.jpg\n")
    arguments = ["sync", str(tmp_path / "database.db"), "-o", str(tmp_path / "clean.db")]
    more = ["--drop-pairs", str(tmp_path / "pairs.txt"), "--keep-tracks", "5", "--drop-images", "b.jpg"]
    assert CliRunner().invoke(app, [*arguments, *more[:4]]).exit_code == 0
    assert io.read(tmp_path / "clean.db").n_matches == 2 * 5
    arguments[-1] = str(tmp_path / "none.db")
    told = CliRunner().invoke(app, [*arguments, *more])
    assert (told.exit_code, "no match is left" in told.output) == (2, True)


@pytest.mark.parametrize(("text", "message"), [("a.jpg\n", "line 1: 1 name"), ("a b c\n", "line 1: 3 names")])
def test_a_list_of_pairs_that_is_none_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pairs.txt").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_pairs(tmp_path / "pairs.txt")
    with pytest.raises(InputError, match="does not exist"):
        read_pairs(tmp_path / "none.txt")
