"""Scores of pairs by somebody else: read, believed or not, and told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit
from typer.testing import CliRunner

from stiefelsync import Matchings, clean, datasets, io, score, synchronise
from stiefelsync.cli.app import app
from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.pair_scores import read_pair_scores
from stiefelsync.sync.scored_pairs import prior_of

NAMES = ["a.jpg", "b.jpg", "c.jpg"]
THREE = Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1], names=NAMES)


@pytest.mark.parametrize("cameras", [10, 20])
@pytest.mark.parametrize("seed", range(3))
def test_look_alikes_are_told_apart_by_scores(cameras: int, seed: int) -> None:
    scene = datasets.twins(cameras, rng=seed)
    problem, prior = scene.matchings, logit(scene.scores)
    without = score(synchronise(problem, method="tracks").labels, scene.truth).fscore
    answer = synchronise(problem, method="tracks", prior=prior)
    assert without < 0.8
    assert score(answer.labels, scene.truth).fscore >= 0.95
    details = answer.outcome.details
    assert sum(vars(details.matches_by_rule).values()) == problem.n_matches
    kept = details.matches_by_rule.consistent + details.matches_by_rule.kept
    assert kept == answer.kept.sum()
    assert details.wrong == pytest.approx(1 - kept / problem.n_matches)
    # Pairs that were scored wrongly are named, with what was said and what is believed.
    apart = {(i, j) for i, j in problem.pair_objects.tolist() if scene.castle[i] != scene.castle[j]}
    figures, number = answer.as_dict(), {name: i for i, name in enumerate(problem.names)}
    left_out = {(number[a], number[b]) for a, b in figures["pairs_left_out"]}
    assert len(left_out ^ apart) <= 0.01 * len(scene.scores)
    place = {pair: p for p, pair in enumerate(map(tuple, problem.pair_objects.tolist()))}
    assert 0.05 < len(figures["disputed_pairs"]) / len(scene.scores) < 0.35
    for a, b, given, found in figures["disputed_pairs"]:
        assert given == pytest.approx(scene.scores[place[number[a], number[b]]])
        assert (given < 0.5) == (found > 0.5)
    assert f"{len(left_out)} pairs left out by scores" in answer.summary()


@pytest.mark.parametrize("method", ["accurate", "fast", "union-find", "matcheig"])
def test_scores_count_whatever_the_method(method: str) -> None:
    scene = datasets.twins(10, rng=0)
    without = synchronise(scene.matchings, method=method)
    answer = synchronise(scene.matchings, method=method, prior=logit(scene.scores))
    good = answer.pairs.good
    one_castle = np.equal(*scene.castle[scene.matchings.pair_objects].T)
    assert (good == one_castle).mean() >= 0.97
    assert answer.input is scene.matchings
    before, after = (found.difference.matches_after.agreeing(scene.truth).mean() for found in (without, answer))
    assert before < 0.8
    assert after >= 0.95
    assert without.pairs is None


def test_a_prior_by_pair_or_by_objects() -> None:
    assert prior_of(THREE, [1, 2, 3]).tolist() == [1, 2, 3]
    assert prior_of(THREE, {(2, 1): 3, (0, 1): -1.5}).tolist() == [-1.5, 0, 3]
    only = synchronise(THREE, method="tracks", prior={(0, 2): -4, (1, 2): -4})
    assert only.labels.tolist() == [0, 0, -1]


@pytest.mark.parametrize(("prior", "message"), [
    ({(0, 3): 1.0}, "names the objects 0 and 3; they are 0 to 2"),
    ({(0, 0): 1.0}, "names the objects 0 and 0"),
    ({5: 1.0}, "not two objects and a number"),
    ({(0, 1): "x"}, "not two objects and a number"),
    ("scores.csv", "log-odds of pairs of objects, got str"),
    ([1.0], "one finite number per pair"),
    ([-9.0, -9.0, -9.0], "turned round"),
])  # fmt: skip
def test_a_prior_that_cannot_be_is_refused(prior: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        synchronise(THREE, method="tracks", prior=prior)


def test_scores_are_read(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("image_a,image_b,score\nb.jpg,a.jpg,0.75\n\na.jpg,c.jpg,0\n")
    found = read_pair_scores(path, THREE)
    assert list(found) == [(0, 1), (0, 2)]
    np.testing.assert_allclose(list(found.values()), [np.log(3), logit(0.001)])


@pytest.mark.parametrize(("text", "kind", "message"), [
    ("", FormatError, "is empty"),
    ("a,b,c\n", FormatError, "the first line of a file of scores is image_a,image_b,score"),
    ("image_a,image_b,score\n", FormatError, "holds no scores"),
    ("image_a,image_b,score\na.jpg,b.jpg\n", FormatError, "line 2: 2 columns where 3 are expected"),
    ("image_a,image_b,score\na.jpg,d.jpg,1\n", InputError, "there is no image 'd.jpg'"),
    ("image_a,image_b,score\na.jpg,a.jpg,1\n", FormatError, "paired with itself"),
    ("image_a,image_b,score\na.jpg,b.jpg,1\nb.jpg,a.jpg,0\n", FormatError, "line 3: .* has a score already"),
    ("image_a,image_b,score\na.jpg,b.jpg,1_0\n", FormatError, "is not a number"),
    ("image_a,image_b,score\na.jpg,b.jpg,nan\n", FormatError, "no probability between 0 and 1"),
    ("image_a,image_b,score\na.jpg,b.jpg,12\n", FormatError, "no probability between 0 and 1"),
    ('image_a,image_b,score\n"a.jpg"x,b.jpg,1\n', FormatError, "not a CSV file"),
])  # fmt: skip
def test_scores_that_cannot_be_are_refused(tmp_path: Path, text: str, kind: type, message: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(kind, match=message):
        read_pair_scores(path, THREE)
    with pytest.raises(InputError, match="does not exist"):
        read_pair_scores(tmp_path / "none.csv", THREE)


def test_clean_takes_scores_and_tells_of_disputes(tmp_path: Path) -> None:
    scene = datasets.twins(10, rng=0)
    problem = scene.matchings
    io.write(problem, tmp_path / "matches.npz")
    rows = [
        f"{problem.names[i]},{problem.names[j]},{p:.4f}"
        for (i, j), p in zip(problem.pair_objects.tolist(), scene.scores, strict=True)
    ]
    scores = tmp_path / "scores.csv"
    scores.write_text("\n".join(["image_a,image_b,score", *rows]))
    done = clean(tmp_path / "matches.npz", tmp_path / "out.npz", pairs=scores, report=tmp_path / "page.html")
    assert done.result.method == "tracks"
    assert score(done.result.labels, scene.truth).fscore >= 0.95
    disputed = done.as_dict()["disputed_pairs"]
    text = (tmp_path / "page.html").read_text()
    assert "Pairs judged otherwise than scored" in text
    assert f"{disputed[0][0]} – {disputed[0][1]} (scored {disputed[0][2]:.2f}" in text
    other = clean(tmp_path / "matches.npz", tmp_path / "other.npz", pairs=scores, method="accurate")
    assert other.result.method == "accurate"
    assert other.as_dict()["disputed_pairs"] == disputed
    assert score(other.result.labels, scene.truth).fscore >= 0.95
    with pytest.raises(InputError, match="input"):
        clean(tmp_path / "matches.npz", scores, pairs=scores, to="npz", force=True)


def test_the_command_line_names_pairs_judged_otherwise(tmp_path: Path) -> None:
    scene = datasets.twins(10, rng=0)
    problem = scene.matchings
    io.write(problem, tmp_path / "matches.npz")
    rows = [
        f"{problem.names[i]},{problem.names[j]},{p:.4f}"
        for (i, j), p in zip(problem.pair_objects.tolist(), scene.scores, strict=True)
    ]
    (tmp_path / "scores.csv").write_text("\n".join(["image_a,image_b,score", *rows]))
    given = [str(tmp_path / "matches.npz"), "--pairs", str(tmp_path / "scores.csv"), "-o", str(tmp_path / "out.npz")]
    told = " ".join(CliRunner().invoke(app, ["sync", *given]).stdout.split())
    figures = json.loads(CliRunner().invoke(app, ["sync", *given, "--force", "--json"]).stdout)
    disputed = figures["disputed_pairs"]
    assert f"{len(figures['pairs_left_out'])} left out, {len(disputed)} judged otherwise than scored" in told
    a, b, before, after = max(disputed, key=lambda pair: abs(pair[2] - pair[3]))
    assert f"{a} – {b} ({before:.2f}, now {after:.2f})" in told
    # They are told as they were scored, and by whom they were matched.
    score = {frozenset(row.split(",")[:2]): float(row.split(",")[2]) for row in rows}
    for first, second, before, after in disputed:
        assert abs(score[frozenset((first, second))] - before) < 1e-9
        assert (before - 0.5) * (after - 0.5) < 0
