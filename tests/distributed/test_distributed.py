"""Problems in parts: the same labels in memory, from files, from checkpoints and on workers."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import threading
import time
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, datasets, io, score, sparse_stiefel, synchronise, two_stage
from stiefelsync.stiefel.result import Status

pytest.importorskip("pyarrow", reason="needs the extra distributed")
pytest.importorskip("distributed", reason="needs the extra distributed")

from stiefelsync import compare, distributed
from stiefelsync.distributed.cluster import cluster
from stiefelsync.distributed.synchronise import lower_median
from stiefelsync.experiments.records import Store
from stiefelsync.experiments.runner import run
from stiefelsync.experiments.tasks import Task

GROUP = 10


@pytest.fixture(scope="module")
def problem() -> tuple[Matchings, np.ndarray]:
    return datasets.scene(1_000, 40, 200, 400, 0.3, 0.3, rng=0)


@pytest.fixture(scope="module")
def client():
    with cluster(workers=2) as made:
        yield made


def colmap(problem: Matchings, path) -> None:
    """Write the tables of a database that are read in parts."""
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE images (image_id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("CREATE TABLE keypoints (image_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB)")
        for table in ("matches", "two_view_geometries"):
            db.execute(f"CREATE TABLE {table} (pair_id INTEGER PRIMARY KEY, rows INTEGER, cols INTEGER, data BLOB)")
        for i, size in enumerate(problem.sizes.tolist()):
            db.execute("INSERT INTO images VALUES (?, ?)", (3 * i + 1, f"{i:03d}.jpg"))
            db.execute("INSERT INTO keypoints VALUES (?, ?, 2, ?)", (3 * i + 1, size, bytes(8 * size)))
        for (i, j), block in problem.pairs().items():
            row = (2147483647 * (3 * i + 1) + 3 * j + 1, len(block), block.astype("<u4").tobytes())
            db.execute("INSERT INTO matches VALUES (?, ?, 2, ?)", row)


def test_files_give_the_labels_of_memory(problem, tmp_path):
    matchings, truth = problem
    here = distributed.synchronise(matchings, group=GROUP)
    whole = synchronise(matchings, method="tracks")
    assert score(here.labels, truth).fscore > score(whole.labels, truth).fscore - 0.005
    io.write(matchings, tmp_path / "a.dataset")
    colmap(matchings, tmp_path / "a.db")
    for name in ("a.dataset", "a.db"):
        answer = distributed.synchronise(tmp_path / name, group=GROUP, output=tmp_path / f"{name}.labels.parquet")
        np.testing.assert_array_equal(answer.labels, here.labels)
        np.testing.assert_array_equal(io.parquet.read_labels(tmp_path / f"{name}.labels.parquet"), here.labels)
        assert answer.kept == here.kept.sum()
        assert answer.status is Status.DONE
        assert "4 groups" in answer.summary()


def test_weights_are_read_too(problem, tmp_path):
    matchings = problem[0].with_weights(np.random.default_rng(0).random(problem[0].n_matches) + 0.1)
    io.write(matchings, tmp_path / "a.dataset")
    here = distributed.synchronise(matchings, group=GROUP)
    np.testing.assert_array_equal(distributed.synchronise(tmp_path / "a.dataset", group=GROUP).labels, here.labels)


def test_workers_give_the_labels_of_one_process(problem, tmp_path, client):
    matchings, _ = problem
    here = distributed.synchronise(matchings, group=GROUP)
    io.write(matchings, tmp_path / "a.dataset")
    heard = []
    for source in (matchings, tmp_path / "a.dataset"):
        there = distributed.synchronise(source, group=GROUP, client=client, callback=lambda p: heard.append(p.stage))
        np.testing.assert_array_equal(there.labels, here.labels)
    assert heard.count("groups") == 8


def test_regions_give_the_labels_of_one_process(problem, client):
    matchings, truth = problem
    here = distributed.synchronise(matchings, group=2)  # twenty groups in two regions
    there = distributed.synchronise(matchings, group=2, client=client)
    np.testing.assert_array_equal(there.labels, here.labels)
    whole = synchronise(matchings, method="tracks")
    assert score(here.labels, truth).fscore > score(whole.labels, truth).fscore - 0.005


def test_workers_may_join_later(problem, caplog):
    matchings, _ = problem
    with cluster(workers=1) as own:
        own.cluster.scale(0)
        while own.nthreads():
            time.sleep(0.01)
        timer = threading.Timer(0.2, own.cluster.scale, (1,))
        timer.start()
        there = distributed.synchronise(matchings, group=GROUP, client=own)
    np.testing.assert_array_equal(there.labels, distributed.synchronise(matchings, group=GROUP).labels)
    assert "no worker has joined the scheduler yet" in caplog.text


@pytest.mark.parametrize("address", ["nowhere", "tcp://127.0.0.1:1", "carrier-pigeon://home:1"])
def test_a_scheduler_that_is_not_there_is_said_at_once(address):
    with pytest.raises(InputError, match=f"no scheduler answers at {address}"), cluster(scheduler=address):
        pass


def test_a_worker_that_dies_changes_nothing(problem, tmp_path):
    matchings, _ = problem
    here = distributed.synchronise(matchings, group=2)
    killed = []

    def kill(progress) -> None:
        if progress.stage == "groups" and progress.step == 3:
            victim = next(iter(own.cluster.workers.values()))
            killed.append(victim.pid)
            os.kill(victim.pid, signal.SIGKILL)

    with cluster(workers=2) as own:
        there = distributed.synchronise(matchings, group=2, client=own, callback=kill)
    assert killed
    np.testing.assert_array_equal(there.labels, here.labels)


def test_a_run_goes_on_from_its_checkpoints(problem, tmp_path):
    matchings, _ = problem
    here = distributed.synchronise(matchings, group=GROUP)
    folder = tmp_path / "checkpoints"

    class Killed(Exception):
        pass

    def kill(progress) -> None:
        if (progress.stage, progress.step) == when:
            raise Killed

    for when in [("groups", 2), ("crossings", 1), ("bundles", 3), ("joining", 4)]:  # noqa: B007  seen by `kill`
        with pytest.raises(Killed):
            distributed.synchronise(matchings, group=GROUP, checkpoint=folder, callback=kill)
    broken = next(folder.glob("bundles/*.npz"))
    broken.write_bytes(broken.read_bytes()[:100])
    with pytest.raises(InputError, match="checkpoints of another run"):
        distributed.synchronise(matchings, group=GROUP - 1, checkpoint=folder)
    when = None
    there = distributed.synchronise(matchings, group=GROUP, checkpoint=folder, output=tmp_path / "labels.parquet")
    np.testing.assert_array_equal(there.labels, here.labels)
    assert not folder.exists()


class Killed(Exception):
    pass


@pytest.fixture
def interrupted(problem, tmp_path):
    """Return the folder of checkpoints of a run that was killed."""

    def kill(progress) -> None:
        if progress.stage == "bundles":
            raise Killed

    with pytest.raises(Killed):
        distributed.synchronise(problem[0], group=GROUP, checkpoint=tmp_path / "kept", callback=kill)
    return tmp_path / "kept"


def _other_numbers(path, other) -> None:
    with np.load(path) as archive:
        values = {name: archive[name] + (archive[name].dtype.kind == "i") for name in archive.files if name != "kind"}
        kind = str(archive["kind"])
    np.savez(path, kind=kind, **values)
    comment = zipfile.ZipFile(other).comment
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment


def _other_kind(path, other) -> None:
    with np.load(path) as archive:
        values = {name: archive[name] for name in archive.files}
    np.savez(path, **{**values, "kind": "np"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"0" * 64


def _one_byte(path, other) -> None:
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)


def _another_part(path, other) -> None:
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize("change", [_other_numbers, _other_kind, _one_byte, _another_part])
def test_changed_checkpoints_are_not_believed(problem, interrupted, change):
    """Other numbers gave other labels, and another kind a traceback."""
    first, second, *_ = sorted(interrupted.glob("groups/*.npz"))
    change(first, second)
    with pytest.raises(InputError, match=r"000000\.npz is not what this run left there; delete .*kept to start anew"):
        distributed.synchronise(problem[0], group=GROUP, checkpoint=interrupted)


def test_who_can_compute_digests_names_no_other_types(problem, interrupted):
    path = min(interrupted.glob("groups/*.npz"))
    digest = json.loads((interrupted / "run.json").read_text())["digest"]
    with np.load(path) as archive:
        values = {name: archive[name] for name in archive.files}
    np.savez(path, **{**values, "kind": "Source"})
    plain = path.read_bytes()
    own = hashlib.sha256(f"{digest} groups 0".encode() + b"\0" + plain).hexdigest().encode()
    path.write_bytes(plain[:-2] + b"\x40\0" + own)
    with pytest.raises(InputError, match="is not what this run left there"):
        distributed.synchronise(problem[0], group=GROUP, checkpoint=interrupted)


def test_checkpoints_hold_nothing_pickled(interrupted):
    parts = list(interrupted.glob("*/*.npz"))
    assert parts
    for part in parts:
        with np.load(part, allow_pickle=False) as archive:
            assert all(archive[name].dtype != object for name in archive.files)


def test_checkpoints_are_of_the_same_matches(problem, interrupted, tmp_path):
    matchings, _ = problem
    indices = matchings.indices.copy()
    indices[[0, 1], 1] = indices[[1, 0], 1]
    other = Matchings.from_arrays(matchings.pair_objects[matchings.match_pairs], indices, matchings.sizes)
    with pytest.raises(InputError, match="checkpoints of another run"):
        distributed.synchronise(other, group=GROUP, checkpoint=interrupted)


def test_files_that_changed_are_another_run(problem, tmp_path):
    path, kept = tmp_path / "a.dataset", tmp_path / "kept"
    io.write(problem[0], path)

    def kill(_) -> None:
        raise Killed

    with pytest.raises(Killed):
        distributed.synchronise(path, group=GROUP, checkpoint=kept, callback=kill)
    part = next(path.glob("matches/*.parquet"))
    os.utime(part, (1, 1))
    with pytest.raises(InputError, match="checkpoints of another run"):
        distributed.synchronise(path, group=GROUP, checkpoint=kept)


def test_checkpoints_take_no_folder_of_others(problem, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match="is not empty and holds no checkpoints"):
        distributed.synchronise(problem[0], checkpoint=tmp_path)
    (tmp_path / "mine.txt").unlink()
    (tmp_path / "run.part").write_text("of a run that was killed at once")
    distributed.synchronise(problem[0], checkpoint=tmp_path)


def test_files_that_cannot_be_read_in_parts(problem, tmp_path):
    io.write(problem[0], tmp_path / "a.npz")
    with pytest.raises(InputError, match="convert it to a Parquet dataset"):
        distributed.synchronise(tmp_path / "a.npz")
    with pytest.raises(InputError, match="does not exist"):
        distributed.synchronise(tmp_path / "b.dataset")


def test_the_median_of_what_comes_in_chunks():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 100, 1_001):
        weights = rng.lognormal(0, 5, n)
        expected = np.sort(weights)[(n - 1) // 2]
        assert lower_median(lambda w=weights: np.array_split(w, 3), n) in (expected, None if n == 1 else expected)
    assert lower_median(lambda: [np.ones(5)], 5) is None
    with pytest.raises(InputError, match="weights must be positive"):
        lower_median(lambda: [np.array([1.0, -1.0])], 2)


@pytest.mark.parametrize("solve", [sparse_stiefel, two_stage])
def test_the_solvers_run_on_row_blocks_unchanged(client, solve):
    matchings, _ = datasets.synthetic(12, 15, observed=0.7, error=0.3, rng=0)
    W = matchings.to_matrix()
    spread = distributed.operator(distributed.row_blocks(W, 4), client)
    local, far = solve(W, 12, rng=0), solve(spread, 12, rng=0)
    assert far.objective == pytest.approx(local.objective, rel=1e-8)
    np.testing.assert_allclose(far.U, local.U, atol=1e-8)


def test_no_process_holds_more_than_half_of_W():
    problem, _ = datasets.synthetic(12, 15, observed=1.0, error=0.3, rng=0)
    with cluster(workers=2) as own:
        pieces = [partial(_rows_of, problem, a, a + 45) for a in range(0, 180, 45)]
        W = distributed.operator(pieces, own)
        np.testing.assert_allclose(W @ np.eye(180), problem.to_matrix().toarray())
        assert max(own.run(_rows_held).values()) <= 90


def _rows_of(problem, a, b):
    return problem.to_matrix()[a:b]


def _rows_held(dask_worker):
    """Return how many rows of W a worker holds."""
    return sum(block.shape[0] for block in dask_worker.data.values() if hasattr(block, "nnz"))


def test_blocks_must_be_of_a_square_matrix(client):
    with pytest.raises(InputError, match="must have 4 columns each"):
        distributed.operator([np.ones((2, 3)), np.ones((2, 3))], client)


def test_comparisons_run_on_workers(client):
    matchings, truth = datasets.synthetic(8, 10, observed=0.8, error=0.2, rng=0)
    methods = ["fast", "union-find", "spectral:nonsense=1", "fast"]
    here = compare(matchings, methods, truth=truth, universe=8)
    there = compare(matchings, methods, truth=truth, universe=8, client=client)
    assert [replace(row, seconds=None) for row in there] == [replace(row, seconds=None) for row in here]


def test_experiments_run_on_workers(client, tmp_path):
    tasks = [Task({"data": "synthetic", "d": 5, "k": 6, "rho": 0.8, "sigma": 0.2}, "fast", s) for s in (1, 2, 3)]
    records = []
    for name, own in (("here", None), ("there", client)):
        store = Store(tmp_path / f"{name}.jsonl")
        run(tasks, store, workers=2, client=own)
        records.append([record.result["fscore"] for record in store.select(tasks)])
    assert records[0] == records[1]
