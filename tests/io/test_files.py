"""Outputs appear all together or not at all, never over an input, never over another file unless told so."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stiefelsync.errors import InputError
from stiefelsync.io import files, staging
from stiefelsync.io.files import check_outputs, outputs, replacing


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_all(paths, text: str, *, force: bool) -> None:
    with outputs(*paths, force=force) as staged:
        for temporary in staged.values():
            temporary.write_text(text)


def too_late(path: Path) -> None:
    with replacing(path) as temporary:
        temporary.write_text("ours")
        path.write_text("theirs")


def test_several_files_appear_together(tmp_path):
    (tmp_path / "sub").mkdir()
    wanted = [tmp_path / "a.txt", tmp_path / "sub" / "a.txt"]
    with outputs(*wanted, None) as staged:
        assert [*staged] == wanted
        for path, temporary in staged.items():
            assert (temporary.name, temporary.parent.parent) == (path.name, path.parent)
            temporary.write_text(str(path))
        assert not any(path.exists() for path in wanted)
    assert [path.read_text() for path in wanted] == [*map(str, wanted)]
    assert names(tmp_path) == ["a.txt", "sub"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), SystemExit(143)])
def test_none_appears_when_one_fails(tmp_path, failure):
    wanted = tmp_path / "a.txt", tmp_path / "b.txt"

    def write() -> None:
        with outputs(*wanted) as staged:
            staged[wanted[0]].write_text("whole")
            raise failure

    with pytest.raises(InputError if isinstance(failure, OSError) else type(failure)) as caught:
        write()
    if isinstance(failure, OSError):
        said = f"{wanted[0]} and {wanted[1]} cannot be written: No space left on device; nothing was written"
        assert str(caught.value) == said
    assert names(tmp_path) == []


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("failure", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_move_that_fails_takes_back_the_others(tmp_path, monkeypatch, force, failure):
    wanted = [tmp_path / name for name in "abc"]
    if force:
        for path in wanted:
            path.write_text("old")
    real, moves = files._move, []

    def move(temporary, path, force):
        moves.append(path)
        real(temporary, path, force)
        if len(moves) == 2:
            raise failure

    monkeypatch.setattr(files, "_move", move)
    with pytest.raises((InputError, KeyboardInterrupt)):
        write_all(wanted, "new", force=force)
    assert moves == wanted[:2]
    assert names(tmp_path) == (["a", "b", "c"] if force else [])
    assert all(path.read_text() == "old" for path in tmp_path.iterdir())


def test_a_file_that_is_there_stays_unless_forced(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(InputError) as caught, replacing(path):
        raise AssertionError("began to write")
    assert str(caught.value) == (f"{path} is there already; choose another output, or replace it with force=True")
    with replacing(path, force=True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_a_link_that_leads_nowhere_is_there_too(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    with pytest.raises(InputError, match="is there already"):
        check_outputs([tmp_path / "link"])


def test_a_file_that_came_meanwhile_stays(tmp_path):
    with pytest.raises(InputError, match="is there already"):
        too_late(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "theirs"
    assert names(tmp_path) == ["a"]


def test_without_hard_links(tmp_path, monkeypatch):
    def link(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    wanted = tmp_path / "a", tmp_path / "b"
    for force in (False, True):
        write_all(wanted, str(force), force=force)
        assert [path.read_text() for path in wanted] == [str(force)] * 2
    with pytest.raises(InputError, match="is there already"):
        too_late(tmp_path / "c")
    assert (tmp_path / "c").read_text() == "theirs"


def test_no_input_is_an_output_whatever_it_is_called(tmp_path):
    database, other = tmp_path / "w.db", tmp_path / "hard.db"
    database.write_text("precious")
    os.link(database, other)
    (tmp_path / "soft.db").symlink_to(database)
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "link.db").symlink_to(database)
    for output in (database, other, tmp_path / "soft.db", tmp_path / "away" / ".." / "w.db"):
        with pytest.raises(InputError, match="is the input itself"):
            check_outputs([output], reads=[None, database], force=True)
    for side in ("-wal", "-shm", "-journal"):
        for source in (database, tmp_path / "away" / "link.db"):  # SQLite keeps it beside what a link points to
            with pytest.raises(InputError, match="is where SQLite keeps a log of"):
                check_outputs([tmp_path / f"w.db{side}"], reads=[source], force=True)


def test_no_file_of_a_folder_that_is_read_is_an_output(tmp_path):
    photos = tmp_path / "photos" / "left"
    photos.mkdir(parents=True)
    (photos / "1.jpg").write_text("a photograph")
    (photos / "broken.jpg").symlink_to(photos / "absent")
    os.link(photos / "1.jpg", tmp_path / "same.html")
    for output in (photos / "1.jpg", tmp_path / "same.html"):
        with pytest.raises(InputError, match="is one of the files of"):
            check_outputs([output], reads=[tmp_path / "photos"], force=True)
    check_outputs([photos / "new.html", tmp_path / "new.html"], reads=[tmp_path / "photos"])


def test_one_file_is_no_two_outputs(tmp_path):
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="is named as output twice"):
        check_outputs([tmp_path / "a", tmp_path / "sub" / ".." / "a"])


def test_a_log_beside_the_output_is_not_taken_for_its_own(tmp_path):
    """SQLite would play an old log into the new database."""
    (tmp_path / "clean.db-wal").write_text("an old log")
    with pytest.raises(InputError, match=r"clean.db-wal is the log of an earlier database and would spoil"):
        check_outputs([tmp_path / "clean.db"], force=True)
    (tmp_path / "clean.db-wal").write_text("")
    check_outputs([tmp_path / "clean.db"], force=True)


def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    with replacing(tmp_path / "made") as temporary:
        temporary.write_text("")
    assert (tmp_path / "made").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
@pytest.mark.parametrize(("mode", "made"), [(0o600, 0o600), (0o640, 0o640), (0o444, 0o644), (0o604, 0o604)])
def test_who_may_not_read_an_input_may_not_read_what_is_made_of_it(tmp_path, mode, made):
    """An input of mode 600 gave an output of 644."""
    before = os.umask(0o022)
    try:
        (tmp_path / "secret").touch()
        (tmp_path / "secret").chmod(mode)
        (tmp_path / "open").touch()
        with replacing(tmp_path / "made", reads=[tmp_path / "secret", None, tmp_path / "open"]) as temporary:
            temporary.write_text("")
        with replacing(tmp_path / "folder", reads=[tmp_path / "secret"]) as temporary:
            (temporary / "in").mkdir(parents=True)
            (temporary / "in" / "table.parquet").touch()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == made
    assert stat.S_IMODE((tmp_path / "folder" / "in" / "table.parquet").stat().st_mode) == made
    assert stat.S_IMODE((tmp_path / "folder" / "in").stat().st_mode) & 0o077 == made & 0o077 | (made & 0o044) >> 2


# ---------------------------------------------------------------- leftovers

WRITER = """
import sys, time
from pathlib import Path
from stiefelsync.io.files import replacing
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("unfinished")
    print("ready", flush=True)
    time.sleep(60)
"""


def started(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_leftovers_of_killed_writers_go_and_those_of_living_ones_stay(tmp_path):
    living, killed = started(tmp_path / "a"), started(tmp_path / "b")
    try:
        assert len(names(tmp_path)) == 2
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert len(staging.leftovers(tmp_path)) == 2
        with replacing(tmp_path / "c") as temporary:
            temporary.write_text("next")
        (left,) = staging.leftovers(tmp_path)
        assert (left / "a").read_text() == "unfinished"
    finally:
        for process in (living, killed):
            process.kill()
            process.communicate()
    with replacing(tmp_path / "d") as temporary:
        temporary.write_text("last")
    assert names(tmp_path) == ["c", "d"]


def test_only_what_is_surely_a_leftover_is_swept(tmp_path):
    name = f".stiefelsync-{staging._MACHINE}-{'0' * 32}.part"
    (tmp_path / name).symlink_to(tmp_path)
    other = tmp_path / f".stiefelsync-{'f' * 8}-{'0' * 32}.part"  # of another machine
    other.mkdir()
    (tmp_path / "mine.part").mkdir()
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("")
    assert names(tmp_path) == sorted([name, other.name, "a", "mine.part"])


def test_a_folder_taken_for_a_leftover_is_made_again(tmp_path, monkeypatch):
    """Another process may sweep between the making of a folder and its locking."""
    real, calls = staging._lock, []

    def lock(folder, how):
        calls.append(folder)
        if len(calls) == 1:
            folder.rmdir()
        return real(folder, how)

    monkeypatch.setattr(staging, "_lock", lock)
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("")
    assert len(calls) == 2
    assert names(tmp_path) == ["a"]


def test_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "fcntl", None)
    with replacing(tmp_path / "a") as temporary:
        temporary.write_text("")
    assert names(tmp_path) == ["a"]


def test_many_writers_in_one_folder(tmp_path):
    """Nobody sweeps what another is still writing."""
    code = """
import sys
from pathlib import Path
from stiefelsync.io.files import replacing
for n in range(40):
    with replacing(Path(sys.argv[1], f"{sys.argv[2]}-{n}")) as temporary:
        temporary.write_text("x")
"""
    writers = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(n)]) for n in range(3)]
    deadline = time.monotonic() + 120
    assert [writer.wait(deadline - time.monotonic()) for writer in writers] == [0, 0, 0]
    assert len(names(tmp_path)) == 120


def test_an_interrupted_cleaning_is_done_at_the_end(tmp_path):
    """A signal may come while the folder is removed; the end of the process removes it then, but not a forked one's."""
    code = """
import os, shutil, sys
from pathlib import Path
from stiefelsync.io.files import replacing
real = shutil.rmtree
def rmtree(*_, **__):
    shutil.rmtree = real
    if os.fork() == 0:
        sys.exit()  # runs what is to be done at exit, too
    os.wait()
    print(len(list(Path(sys.argv[1]).iterdir())), flush=True)
    raise SystemExit(143)
with replacing(Path(sys.argv[1], "a")) as temporary:
    temporary.write_text("half")
    shutil.rmtree = rmtree
    raise SystemExit(143)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (143, "1\n"), done.stderr
    assert names(tmp_path) == []
