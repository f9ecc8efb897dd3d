"""Every verb does what it says, in tables and in JSON."""

from __future__ import annotations

import ast
import csv
import hashlib
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import METHODS, Matchings, datasets, io, score
from stiefelsync.cli.app import VERBS
from stiefelsync.datasets.cameras import cameras
from stiefelsync.sync.method import Method
from tests.io.colmap_schemas import build

NAMES = [verb.__name__.rpartition(".")[2] for verb in VERBS]


@pytest.mark.parametrize("verb", NAMES)
def test_every_verb_has_help_json_and_seed(run, verb):
    text = run(verb, "--help").stdout
    for option in ("--help", "--json", "--seed"):
        assert option in text


def test_verbs_of_the_contract_exist():
    verbs = "demo inspect sync judge merge convert compare report synth reproduce methods"
    assert set(verbs.split()) == set(NAMES)


def test_version(run):
    from stiefelsync import __version__
    from stiefelsync._core.library import about

    lines = run("--version").stdout.splitlines()
    assert lines[0] == f"stiefelsync {__version__}"
    assert lines[1:] == [
        f"kernels {about()['fingerprint']}, {about()['compiler']}",
        f"processor {about()['processor']}",
    ]


def test_synth_is_the_library_function(run, tmp_path):
    out = tmp_path / "p.npz"
    run(
        "synth", out, "--universe", 10, "--objects", 6, "--observed", 0.7, "--error", 0.3, "--noise", "mix", "--seed", 5
    )
    expected, truth = datasets.synthetic(10, 6, 0.7, 0.3, noise="mix", rng=5)
    assert io.read(out) == expected
    assert np.array_equal(io.read_truth(out), truth)


def test_synth_csv_says_that_the_truth_is_lost(run, tmp_path):
    result = run("synth", tmp_path / "p.csv", "--objects", 4)
    assert "truth" in result.stderr
    assert io.read(tmp_path / "p.csv").n_objects == 4


def test_inspect_counts(document, tmp_path):
    # Points 0 and 1 of object 0 both lead to point 0 of object 2, and lie 8 px apart in x and in y: 11.3 px.
    pairs = {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}
    x = [[0, 0], [8, 8], [0, 0], [5, 5], [0, 0]]
    io.write(Matchings.from_pairs(pairs, [2, 2, 1], coordinates=x), tmp_path / "p.npz")
    found = document("inspect", tmp_path / "p.npz")
    expected = {"objects": 3, "points": 5, "matches": 3, "pairs": 3, "unmatched": 1, "components": 1}
    assert {name: found[name] for name in expected} == expected
    assert (found["largest_component"], found["conflicts"], found["conflicts_apart"]) == (4, 1, 1)
    x[1] = [6, 7]
    io.write(Matchings.from_pairs(pairs, [2, 2, 1], coordinates=x), tmp_path / "p.npz", force=True)
    assert document("inspect", tmp_path / "p.npz")["conflicts_apart"] == 0


def test_inspect_says_what_it_cannot_know(run, document, tmp_path):
    io.write(Matchings.from_labels([0, 1, 0, 1], [2, 2]), tmp_path / "two.npz")
    told = run("inspect", tmp_path / "two.npz", "--verbose").stdout
    assert told.count("unknown (no cycle of three objects)") == 2
    assert "0.0 %" not in told
    found = document("inspect", tmp_path / "two.npz")
    assert [found[name] for name in ("cycle_error", "cycle_error_uncertainty", "wrong_share")] == [None] * 3
    open_cycle = {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}
    io.write(Matchings.from_pairs(open_cycle, [2, 1, 1]), tmp_path / "open.npz")
    told = run("inspect", tmp_path / "open.npz", "--verbose").stdout
    assert "100.0 % of the cycles of three matches do not close (2 cycles in 1 triplet of objects)" in told
    assert "unknown (only 2 cycles of three matches)" in told


def test_inspect_exit_code_is_a_finding(run, document, problem):
    conflicts = document("inspect", problem)["conflicts"]
    assert conflicts > 0
    assert document("inspect", problem, "--max-conflicts", conflicts - 1, code=1)["exceeded"]
    run("inspect", problem, "--max-conflicts", conflicts)


@pytest.mark.parametrize("error", [0.1, 0.3])
def test_inspect_estimates_the_share_of_wrong_matches(document, tmp_path, error):
    made, truth = datasets.synthetic(40, 12, 1.0, error, rng=0)
    io.write(made, tmp_path / "p.npz")
    estimate = document("inspect", tmp_path / "p.npz")["wrong_share"]
    assert estimate == pytest.approx(1 - score(made, truth).precision, abs=0.02)


def test_sync_writes_a_consistent_file_and_says_what_changed(run, document, problem, tmp_path):
    digest = hashlib.sha256(problem.read_bytes()).hexdigest()
    out = tmp_path / "out.npz"
    told = document("sync", problem, "-o", out, "--universe", 12, "--seed", 1)
    before, after = io.read(problem), io.read(out)
    common = len({*map(tuple, before.endpoints.tolist())} & {*map(tuple, after.endpoints.tolist())})
    assert told["matches_before"] == before.n_matches
    assert told["matches_after"] == after.n_matches
    assert told["matches_kept"] == common
    assert told["matches_removed"] == before.n_matches - common
    assert told["matches_added"] == after.n_matches - common
    assert told["conflicts_before"] > 0
    assert told["conflicts_after"] == 0 == document("inspect", out)["conflicts"]
    assert document("inspect", out)["cycle_error"] == 0
    assert hashlib.sha256(problem.read_bytes()).hexdigest() == digest
    table = run("sync", problem, "-o", out, "--universe", 12, "--seed", 1, "--force").stdout
    assert f"{before.n_matches:,} → {after.n_matches:,}, {after.n_matches - common:,} of them added" in table
    assert f"{common:,} kept" not in table
    table = run("sync", problem, "-o", out, "--universe", 12, "--seed", 1, "--force", "--verbose").stdout
    assert f"{common:,} kept" in table
    assert "s in all" in table
    assert "gap" not in table
    assert "gap" not in told
    certified = document("sync", problem, "-o", out, "--universe", 12, "--seed", 1, "--certificate", "--force")
    assert certified["objective"] == told["objective"] <= certified["upper_bound"]
    assert "gap" in run("sync", problem, "-o", out, "--universe", 12, "--certificate", "--force").stdout


def test_sync_without_adding_keeps_a_subset(run, problem, tmp_path):
    run("sync", problem, "-o", tmp_path / "out.npz", "--no-add")
    before, after = io.read(problem), io.read(tmp_path / "out.npz")
    assert {*map(tuple, after.endpoints.tolist())} < {*map(tuple, before.endpoints.tolist())}


def test_sync_same_seed_same_file(run, problem, tmp_path):
    for name in ("a.npz", "b.npz"):
        run("sync", problem, "-o", tmp_path / name, "--method", "sparse-stiefel", "--seed", 7)
    assert io.read(tmp_path / "a.npz") == io.read(tmp_path / "b.npz")


def test_sync_with_a_method_that_is_not_consistent(run, problem, tmp_path):
    told = run("sync", problem, "-o", tmp_path / "out.npz", "--method", "matcheig", "--universe", 12).stdout
    assert "not cycle-consistent" in told
    assert io.read(tmp_path / "out.npz").n_matches > 0


def test_sync_options_reach_the_method(document, problem, tmp_path):
    arguments = ("sync", problem, "-o", tmp_path / "out.npz", "--method", "sparse-stiefel", "--universe", 12)
    assert document(*arguments, "--option", "max_iter=3", "--option", "dtype=float32")["iterations"] == 3


@pytest.mark.parametrize("choice", ["--add", "--no-add"])
def test_the_picture_shows_what_the_file_holds(run, problem, tmp_path, monkeypatch, choice):
    drawn = []
    monkeypatch.setattr("stiefelsync.plotting.save_to", lambda path, figure: drawn.append(figure) or path.touch())
    run("sync", problem, "-o", tmp_path / "out.npz", "--method", "fast", choice, "--plot", tmp_path / "picture.png")
    before, after = io.read(problem), io.read(tmp_path / "out.npz")
    titles = [ax.get_title("left") for ax in drawn[0].axes[:2]]
    assert titles == [f"before: {before.n_matches:,} matches", f"after: {after.n_matches:,} matches"]
    assert ("0 added" in [text.get_text() for text in drawn[0].axes[1].get_legend().get_texts()]) == (
        choice == "--no-add"
    )


def test_sync_plot_and_report(run, problem, tmp_path):
    picture, page = tmp_path / "p.png", tmp_path / "p.html"
    run("sync", problem, "-o", tmp_path / "out.npz", "--method", "sparse-stiefel", "--plot", picture, "--report", page)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "<html" in page.read_text().lower()


def test_sync_writes_tracks_on_request(document, problem, tmp_path):
    told = document("sync", problem, "-o", tmp_path / "tracks.csv", "--to", "tracks", "--method", "union-find")
    rows = (tmp_path / "tracks.csv").read_text().splitlines()
    assert rows[0] == "track,object,point,confidence"
    assert all(0 < float(row.split(",")[3]) < 1 for row in rows[1:])
    assert len({row.split(",")[0] for row in rows[1:]}) == told["tracks"]


def test_tracks_hold_what_follows_also_where_it_is_not_asked_for(document, problem, tmp_path):
    page, out = tmp_path / "page.html", tmp_path / "tracks.csv"
    told = document("sync", problem, "-o", out, "--to", "tracks", "--method", "fast", "--no-add", "--report", page)
    assert told["matches_after"] == io.read(out).n_matches > told["matches_kept"]
    assert "on this page only" not in page.read_text(encoding="utf-8")


def test_the_page_says_what_the_file_does_not_have(run, problem, tmp_path):
    page, said = tmp_path / "page.html", "are shown on this page only; out.h5 does not hold them."
    command = ("sync", problem, "-o", tmp_path / "out.h5", "--method", "fast", "--report", page)
    run(*command)
    text = page.read_text(encoding="utf-8")
    assert said in text
    assert "more would follow. " in text
    assert f"after </span>{io.read(tmp_path / 'out.h5').n_matches}</span>" in text
    run(*command, "--add", "--force")
    text = page.read_text(encoding="utf-8")
    assert said not in text
    assert "would follow" not in text.partition("<script")[0]


def test_sync_says_what_the_output_format_loses(run, document, tmp_path):
    scene, _ = cameras(cameras=4, rng=0)
    io.write(scene.with_weights(np.full(scene.n_matches, 0.5)), tmp_path / "scene.npz")
    command = ("sync", tmp_path / "scene.npz", "-o", tmp_path / "out.csv", "--method", "union-find", "--force")
    lost = document(*command)["lost"]
    no_weights = "The matches of the answer have no weights: those of the input are not written."
    assert lost == [
        "A CSV file of matches holds no point coordinates.",
        "A plain CSV file of matches tells of no points behind the last one matched: 6 points left out.",
        "With plain=False it does, in lines before its header.",
        no_weights,
    ]
    told = run(*command).stdout.splitlines()
    assert [line for line in told if line in lost] == lost
    command = ("sync", tmp_path / "scene.npz", "-o", tmp_path / "out.dd", "--method", "union-find", "--no-add")
    lost = document(*command)["lost"]
    assert len(lost) == 2
    assert "names" in lost[0]
    assert "coordinates" in lost[1]
    plain = ("sync", tmp_path / "out.csv", "-o", tmp_path / "again.csv", "--method", "union-find")
    assert document(*plain)["lost"] == []


def test_files_about_different_objects_are_not_compared(run, tmp_path):
    for name, objects in (("a", ["1.jpg", "2.jpg"]), ("b", ["x.jpg", "y.jpg"])):
        made = Matchings.from_labels([0, 0], [1, 1], names=objects, coordinates=[[1, 1], [2, 2]])
        build(tmp_path / f"{name}.db", made, made.pairs() if name == "a" else {})
    told = run("report", tmp_path / "a.db", tmp_path / "b.db", "-o", tmp_path / "page.html", code=2).stderr
    assert "the matches after are about 'x.jpg', which those before do not know" in told


def test_what_cannot_be_saved_or_drawn_leaves_no_file(run, problem, tmp_path, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    page, picture = tmp_path / "p.html", tmp_path / "p.png"
    everything = ("sync", problem, "-o", tmp_path / "out.npz", "--method", "union-find", "--report", page)
    with monkeypatch.context() as patched:
        patched.setattr("numpy.savez_compressed", full)
        assert "No space left" in run(*everything, "--plot", picture, code=2).stderr
    assert "objects have no names" in run(*everything, "--plot", picture, "--images", tmp_path, code=2).stderr
    assert [*tmp_path.iterdir()] == [problem]
    page.write_text("not a page")
    assert "is there already" in run(*everything, code=2).stderr
    assert "is not a web page" in run(*everything, "--force", code=2).stderr
    assert page.read_text() == "not a page"
    assert not (tmp_path / "out.npz").exists()


def test_report_from_two_files(run, problem, tmp_path):
    run("sync", problem, "-o", tmp_path / "out.npz", "--method", "union-find")
    told = run("report", problem, tmp_path / "out.npz", "-o", tmp_path / "page.html", "--title", "What changed")
    assert "page.html" in told.stdout
    assert "What changed" in (tmp_path / "page.html").read_text()


def test_convert_round_trip_and_what_is_lost(run, document, problem, tmp_path):
    assert "nothing was lost" in run("convert", problem, tmp_path / "p.csv").stdout
    run("convert", tmp_path / "p.csv", tmp_path / "back.npz")
    assert io.read(tmp_path / "back.npz").pairs().keys() == io.read(problem).pairs().keys()
    with_places, _ = cameras(cameras=3, rng=0)
    io.write(with_places, tmp_path / "scene.npz")
    lost = document("convert", tmp_path / "scene.npz", tmp_path / "scene.csv")["lost"]
    assert any("coordinates" in sentence for sentence in lost)


def test_compare_is_sorted_and_marks_inconsistent_methods(run, document, problem, tmp_path):
    methods, out = "union-find,matcheig,fast,sparse-stiefel:p=4", tmp_path / "table.csv"
    arguments = ("compare", problem, "--methods", methods, "--universe", 12)
    rows = document(*arguments, "--csv", out)["methods"]
    fscores = [row["fscore"] for row in rows if row["consistent"]]
    assert fscores == sorted(fscores, reverse=True)
    assert rows[-1]["method"] == "matcheig"
    assert {row["method"] for row in rows} == set(methods.split(","))
    marked = {row["method"]: row["consistent"] for row in rows}
    assert marked == {"union-find": True, "matcheig": False, "fast": True, "sparse-stiefel:p=4": True}
    with out.open(newline="") as file:
        assert [row["method"] for row in csv.DictReader(file)] == [row["method"] for row in rows]
    table = run(*arguments).stdout
    assert "matcheig *" in table
    for column in ("fscore", "precision", "recall", "objective", "cycle error"):
        assert column in table
    assert "gap" not in table
    assert "gap" in run(*arguments, "--certificate").stdout


def test_compare_with_a_truth_file_and_without(run, document, problem, tmp_path):
    made = io.read(problem)
    io.write(made, tmp_path / "bare.npz")
    (row,) = document("compare", tmp_path / "bare.npz", "--methods", "union-find")["methods"]
    assert row["fscore"] is None
    told = run("compare", tmp_path / "bare.npz", "--methods", "union-find").stdout
    assert "objective" in told
    assert not any(column in told for column in ("fscore", "precision", "recall"))
    truth = Matchings.from_labels(io.read_truth(problem), made.sizes)
    io.write(truth, tmp_path / "truth.csv")
    (known,) = document("compare", tmp_path / "bare.npz", "--methods", "fast", "--truth", tmp_path / "truth.csv")[
        "methods"
    ]
    (own,) = document("compare", problem, "--methods", "fast")["methods"]
    assert known["fscore"] == own["fscore"] > 0.5


def test_compare_says_which_method_ran(run, document, problem, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("stiefelsync.sync.choose"), "MAX_PRESET_ENTRIES", 100)
    rows = document("compare", problem, "--methods", "accurate,union-find", "--csv", tmp_path / "table.csv")["methods"]
    ran = {row["method"]: row["ran"] for row in rows}
    assert ran == {"accurate": "tracks", "union-find": "union-find"}
    with (tmp_path / "table.csv").open(newline="") as file:
        assert {row["method"]: row["ran"] for row in csv.DictReader(file)} == ran
    told = run("compare", problem, "--methods", "accurate,union-find").stdout
    assert "tracks (for accurate)" in told
    assert "accurate: too large for it, so tracks ran instead; --universe N, such as " in told
    size = told.partition("such as ")[2].partition(",")[0]
    rows = document("compare", problem, "--methods", "accurate,fast", "--universe", size)["methods"]
    assert {row["method"]: row["ran"] for row in rows} == {"accurate": "accurate", "fast": "fast"}
    monkeypatch.setattr(importlib.import_module("stiefelsync.sync.choose"), "MAX_DENSE_ENTRIES", 100)
    told = run("compare", problem, "--methods", "accurate,fast").stdout
    assert "too large for them, so tracks ran instead\n" in told
    usual = document("compare", problem)["methods"]
    assert {row["method"] for row in usual} == {"tracks", "sparse-stiefel", "union-find"}


def test_compare_takes_several_problems_and_seeds(run, document, tmp_path):
    files = [tmp_path / f"drawn-{seed}.npz" for seed in range(2)]
    for seed, file in enumerate(files):
        run("synth", file, "--universe", 8, "--objects", 6, "--error", 0.3, "--seed", seed)
    outputs = {name: tmp_path / f"all.{name}" for name in ("csv", "latex", "png")}
    arguments = ["compare", *files, "--methods", "tracks,union-find", "--seeds", 2, "--seed", 3]
    written = ["--csv", outputs["csv"], "--latex", outputs["latex"], "--plot", outputs["png"]]
    told = document(*arguments, *written)
    assert (told["seeds"], told["truth"]) == ([3, 4], True)
    alone = [
        document("compare", file, "--methods", "union-find", "--seed", seed)["methods"][0]["fscore"]
        for file in files
        for seed in (3, 4)
    ]
    row = next(row for row in told["methods"] if row["method"] == "union-find")
    assert row["runs"] == 4
    assert row["fscore"] == pytest.approx(np.mean(alone))
    assert row["sd"]["fscore"] == pytest.approx(np.std(alone, ddof=1))
    with outputs["csv"].open(newline="") as file:
        saved = {line["method"]: line for line in csv.DictReader(file)}
    assert float(saved["union-find"]["fscore_sd"]) == row["sd"]["fscore"]
    assert f"{row['fscore']:.3f} $\\pm$ {row['sd']['fscore']:.3f}" in outputs["latex"].read_text()
    assert outputs["png"].read_bytes().startswith(b"\x89PNG")
    shown = run(*arguments).stdout
    assert "2 problems, mean ± standard deviation of 4 runs" in shown
    assert f"{row['fscore']:.3f} ± {row['sd']['fscore']:.3f}" in shown


def test_what_compare_writes_appears_whole_or_not_at_all(run, problem, tmp_path):
    table = tmp_path / "table.csv"
    assert "must end in .png, .pdf or .svg" in run("compare", problem, "--plot", tmp_path / "a.bmp", code=2).stderr
    run("compare", problem, "--methods", "union-fin", "--csv", table, "--latex", tmp_path / "t.tex", code=2)
    assert "--truth is of one problem" in run("compare", problem, problem, "--truth", problem, code=2).stderr
    assert not table.exists()


def test_methods_lists_all_of_them(run, document):
    listed = {entry["name"]: entry for entry in document("methods")}
    assert listed.keys() == METHODS.keys()
    assert listed["sparse-stiefel"]["consistent"] is True
    assert "extra_iter" in listed["sparse-stiefel"]["options"]
    table = run("methods").stdout
    assert all(name in table for name in METHODS)


def test_help_lists_the_formats(run):
    for verb in ("inspect", "convert"):
        words = run(verb, "--help").stdout.replace(",", " ").replace(".", " ").split()
        assert {*io.FORMATS} <= {*words}


def test_methods_shows_the_options_of_one(run, document):
    told = run("methods", "nmfsync").stdout
    for text in ("nmfsync: ", "threshold", "Points whose score does not exceed it stay unmatched.", "float64"):
        assert text in told
    found = document("methods", "sparse-stiefel")
    assert found["options"]["p"] == {
        "default": 3,
        "meaning": "Power of the secondary objective, an integer of at least 3.",
    }
    assert "has no options" in run("methods", "union-find").stdout
    assert "did you mean 'tracks'" in run("methods", "track", code=2).stderr


def test_the_program_is_installed_and_json_is_all_of_stdout(problem):
    program = Path(sys.executable).with_name("stiefelsync")
    done = subprocess.run([program, "inspect", problem, "--json"], capture_output=True, text=True, check=True)
    import json

    assert json.loads(done.stdout)["objects"] == 8
    assert done.stderr == ""


def test_options_of_formats(run, document, tmp_path):
    """Matches that are not one-to-one are refused, or repaired on request, by every verb that reads."""
    rows = "object_a,point_a,object_b,point_b,weight\na,0,b,0,1\na,0,b,1,5\nb,1,c,0,1\n"
    (tmp_path / "many.csv").write_text(rows)
    repair = ("--option", "one_to_many=repair")
    assert "; --option one_to_many=repair keeps the heaviest)" in run("inspect", tmp_path / "many.csv", code=2).stderr
    found = document("inspect", tmp_path / "many.csv", *repair)
    assert (found["matches"], found["repair"]) == (2, {"duplicates": 0, "second_partners": 1})
    told = run("inspect", tmp_path / "many.csv", *repair).stdout
    assert "1 match to make them one-to-one: 0 given twice, 1 to a second partner" in told
    lost = document("convert", tmp_path / "many.csv", tmp_path / "one.npz", *repair)["lost"]
    assert lost == [f"1 match of {tmp_path / 'many.csv'} left out to make it one-to-one."]
    assert io.read(tmp_path / "one.npz").pair(0, 1).tolist() == [[0, 1]]
    assert (
        document("compare", tmp_path / "many.csv", "--methods", "union-find", "--certificate", *repair)["methods"][0][
            "gap"
        ]
        == 0
    )
    run("sync", tmp_path / "many.csv", "-o", tmp_path / "out.csv", "--method", "union-find", *repair)
    run("report", tmp_path / "many.csv", tmp_path / "out.csv", "-o", tmp_path / "page.html", *repair)
    unknown = run(
        "report", tmp_path / "many.csv", tmp_path / "out.csv", "-o", tmp_path / "b.html", "--option", "p=1", code=2
    )
    assert "unknown option 'p'" in unknown.stderr


def test_compare_lists_a_method_that_cannot_run(run, document, problem, monkeypatch):
    from stiefelsync import MissingExtraError
    from stiefelsync.sync import comparison

    original = comparison.synchronise

    def without(*arguments: object, method: Method, **options: object) -> object:
        if method.name == "eig-manopt":
            raise MissingExtraError("trust regions", "pymanopt", "rivals")
        return original(*arguments, method=method, **options)

    monkeypatch.setattr(comparison, "synchronise", without)
    rows = document("compare", problem, "--methods", "eig-manopt,union-find")["methods"]
    assert [row["method"] for row in rows] == ["union-find", "eig-manopt"]
    assert "stiefelsync[rivals]" in rows[1]["error"]
    told = run("compare", problem, "--methods", "eig-manopt,union-find").stdout
    assert "eig-manopt did not run: trust regions needs pymanopt" in told
    assert "– s" not in told
    assert "stiefelsync[rivals]" in run("compare", problem, "--methods", "eig-manopt", code=2).stderr


def test_every_verb_but_the_extras_runs_on_the_core_alone(problem, tmp_path):
    """With no optional package the program starts, and says which extra a picture or a page needs."""
    code = """
import sys
for name in ("matplotlib", "matplotlib.figure", "jinja2", "PIL", "h5py", "pycolmap", "pymanopt"):
    sys.modules[name] = None
from stiefelsync.cli import app
app(sys.argv[1:])
"""
    out = tmp_path / "out.npz"

    def call(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)

    assert call("sync", problem, "-o", out).returncode == 0
    out.unlink()
    for option, extra in (("--plot", "plot"), ("--report", "report")):
        done = call("sync", problem, "-o", out, option, tmp_path / {"plot": "p.png", "report": "p.html"}[extra])
        assert done.returncode == 2
        assert f'pip install "stiefelsync[{extra}]"' in done.stderr
    assert [*tmp_path.iterdir()] == [problem]


@pytest.mark.parametrize(
    ("stream", "arguments"),
    [
        *(("stdout", line) for line in ("methods", "methods --json", "--help", "sync --help", "synth p.npz")),
        *(("stderr", line) for line in ("inspect none.npz", "methods --nope")),
    ],
)
def test_the_reader_of_the_output_has_gone(tmp_path, stream, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    code = "import sys; from stiefelsync.cli import main; sys.argv[0] = 'stiefelsync'; main()"
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writer}
    done = subprocess.run([sys.executable, "-c", code, *arguments.split()], **streams, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE
    assert not done.stdout
    assert not done.stderr


def test_reproduce_says_how_to_get_the_data(run, tmp_path, monkeypatch):
    monkeypatch.delenv("STIEFELSYNC_DATA", raising=False)
    monkeypatch.setattr("stiefelsync.datasets.fetch.cache_dir", lambda: tmp_path / "cache")
    for experiment in ("house", "house-matches", "house-ablation", "all"):
        told = run("reproduce", experiment, "--quick", "--output", tmp_path / "first", code=2).stderr
        assert "pass --download to fetch it" in told
    (tmp_path / "data" / "house").mkdir(parents=True)
    (tmp_path / "data" / "house" / "house_sync_data.mat").write_bytes(b"something else")
    monkeypatch.setenv("STIEFELSYNC_DATA", str(tmp_path / "data"))
    told = run("reproduce", "house", "--quick", "--output", tmp_path / "first", code=2).stderr
    assert "is not the house_sync_data.mat published with the paper" in told
    assert not (tmp_path / "first").exists()
    monkeypatch.delenv("STIEFELSYNC_DATA")

    def offline(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", offline)
    told = run("reproduce", "house", "--download", "--output", tmp_path / "out", code=2).stderr
    assert "could not be fetched (no network); fetch it by hand to" in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["sync", "convert", "report", "inspect", "compare", "synth"])
def test_quiet_prints_nothing(run, problem, tmp_path, verb):
    arguments = {
        "sync": (problem, "-o", tmp_path / "out.npz", "--method", "union-find"),
        "convert": (problem, tmp_path / "out.csv"),
        "report": (problem, problem, "-o", tmp_path / "page.html"),
        "inspect": (problem,),
        "compare": (problem, "--methods", "union-find"),
        "synth": (tmp_path / "made.npz",),
    }[verb]
    result = run(verb, *arguments, "--quiet")
    assert (result.stdout, result.stderr) == ("", "")


def test_swapped_files_of_a_report_are_noticed(run, problem, tmp_path):
    clean = tmp_path / "clean.npz"
    run("sync", problem, "-o", clean, "--method", "union-find")
    told = run("report", clean, problem, "-o", tmp_path / "swapped.html").stderr
    assert "were they swapped?" in told
    assert "swapped" not in run("report", problem, clean, "-o", tmp_path / "page.html").stderr


def test_pixels_are_mentioned_only_where_coordinates_are_pixels(run, document, tmp_path):
    pairs = {(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}
    positions = {
        "pixels": [[0, 0], [80, 8], [1, 1], [5, 5]],
        "OpenSfM": [[-0.4, 0], [0.4, 0.1], [0, 0], [0, 0]],
        "shares": [[0.1, 0], [0.9, 0.1], [0, 0], [0, 0]],
        "metres": [[-40, 0], [40, 0.1], [0, 0], [0, 0]],
    }
    for name, x in positions.items():
        path = tmp_path / f"{name}.npz"
        io.write(Matchings.from_pairs(pairs, [2, 1, 1], coordinates=x), path)
        assert ("at 10 px" in run("inspect", path, "--verbose").stdout) == (name == "pixels")
        assert (document("inspect", path)["conflicts_apart"] is None) == (name != "pixels")


def test_no_method_and_no_format_is_named_in_the_code_of_the_command_line():
    folder = Path(importlib.import_module("stiefelsync.cli").__file__).parent
    for path in folder.glob("*.py"):
        texts = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        }
        assert not texts & ({*METHODS, *io.FORMATS} - {"tracks", "csv"}), path  # these two are also names of lines
