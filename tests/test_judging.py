"""The referee: its arithmetic against the truth, and what it says of answers in files."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest

from stiefelsync import Matchings, datasets, io, judge, judging, score, synchronise
from stiefelsync.errors import FormatError, InputError
from stiefelsync.judging import judge_files, pairing_of, summary, told
from stiefelsync.matching.records import Records
from stiefelsync.sync.plausible import Plausible


@pytest.fixture
def knowing(monkeypatch: pytest.MonkeyPatch):
    """A referee who knows a few labellings that may be true, instead of drawing them."""

    def know(*labels, weight=None) -> None:
        drawn = Plausible(labels, np.ones(len(labels)) if weight is None else np.array(weight), "known")
        monkeypatch.setattr(judging, "plausible", lambda ours, rng: drawn)

    return know


@pytest.mark.parametrize("method", ["fast", "kruskal", "union-find", "matchals", "sparse-stiefel"])
def test_who_knows_the_truth_gives_the_true_scores(method: str, knowing):
    problem, truth = datasets.synthetic(15, 7, 0.7, 0.5, rng=2)
    knowing(truth)
    answer = synchronise(problem, 15, method=method)
    found, true = judge(answer, problem), score(answer, truth)
    if answer.consistent:
        assert found.wrong.value == pytest.approx(1 - true.precision)
        assert found.missing.value == pytest.approx(1 - true.recall)
        assert found.fscore.value == pytest.approx(true.fscore)
        assert (found.transitivity, found.cycle_error, found.conflicts) == (1, 0, 0)
    else:
        assert found.conflicts > 0
        assert found.exclusivity < 1
        assert found.transitivity < 1


def test_matches_that_contradict_themselves_count_as_they_are(knowing):
    problem, truth = datasets.synthetic(15, 7, 0.7, 0.5, rng=2)
    knowing(truth)
    found, pairing = judge(problem, problem), pairing_of(problem, problem)
    closed = np.unique(
        np.concatenate([Matchings.from_labels(pairing.group, problem.sizes).match_keys, problem.match_keys])
    )
    ends = np.stack(np.divmod(closed, problem.n_points), axis=1)
    true = score(Matchings.from_endpoints(ends, problem.sizes, one_to_many="repair"), truth)
    assert found.wrong.value == pytest.approx(1 - true.precision)
    assert found.missing.value == pytest.approx(1 - true.recall)
    assert found.pairs == len(closed)


def test_plausible_labellings_are_averaged_by_weight_and_their_spread_is_told(knowing):
    problem, truth = datasets.synthetic(15, 7, 0.7, 0.5, rng=2)
    other = np.roll(truth, 3)
    knowing(truth, other, weight=[3, 1])
    answer = synchronise(problem, 15, method="fast")
    a, b = score(answer, truth), score(answer, other)
    found = judge(answer, problem)
    assert found.fscore.value == pytest.approx((3 * a.fscore + b.fscore) / 4)
    assert (found.fscore.low, found.fscore.high) == pytest.approx(sorted([a.fscore, b.fscore]))


def pairs_of(labels: np.ndarray) -> set[tuple[int, int]]:
    return {(a, b) for a, b in combinations(range(len(labels)), 2) if labels[a] == labels[b] >= 0}


def places_of(problem: Matchings, listed: list[set[tuple[int, int]]]) -> list[set[tuple[int, int]]]:
    """All pairs of points of every set of them."""
    return [set(combinations(sorted(int(problem.offsets[i]) + p for i, p in at), 2)) for at in listed]


def test_two_answers_differ_where_they_differ(knowing):
    problem, truth = datasets.synthetic(12, 6, 0.8, 0.5, rng=5)
    knowing(truth)
    first, second = (synchronise(problem, 12, method=name).labels for name in ("kruskal", "fast"))
    one, two, true = pairs_of(first), pairs_of(second), pairs_of(truth)
    found = judge(first, problem, against=second).against
    assert (found.only_first, found.only_second, found.both) == (len(one - two), len(two - one), len(one & two))
    assert found.right_first.value == pytest.approx(len((one - two) & true) / len(one - two))
    assert found.right_second.value == pytest.approx(len((two - one) & true) / len(two - one))
    assert found.right_both.value == pytest.approx(len(one & two & true) / len(one & two))
    assert found.gain.value == pytest.approx(score(first, truth).fscore - score(second, truth).fscore)
    assert found.better == (found.gain.value > 0)
    # Every pair that only one of them has lies in a place where they differ.
    listed = [set(map(tuple, dispute.points)) for dispute in found.disputes]
    assert len(set().union(*listed)) == sum(map(len, listed))
    assert len(listed) == judging.WORST or one ^ two <= {pair for at in places_of(problem, listed) for pair in at}
    for dispute, points in zip(found.disputes, places_of(problem, listed), strict=True):
        wrong = [len((pairs ^ true) & points) for pairs in (one, two)]
        assert dispute.support == (0.5 if wrong[0] == wrong[1] else float(wrong[0] < wrong[1]))
    # An answer that contradicts itself is compared by its matches.
    raw = judge(problem, problem, against=first).against
    given = pairing_of(problem, problem)
    all_pairs = pairs_of(given.group) | {(min(p), max(p)) for p in map(tuple, given.further.tolist())}
    assert (raw.only_first, raw.both) == (len(all_pairs - one), len(all_pairs & one))


def test_the_worst_tracks_and_their_evidence(knowing):
    #  0 1 2 | 3 4 5: one track of an answer, two in truth; point 6 is right alone.
    problem = Matchings.from_endpoints([[0, 1], [1, 2], [2, 3], [3, 4], [4, 6]], [1] * 7)
    truth = np.array([0, 0, 0, 1, 1, 1, 2])
    knowing(truth)
    (worst,) = judge(np.array([0, 0, 0, 0, 0, 0, 1]), problem).worst
    assert worst.points == tuple((i, 0) for i in range(6))
    assert worst.wrong == pytest.approx(9 / 15)
    assert (worst.astray, worst.inside, worst.silent, worst.outside) == (3, 4, 0, 1)
    assert worst.parts == (0, 0, 0, 1, 1, 1)
    assert (
        "60 % of its pairs likely wrong; 4 matches inside, 0 missing, 1 leading out; likely parts 3 + 3"
        in worst.evidence
    )


def test_labels_with_two_points_of_an_object(knowing):
    problem = Matchings.from_labels([0, 1, 0, 1, 0, 1], [2, 2, 2])
    knowing(np.array([0, 1, 0, 1, 0, 1]))
    found = judge(np.array([0, 0, 0, -1, 0, 1]), problem)
    # Points 0 and 1 are of one object: 2 + 2 + 1 pairs of different ones, of which those with point 1 are wrong.
    assert (found.pairs, found.conflicts, found.tracks) == (5, 1, 1)
    assert found.wrong.value == pytest.approx(2 / 5)


def test_everything_in_one_track_costs_no_more_than_its_points(knowing):
    """All pairs of 60,000 points are 1.8 billion; an answer that puts them all together is judged, too."""
    n = 20_000
    problem = Matchings.from_labels(np.tile(np.arange(n), 3), [n] * 3)
    knowing(np.tile(np.arange(n), 3))
    found = judge(np.zeros(3 * n, dtype=int), problem, against=np.tile(np.arange(n), 3))
    assert found.pairs == 3 * n * n
    assert found.wrong.value == pytest.approx(1 - 1 / n)
    assert found.missing.value == 0
    assert (found.tracks, found.conflicts, found.points_in_tracks) == (1, 1, 3 * n)
    assert found.against.both == 3 * n
    assert (found.against.only_first, found.against.only_second) == (3 * n * n - 3 * n, 0)
    (worst,) = found.worst
    assert worst.silent == 3 * n * n - 3 * n
    assert len(worst.evidence) < 200


def test_points_of_one_object_alone_are_no_track(knowing):
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2])
    knowing(np.array([0, 1, 0, 1]))
    found = judge(np.array([5, 5, 7, -1]), problem)
    assert (found.pairs, found.tracks, found.conflicts) == (0, 0, 0)


def test_tracks_too_long_to_look_at_are_not_on_the_page(tmp_path):
    problem, truth = datasets.synthetic(30, 6, 0.8, 0.5, rng=1)
    given = np.where(truth < 20, 0, truth)  # dozens of points in one track
    found = judge(given, problem)
    page = judging._page(found, problem, given, {"of": tmp_path / "m.npz", "answer": tmp_path / "a.npz"}, None)
    assert "Tracks in conflict are shown by the matches that agree with them." in page
    assert "1 track of too many points" in page
    assert page.count("of its pairs likely wrong") == len(found.worst) - 1


def test_the_likelihood_tells_right_labels_from_wrong_ones():
    problem, truth = datasets.synthetic(20, 12, 0.8, 0.3, rng=4)
    ours = synchronise(problem)
    swapped = np.where(problem.point_objects < 4, (truth + 1) % 20, truth)
    found, worse, own = (judge(labels, problem, ours=ours) for labels in (truth, swapped, ours))
    assert worse.log_likelihood < found.log_likelihood - 100
    assert own.log_likelihood == own.own_log_likelihood == found.own_log_likelihood
    assert told(worse)["likelihood"] == f"{worse.log_likelihood - worse.own_log_likelihood:,.1f} nats beside ours"
    # A point that is alone under a label of its own is alone.
    alone = truth.copy()
    alone[:3] = -1
    named = alone.copy()
    named[:3] = [40, 41, 42]
    first, second = (judge(labels, problem, ours=ours).log_likelihood for labels in (alone, named))
    assert first == pytest.approx(second)
    # Matches that contradict themselves are no labelling.
    assert judge(problem, problem, ours=ours).log_likelihood is None
    assert "likelihood" not in told(judge(problem, problem, ours=ours))


def test_records_are_told_by_source_and_id(knowing):
    def records(*ids: str) -> Records:
        return Records(("p", "q"), np.array([0, 0, 1]), np.array(ids), np.array([True, True]))

    problem = Matchings.from_labels([0, 1, 0], [2, 1]).with_records(records("a", "b", "c"))
    knowing(np.array([0, 1, 0]))
    swapped = Matchings.from_labels([0, 1, 1], [2, 1]).with_records(records("b", "a", "c"))
    assert judge(swapped, problem).wrong.value == 0
    unknown = Matchings.from_labels([0, 1, 1], [2, 1]).with_records(records("z", "a", "c"))
    assert judge(unknown, problem).pairs == 1


def test_our_own_answer_is_our_own():
    problem, _ = datasets.synthetic(12, 8, 0.9, 0.3, rng=0)
    ours = synchronise(problem)
    found = judge(ours, problem, ours=ours)
    assert found.fscore == found.own_fscore
    assert "about as good as ours" in summary(found)
    assert found == judge(ours.labels, problem)
    assert json.loads(json.dumps(found.as_dict()))["tracks"] == found.tracks
    assert "Verdict" in found._repr_html_()
    assert set(told(found)) >= {"wrong", "missing", "fscore", "tracks", "basis"}


def test_better_answers_are_told_from_worse_ones():
    """On row noise, where the model holds: the order of answers is that of their true fscores."""
    problem, truth = datasets.synthetic(30, 12, 0.6, 0.5, rng=7)
    ours = synchronise(problem)
    answers = [synchronise(problem, method=name) for name in ("fast", "clear", "quickmatch", "kruskal", "union-find")]
    true = [score(answer, truth).fscore for answer in answers]
    seen = [judge(answer, problem, ours=ours).fscore.value for answer in answers]
    assert np.argsort(true).tolist() == np.argsort(seen).tolist()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ([0, 1], "an answer is one whole number per point, shape (4,), or matches; got int64 of shape (2,)"),
        ([0.5] * 4, "an answer is one whole number per point, shape (4,), or matches; got float64 of shape (4,)"),
        (Matchings.from_labels([0, 0], [1, 1], names=["a", "z"]), "which the matches do not know"),
    ],
)
def test_answers_to_something_else(answer, said: str):
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a", "b"])
    with pytest.raises(InputError) as error:
        judge(answer, problem)
    assert said in str(error.value)


@pytest.fixture
def folder(tmp_path):
    problem, _ = datasets.synthetic(12, 8, 0.8, 0.5, rng=1)
    io.write(problem, tmp_path / "matches.npz")
    io.write(synchronise(problem, method="kruskal"), tmp_path / "theirs.csv", "tracks")
    io.write(synchronise(problem), tmp_path / "ours.npz")
    return tmp_path


def run(folder, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stiefelsync", "judge", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_verb(folder):
    done = run(folder, "theirs.csv", "--of", "matches.npz", "--against", "ours.npz", "--report", "j.html", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["fscore"]["value"] < told["own_fscore"]["value"]
    assert told["against"]["better"] < 0.1
    page = (folder / "j.html").read_text(encoding="utf-8")
    assert "Judgement of theirs.csv" in page
    assert page.count("of its pairs likely wrong") == len(told["worst"])
    assert "stiefelsync sync matches.npz -o matches-corrected.npz --constraints corrections.csv" in page
    plain = run(folder, "theirs.csv", "--of", "matches.npz")
    assert "worse than ours" in " ".join(plain.stdout.split())
    again = run(folder, "theirs.csv", "--of", "matches.npz", "--report", "j.html")
    assert again.returncode == 2
    assert "is there already" in again.stderr


def test_an_answer_about_other_objects_is_bad_input(folder):
    io.write(Matchings.from_labels([0, 0], [1, 1], names=["x", "y"]), folder / "other.csv")
    named = Matchings.from_labels([0, 0], [1, 1], names=["a", "b"])
    io.write(named, folder / "named.csv")
    done = run(folder, "other.csv", "--of", "named.csv", "--report", "j.html")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (folder / "j.html").exists()


def test_images_without_a_report(folder):
    with pytest.raises(InputError, match="images are shown in the report"):
        judge_files(folder / "theirs.csv", folder / "matches.npz", images=folder)


FORMATS = {
    "npz": "a.npz", "csv": "a.csv", "tracks": "t.csv", "mat": "a.mat", "colmap": "a.db", "hloc": "a.h5",
    "opensfm": "tracks.csv", "dd": "a.dd", "dataset": "a.dataset",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_answers_of_every_format(tmp_path, name: str, knowing):
    """What a file of any format says of the points is judged alike."""
    problem, truth = datasets.synthetic(12, 6, 0.8, 0.5, rng=1)
    names = None if name == "dd" else [f"{i}.jpg" for i in range(6)]
    at = np.random.default_rng(0).uniform(0, 640, (problem.n_points, 2))
    named = Matchings.from_endpoints(problem.endpoints, problem.sizes, names=names, coordinates=at)
    knowing(truth)
    answer = synchronise(named, 12, method="kruskal")
    io.write(named, tmp_path / "of.npz")
    options = {"image_size": (640, 640)} if name == "opensfm" else {}
    io.write(answer, tmp_path / FORMATS[name], name, **options)
    found = judge_files(tmp_path / FORMATS[name], tmp_path / "of.npz")
    assert found.wrong == judge(answer, named).wrong
    assert found.pairs == judge(answer, named).pairs


OPENSFM_ROWS = """OPENSFM_TRACKS_VERSION_v2
a\t0\t0\t0.1\t0.1\t0.004\t0\t0\t0\t-1\t-1
a\t0\t1\t0.2\t0.1\t0.004\t0\t0\t0\t-1\t-1
b\t0\t0\t0.1\t0.1\t0.004\t0\t0\t0\t-1\t-1
c\t7\t9\t0.1\t0.1\t0.004\t0\t0\t0\t-1\t-1
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tracks.csv", "track,object,point\n0,a,0\n0,a,1\n0,b,0\n7,c,9\n"),
        ("tracks.tsv", OPENSFM_ROWS),
    ],
)
def test_tracks_with_two_points_of_an_object_are_judged(tmp_path, knowing, name: str, text: str):
    """Most programs write such; points that were never matched, and that the matches so do not know, are left out."""
    problem = Matchings.from_labels([0, 1, 0, 1, 0, 1], [2, 2, 2], names=["a", "b", "c"])
    io.write(problem, tmp_path / "of.npz")
    (tmp_path / name).write_text(text)
    knowing(np.array([0, 1, 0, 1, 0, 1]))
    found = judge_files(tmp_path / name, tmp_path / "of.npz", report=tmp_path / "page.html")
    assert (found.tracks, found.conflicts, found.pairs) == (1, 1, 2)
    assert found.wrong.value == 0.5
    assert found.missing.value == pytest.approx(5 / 6)
    assert "in conflict" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["track,object,point\n", "object_a,point_a,object_b,point_b\n"])
def test_an_answer_that_says_nothing(tmp_path, knowing, text: str):
    problem = Matchings.from_labels([0, 1, 0, 1, 0, 1], [2, 2, 2], names=["a", "b", "c"])
    io.write(problem, tmp_path / "of.npz")
    (tmp_path / "none.csv").write_text(text)
    knowing(np.array([0, 1, 0, 1, 0, 1]))
    found = judge_files(tmp_path / "none.csv", tmp_path / "of.npz", report=tmp_path / "page.html")
    assert (found.pairs, found.tracks, found.wrong.value, found.missing.value) == (0, 0, 0, 1)


def test_answers_about_more_objects_than_the_matches():
    problem = Matchings.from_labels([0, 0, 0], [1, 1, 1])
    with pytest.raises(InputError, match="the answer is about 4 objects, and the matches about 3"):
        judge(Matchings.from_labels([0, 0, 0, 0], [1] * 4), problem)


def test_answers_that_number_points_differently(knowing):
    """A table of tracks without the points in none: positions tell which is which."""
    problem, truth = datasets.synthetic(12, 6, 0.8, 0.5, rng=1)
    at = np.random.default_rng(0).uniform(0, 640, (problem.n_points, 2))
    problem = Matchings.from_endpoints(problem.endpoints, problem.sizes, coordinates=at)
    knowing(truth)
    order = np.concatenate(
        [a + np.random.default_rng(a).permutation(b - a) for a, b in pairwise(problem.offsets.tolist())]
    )
    answer = synchronise(problem, 12, method="kruskal").labels
    turned = Matchings.from_labels(answer[order], problem.sizes, coordinates=at[order])
    given = Matchings.from_labels(answer, problem.sizes, coordinates=at)
    assert judge(turned, problem).wrong == judge(given, problem).wrong


@pytest.mark.parametrize("text", [False, True])
def test_reconstructions_of_colmap(tmp_path, text: bool):
    pycolmap = pytest.importorskip("pycolmap", reason="the reconstruction is made by pycolmap")
    options = pycolmap.SyntheticDatasetOptions()
    options.num_points3D, options.match_config = 60, pycolmap.SyntheticDatasetMatchConfig.EXHAUSTIVE
    with pycolmap.Database.open(str(tmp_path / "database.db")) as database:
        model = pycolmap.synthesize_dataset(options, database)
    (tmp_path / "sparse").mkdir()
    (model.write_text if text else model.write_binary)(str(tmp_path / "sparse"))
    found = judge_files(tmp_path / "sparse", tmp_path / "database.db", report=tmp_path / "judge.html")
    assert found.tracks == model.num_points3D()
    assert found.points_in_tracks == sum(point.track.length() for point in model.points3D.values())
    assert found.wrong.value < 0.02
    assert found.conflicts == 0
    # One that was cut short, and one of something else.
    name = tmp_path / "sparse" / ("images.txt" if text else "images.bin")
    whole = name.read_bytes()
    name.write_bytes(whole[: len(whole) // 2 + 7])
    with pytest.raises(FormatError, match=r"images"):
        judge_files(tmp_path / "sparse", tmp_path / "database.db")
    name.write_bytes(whole)
    io.write(Matchings.from_labels([0, 0], [1, 1], names=["x", "y"]), tmp_path / "other.npz")
    with pytest.raises(InputError, match="which the matches do not know"):
        judge_files(tmp_path / "sparse", tmp_path / "other.npz")


def test_matches_that_nothing_can_contradict():
    """All objects were compared with one and no others: whatever the matches are, they agree."""
    problem, truth = datasets.shapes.star(rng=0)
    found = judge(truth, problem)
    assert summary(found).startswith("nothing can be said: no cycle of objects was compared")
    assert "do not rely" in told(found)["basis"]
