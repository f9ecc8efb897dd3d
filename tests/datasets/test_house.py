"""The house sequence and the fetching of files."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest

from stiefelsync import FormatError, InputError
from stiefelsync.datasets import house
from stiefelsync.datasets.fetch import RemoteFile, cache_dir, fetch, find
from stiefelsync.matching import score
from stiefelsync.sync.rounding import project


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without data: no variable, an empty cache."""
    monkeypatch.delenv("STIEFELSYNC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path


@pytest.mark.data
@pytest.mark.parametrize("shuffle", [False, True])
def test_input_fscore_is_the_published_one(shuffle: bool, reference_dir: Path) -> None:
    with (reference_dir / "house_authors_code.csv").open() as table:
        published = {int(row["k"]): float(row["fscore"]) for row in csv.DictReader(table) if row["method"] == "Input"}
    assert len(published) == 6
    for k, fscore in published.items():
        assert round(score(*house(k, shuffle=shuffle)).fscore, 6) == fscore


@pytest.mark.data
def test_authors_order_is_the_identity(data_dir: Path) -> None:
    problem, truth = house(20, shuffle=False)
    np.testing.assert_array_equal(truth, np.tile(np.arange(30), 20))
    assert problem.names is not None
    assert (problem.names[0], problem.names[-1]) == ("frame 0", "frame 110")


@pytest.mark.data
def test_shuffling_moves_points_with_their_coordinates(data_dir: Path) -> None:
    plain, _ = house(20, shuffle=False)
    mixed, truth = house(20, rng=5)
    assert plain.coordinates is not None
    assert mixed.coordinates is not None
    own = np.arange(20).repeat(30) * 30 + truth
    np.testing.assert_array_equal(mixed.coordinates, plain.coordinates[own])
    np.testing.assert_array_equal(mixed.to_matrix().toarray(), plain.to_matrix().toarray()[np.ix_(own, own)])
    assert house(20, rng=5)[0] == mixed
    assert house(20, rng=6)[0] != mixed


@pytest.mark.data
@pytest.mark.parametrize("k", [20, 60])
def test_a_constant_scores_one_in_d(k: int, data_dir: Path) -> None:
    problem, truth = house(k)
    labels = project(np.ones((problem.n_points, 30)), problem.sizes)
    assert score(labels, truth).fscore == pytest.approx(1 / 30, abs=0.02)


@pytest.mark.data
def test_path_may_be_a_file_or_a_folder(data_dir: Path, no_data: Path) -> None:
    at = data_dir / "house" / "house_sync_data.mat"
    assert house(5, path=at)[0] == house(5, path=data_dir)[0] == house(5, path=str(data_dir / "house"))[0]


@pytest.mark.data
def test_cache_is_used(data_dir: Path, no_data: Path) -> None:
    cached = cache_dir() / "house" / "house_sync_data.mat"
    cached.parent.mkdir(parents=True)
    cached.symlink_to(data_dir / "house" / "house_sync_data.mat")
    assert house(3)[0].n_objects == 3


def test_absent_data_say_what_to_do(no_data: Path) -> None:
    with pytest.raises(InputError, match=r"^house/house_sync_data.mat is not on this machine; pass download=True "):
        house()
    with pytest.raises(InputError, match=r"^there is no file .*house_sync_data.mat; it should be the"):
        house(path=no_data)
    wrong = no_data / "house_sync_data.mat"
    wrong.write_bytes(b"not a MATLAB file" * 20)
    with pytest.raises(FormatError, match=r"is not the house_sync_data.mat published with the paper"):
        house(path=wrong)


@pytest.mark.parametrize("k", [0, 112])
def test_k_outside(k: int) -> None:
    with pytest.raises(
        InputError, match=f"^the house sequence has 111 frames, so k must be between 1 and 111, got {k}$"
    ):
        house(k)


def test_fetch_keeps_only_the_right_file(no_data: Path) -> None:
    source = no_data / "source.bin"
    source.write_bytes(b"content")
    good = RemoteFile("some/file.bin", source.as_uri(), hashlib.sha256(b"content").hexdigest())
    with pytest.raises(InputError, match=r"is not on this machine"):
        find(good)
    at = find(good, download=True)
    assert at == cache_dir() / "some" / "file.bin"
    assert at.read_bytes() == b"content"
    assert find(good) == at
    source.unlink()
    assert find(good, download=True) == at  # fetched once only


def test_fetch_leaves_nothing_behind_on_failure(no_data: Path) -> None:
    source = no_data / "source.bin"
    source.write_bytes(b"tampered")
    target = no_data / "data" / "file.bin"
    with pytest.raises(InputError, match=r"is not the expected file: its SHA-256 is .*; nothing was kept$"):
        fetch(RemoteFile("file.bin", source.as_uri(), "0" * 64), target)
    with pytest.raises(InputError, match=r"could not be fetched"):
        fetch(RemoteFile("file.bin", (no_data / "absent").as_uri(), "0" * 64), target)
    assert list(target.parent.iterdir()) == []


def test_stiefelsync_data_comes_first(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (no_data / "mine", cache_dir()):
        (folder / "some").mkdir(parents=True)
        (folder / "some" / "file.bin").write_bytes(b"")
    file = RemoteFile("some/file.bin", "https://example.org", "0" * 64)
    assert find(file) == cache_dir() / "some" / "file.bin"
    monkeypatch.setenv("STIEFELSYNC_DATA", str(no_data / "mine"))
    assert find(file) == no_data / "mine" / "some" / "file.bin"
