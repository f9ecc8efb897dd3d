"""Every snippet of Python and every command of the program on README and pages runs as it stands."""

from __future__ import annotations

import gzip
import importlib.util
import pickle
import re
import shlex
import shutil
from glob import glob
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stiefelsync import Matchings, datasets, io, synchronise
from stiefelsync.cli import app
from stiefelsync.following import follow
from stiefelsync.io.tables.files import write_columns

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if not {"_build", "generated", "results", "command-line.md"} & set(page.relative_to(ROOT).parts)
)
# A comment before a block says why it is not run here, and who runs it instead.
BLOCK = re.compile(r"(?:<!-- not run: (.+?) -->\n+)?^```(python|sh|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Commands of this program that take minutes, the network or a cluster: tests of their own run them.
LONG = ("stiefelsync reproduce", " --workers ", " --scheduler ")
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


def blocks(text: str, language: str) -> list[str]:
    """Return the blocks of one language that are to be run."""
    found = BLOCK.findall(text)
    return [body for reason, kind, body in found if kind.replace("bash", "sh") == language and not reason]


def identify(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def with_blocks(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page.read_text(encoding="utf-8"), language)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that pages speak of."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "matches.csv").write_text(TABLE)
    corrections = "kind,object_a,point_a,object_b,point_b\ncannot,a,0,c,0\n"
    (folder / "corrections.csv").write_text(corrections)
    (folder / "photos").mkdir()
    np.savez(folder / "tracks.npz", tracks=np.random.default_rng(0).uniform(0, 60, (4, 5, 2)))
    problem, truth = datasets.synthetic(12, 8, 0.8, 0.2, rng=3)
    io.write(problem, folder / "problem.npz", truth=truth)
    io.write(problem, folder / "larger.npz")
    for seed in range(2):
        drawn, answer = datasets.synthetic(6, 5, 0.8, 0.2, rng=seed)
        io.write(drawn, folder / f"drawn{seed}.npz", truth=answer)
    io.write(problem, folder / "matches.dataset")
    io.write(synchronise(problem), folder / "earlier-answer.npz")
    scored = datasets.records(40, sources=3, duplicates=0.2, rng=0).pairs
    for ending in ("csv", "parquet"):
        write_columns(folder / f"edges.{ending}", scored)
    image = pytest.importorskip("PIL.Image", reason="the pages' photographs are made by Pillow")
    pycolmap = pytest.importorskip("pycolmap", reason="the pages' database is made by pycolmap")
    options = pycolmap.SyntheticDatasetOptions()
    options.num_points3D, options.match_config = 100, pycolmap.SyntheticDatasetMatchConfig.EXHAUSTIVE
    with pycolmap.Database.open(str(folder / "database.db")) as database:
        pycolmap.synthesize_dataset(options, database)
    for name in io.read(folder / "database.db").names or ():
        image.new("RGB", (1024, 768), "grey").save(folder / "photos" / name)
    first, second, third = (io.read(folder / "database.db").names or ())[:3]
    (folder / "scores.csv").write_text(f"image_a,image_b,score\n{first},{second},0.93\n{first},{third},0.18\n")
    (folder / "pairs.txt").write_text(f"{first} {third}\n")
    io.write(synchronise(io.read(folder / "database.db")), folder / "clean.db", like=folder / "database.db")
    for name in ("a.db", "b.db"):
        shutil.copyfile(folder / "database.db", folder / name)
    shared = Matchings.from_labels(np.tile(np.arange(5), 4), [5] * 4, names=["p", "q", "r", "s"])
    for name, part in (("monday", shared[:3]), ("tuesday", shared[1:])):
        io.write(synchronise(part), folder / f"{name}.csv", "tracks")
    h5py = pytest.importorskip("h5py", reason="the pages' files of hloc are made by h5py")
    named = Matchings.from_pairs(problem.pairs(), problem.sizes, names=[f"{i}.jpg" for i in range(problem.n_objects)])
    with h5py.File(folder / "features.h5", "w") as features:
        for name, size in zip(named.names or (), named.sizes, strict=True):
            features[f"{name}/keypoints"] = np.random.default_rng(0).uniform(0, 640, (size, 2))
    io.write(named, folder / "matches.h5", "hloc")
    write_positions(folder)
    return folder


def write_positions(folder: Path) -> None:
    """Write what programs without keypoints and OpenSfM give: pairs.npz with cameras.csv, and a folder matches."""
    rng = np.random.default_rng(0)
    points, names = rng.uniform(50, 450, (40, 2)), [f"{i}.jpg" for i in range(4)]
    pairs = {
        f"{names[i]}|{names[j]}": np.hstack([points + 5 * i, points + 5 * j]) + rng.normal(scale=0.5, size=(40, 4))
        for i in range(4)
        for j in range(i + 1, 4)
    }
    np.savez(folder / "pairs.npz", **pairs)
    (folder / "cameras.csv").write_text("name,model,width,height,params\n*,SIMPLE_PINHOLE,640,480,500 320 240\n")
    datasets.sessions(3, 60, shape=(200, 200), folder=folder / "mouse", rng=0)
    p, session, _ = datasets.units(3, 12, rng=0)
    np.savez(folder / "units.npz", scores=p, session=session)
    np.save(folder / "scores.npy", p)
    np.savetxt(folder / "days.txt", session, fmt="%d")
    (folder / "UnitMatch").mkdir()
    np.save(folder / "UnitMatch" / "MatchProb.npy", p)
    info = {"session_id": session, "original_ids": np.arange(len(p))}
    (folder / "UnitMatch" / "ClusInfo.pickle").write_bytes(pickle.dumps(info))
    follow([folder / "units.npz"], folder / "units.csv")
    follow(sorted((folder / "mouse").iterdir()), folder / "cells.csv")
    (folder / "matches").mkdir()
    same = np.stack([np.arange(40)] * 2, axis=1)
    for i, name in enumerate(names[:-1]):
        with gzip.open(folder / "matches" / f"{name}_matches.pkl.gz", "wb") as file:
            pickle.dump(dict.fromkeys(names[i + 1 :], same), file)


@pytest.mark.parametrize("page", with_blocks("python"), ids=identify)
def test_python_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"W": datasets.synthetic(30, 10, 1.0, 0.2, rng=0)[0].to_matrix()}
    for body in blocks(page.read_text(encoding="utf-8"), "python"):
        exec(compile(body, str(page), "exec"), names)
    assert set(names) - {"W", "__builtins__"}


@pytest.mark.parametrize("page", with_blocks("sh"), ids=identify)
def test_commands_of_the_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    run_commands(page.read_text(encoding="utf-8"), tmp_path, monkeypatch, files)


def test_the_examples_of_the_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    spec = importlib.util.spec_from_file_location("command_line", ROOT / "docs" / "command_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write_command_line(tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert text.count("```sh") >= 8
    run_commands(text, tmp_path, monkeypatch, files)


def run_commands(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    """Run the commands of this program on a page, each block in a folder of its own."""
    for number, block in enumerate(blocks(text, "sh")):
        folder = tmp_path / str(number)
        shutil.copytree(files, folder)
        monkeypatch.chdir(folder)
        for command in block.replace("\\\n", " ").splitlines():
            words = [hit for word in shlex.split(command, comments=True) for hit in sorted(glob(word)) or [word]]
            if words[:1] != ["stiefelsync"]:
                continue
            # What a reader of the page would not have yet.
            made = {"synth": words[2:3], "convert": words[3:4]}.get(words[1], [])
            if "-o" in words:
                made = [words[words.index("-o") + 1]]
            for name in made:
                if (files / name).is_dir():
                    shutil.rmtree(name, ignore_errors=True)
                elif (files / name).exists():
                    Path(name).unlink(missing_ok=True)
            result = CliRunner().invoke(
                app, [words[1], "--help"] if any(words_of in command for words_of in LONG) else words[1:]
            )
            assert result.exit_code == 0, (command, result.stdout, result.stderr, result.exception)


@pytest.mark.parametrize("page", PAGES, ids=identify)
def test_what_the_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for module in re.findall(r"python -m (benchmarks\.\w+)", text):
        assert importlib.util.find_spec(module) is not None, module
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert target in targets, target
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in link and not {"gallery", "command-line.md"} & set(Path(link).parts):
            assert (page.parent / link).exists(), link
