"""Correspondences in every shape they come in, the keypoints found from them, and databases made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stiefelsync import io, synchronise
from stiefelsync.errors import FormatError, InputError
from stiefelsync.sync.keypoints import find_keypoints


def scene(noise: float, *, k: int = 5, n: int = 60, seed: int = 0, seen: float = 0.8):
    """Return correspondences between k views of n points, 20 px apart, and the point of every end."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(n**0.5))
    places = 20.0 * np.stack(np.divmod(np.arange(n), side), axis=1) + 30
    views = [places + 7 * i for i in range(k)]
    there = rng.random((k, n)) < seen
    pairs, truth = {}, []
    for i in range(k):
        for j in range(i + 1, k):
            points = rng.permutation(np.flatnonzero(there[i] & there[j]))
            block = np.hstack([views[i][points], views[j][points]])
            pairs[i, j] = block + rng.normal(size=block.shape) * noise
            truth.append(np.stack([i * n + points, j * n + points], axis=1))
    return pairs, np.concatenate(truth), views


def named(pairs):
    return {(f"{i}.jpg", f"{j}.jpg"): block for (i, j), block in pairs.items()}


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    together = np.unique(np.stack([a.ravel(), b.ravel()], axis=1), axis=0)
    return len(together) == len(np.unique(a)) == len(np.unique(b))


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.0])
def test_ends_of_one_keypoint_are_found_and_averaged(noise: float) -> None:
    pairs, truth, views = scene(noise)
    found = find_keypoints(pairs, 5)
    assert same_partition(found.of_ends, truth)
    assert found.noise == pytest.approx(max(noise, 1e-3), rel=0.15)
    place = np.concatenate(views)[truth]
    error = np.linalg.norm(found.matchings.coordinates[found.of_ends] - place, axis=2)
    assert error.mean() <= 0.8 * noise + 1e-3  # a single position is 1.25 of the noise away on average
    tracks = synchronise(found.matchings, method="tracks").labels
    assert same_partition(tracks[found.of_ends], truth % 60)


def test_a_position_far_off_moves_its_keypoint_little() -> None:
    pairs = {(0, j): np.array([[100.0, 100.0, 50.0, 50.0], [200.0, 100.0, 90.0, 50.0]]) for j in range(1, 8)}
    pairs |= {(i, j): np.array([[50.0, 50.0, 50.0, 50.0]]) for i in range(1, 8) for j in range(i + 1, 8)}
    pairs[0, 7] = pairs[0, 7] + np.array([[20.0, 0, 0, 0], [0, 0, 0, 0]])
    found = find_keypoints(pairs, 8)
    first = found.matchings.coordinates[found.of_ends[0, 0]]
    np.testing.assert_allclose(first, [100, 100], atol=0.01)


def test_keypoints_closer_than_noise_are_told_apart_by_loops() -> None:
    pairs, truth, _ = scene(1.5, n=400, seed=1)
    close = {pair: block / 2.5 for pair, block in pairs.items()}  # 8 px apart, a noise of .6
    found = find_keypoints(close, 5)
    right = found.of_ends[:, 0] * 10**6 + truth[:, 0]
    assert len(np.unique(right)) <= 1.01 * len(np.unique(truth[:, 0]))


def test_the_same_correspondence_twice_is_one() -> None:
    pairs, truth, _ = scene(0.3)
    twice = {pair: np.vstack([block, block[:7] + 0.05]) for pair, block in pairs.items()}
    found = find_keypoints(twice, 5)
    assert found.matchings.n_points == len(np.unique(truth))


@pytest.mark.parametrize("kind", ["csv", "npz", "h5", "folder of npz", "folder of csv"])
@pytest.mark.parametrize("scored", [False, True])
def test_every_kind_of_file_gives_the_same(tmp_path: Path, kind: str, scored: bool) -> None:
    pairs = named(scene(0.4)[0])
    if scored:
        pairs = {pair: np.column_stack([block, np.linspace(0, 1, len(block))]) for pair, block in pairs.items()}
    expected = io.from_correspondences(pairs)
    path = write_files(tmp_path, kind, pairs)
    assert io.detect(path).name == "correspondences"
    found = io.read(path)
    assert found == expected
    assert (found.weights is not None) == scored


def write_files(folder: Path, kind: str, pairs) -> Path:
    if kind == "csv":
        path = folder / "a.csv"
        lines = [f"{a},{b}," + ",".join(map(repr, row.tolist())) for (a, b), block in pairs.items() for row in block]
        score = ",score" if block_width(pairs) == 5 else ""
        path.write_text("\n".join([f"image_a,image_b,x_a,y_a,x_b,y_b{score}", *lines]) + "\n")
        return path
    if kind == "npz":
        path = folder / "a.npz"
        np.savez(path, **{f"{a}|{b}": block for (a, b), block in pairs.items()})
        return path
    if kind == "h5":
        h5py = pytest.importorskip("h5py")
        path = folder / "a.h5"
        with h5py.File(path, "w") as file:
            for (a, b), block in pairs.items():
                group = file.create_group(f"{a}/{b}")
                for name, value in parts(block).items():
                    group[name] = value
        return path
    path = folder / "pairs"
    path.mkdir()
    for (a, b), block in pairs.items():
        if kind.endswith("npz"):
            names = {"keypoints0": "mkpts0", "keypoints1": "mkpts1", "scores": "mconf"}
            np.savez(path / f"{a}__{b}.npz", **{names[name]: value for name, value in parts(block).items()})
        else:
            score = ",score" if block.shape[1] == 5 else ""
            lines = [",".join(map(repr, row.tolist())) for row in block]
            (path / f"{a}__{b}.csv").write_text("\n".join([f"x_a,y_a,x_b,y_b{score}", *lines]) + "\n")
    return path


def block_width(pairs) -> int:
    return next(iter(pairs.values())).shape[1]


def parts(block):
    found = {"keypoints0": block[:, :2], "keypoints1": block[:, 2:4]}
    return found | ({"scores": block[:, 4]} if block.shape[1] == 5 else {})


def test_written_correspondences_are_read_again(tmp_path: Path) -> None:
    problem = io.from_correspondences(named(scene(0.4)[0]))
    io.write(problem, tmp_path / "a.csv", "correspondences")
    again = io.read(tmp_path / "a.csv")
    assert again.n_matches == problem.n_matches
    assert again.n_points == problem.n_points
    bare = type(problem).from_pairs(problem.pairs(), problem.sizes)
    with pytest.raises(InputError, match="needs positions"):
        io.write(bare, tmp_path / "b.csv", "correspondences")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("image_a,image_b,x_a,y_a,x_b,y_b\na,b,1,2,3\n", "line 2: 5 columns where 6 are expected"),
        ("image_a,image_b,x_a,y_a,x_b,y_b\na,b,1,2,3,x\n", "line 2: 'x' is not a number"),
        ("image_a,image_b,x_a,y_a,x_b,y_b\na,b,1,2,3,1_0\n", "line 2: '1_0' is not a number"),
        ("image_a,image_b,x_a,y_a,x_b,y_b\na,b,1,2,3,nan\n", "a position that is not a number"),
        ("image_a,image_b,x_a,y_a,x_b,y_b\na,a,1,2,3,4\n", "are not of two of the 1 images"),
        ("image_a,image_b,x_a,y_a,x_b,y_b\na,b,1,2,3,4\nb,a,1,2,3,4\n", "are given twice"),
        ("image_a,image_b,x_a,y_a,x_b,y_b\n", "holds no correspondences"),
        ("image_a,image_b,x_a,y_a,x_b,y_b,z\n", "the first line is image_a,image_b"),
    ],
)
def test_bad_tables_are_refused_with_the_reason(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(FormatError, match=told):
        io.read(tmp_path / "a.csv")


def test_bad_arrays_are_refused_with_the_reason(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{"a|b": np.zeros((3, 4)), "c": np.zeros((1, 4))})
    with pytest.raises(FormatError, match="'c' is not named"):
        io.read(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", **{"a|b": np.zeros((3, 3))})
    with pytest.raises(FormatError, match="does not have the shape"):
        io.read(tmp_path / "b.npz")
    folder = tmp_path / "pairs"
    folder.mkdir()
    np.savez(folder / "a__b.npz", keypoints0=np.zeros((3, 2)), keypoints1=np.zeros((2, 2)))
    with pytest.raises(FormatError, match="one row of numbers per correspondence"):
        io.read(folder)
    with pytest.raises(InputError, match="shape \\(4,\\)"):
        io.from_correspondences({("a", "b"): np.zeros(4)})
    with pytest.raises(InputError, match="there are 2 scores"):
        find_keypoints({(0, 1): np.zeros((3, 4))}, 2, scores={(0, 1): np.ones(2)})
