"""A cluster on this machine is reached by nobody but its own processes."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from stiefelsync import datasets, io

pytest.importorskip("pyarrow", reason="needs the extra distributed")
pytest.importorskip("distributed", reason="needs the extra distributed")

from stiefelsync.distributed.cluster import cluster

LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}
LISTENS = "0A"
linux = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="sockets are looked up in /proc")


def family(process: int) -> set[int]:
    """Return the numbers of a process and of all it has started."""
    found, waiting = set(), [process]
    while waiting:
        found.add(number := waiting.pop())
        with suppress(OSError):  # it has ended meanwhile
            for children in list(Path(f"/proc/{number}/task").glob("*/children")):
                with suppress(OSError):
                    waiting += [int(child) for child in children.read_text().split()]
    return found


def listening(process: int) -> set[str]:
    """Return the addresses, in digits of /proc, at which a process or one of its children listens."""
    own = set()
    for number in family(process):
        with suppress(OSError):
            own |= {os.readlink(handle) for handle in Path(f"/proc/{number}/fd").glob("*") if handle.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == LISTENS and f"socket:[{words[9]}]" in own:
                found.add(words[1].partition(":")[0])
    return found


@linux
def test_the_scan_finds_a_socket_that_is_open_to_all():
    with socket.socket() as own:
        own.bind(("0.0.0.0", 0))
        own.listen()
        assert "00000000" in listening(os.getpid())
    assert "00000000" not in listening(os.getpid())


@linux
def test_sync_on_workers_listens_here_alone(tmp_path):
    """The dashboard listened on 0.0.0.0, and the scheduler took tasks from whoever reached it."""
    problem, _ = datasets.scene(2_000, 120, 200, 400, 0.3, 0.3, rng=0)
    io.write(problem, tmp_path / "a.npz")
    command = ["sync", str(tmp_path / "a.npz"), "-o", str(tmp_path / "b.npz"), "--method", "tracks", "--workers", "2"]
    found: set[str] = set()
    with subprocess.Popen([sys.executable, "-m", "stiefelsync", *command, "--quiet"]) as run:
        while run.poll() is None:
            found |= listening(run.pid)
            time.sleep(0.05)
    assert run.returncode == 0
    assert (tmp_path / "b.npz").exists()
    assert found
    assert found <= LOOPBACK


@linux
def test_nothing_is_told_and_nobody_else_let_in():
    with cluster(workers=1) as client:
        scheduler = client.scheduler.address
        assert scheduler.startswith("tls://127.0.0.1:")
        place = ("127.0.0.1", int(scheduler.rpartition(":")[2]))
        unverified = ssl.create_default_context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        with pytest.raises(OSError, match=r"certificate|closed|EOF|reset"):
            _talk(place, unverified)
        pages = client.cluster.dashboard_link.rpartition("/")[0]
        for page in ("health", "info/main/workers.html", "json/counts.json", "status", "metrics", "info/logs.html"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"{pages}/{page}", timeout=10)
        (worker,) = client.scheduler_info()["workers"].values()
        folder = Path(worker["local_directory"])
        while not folder.name.startswith(".stiefelsync-"):
            folder = folder.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not folder.exists()


def _talk(place: tuple[str, int], context: ssl.SSLContext) -> None:
    """Say something to who listens there, without a certificate of its own."""
    with socket.create_connection(place) as plain, context.wrap_socket(plain) as stranger:
        stranger.settimeout(10)
        stranger.sendall(b"hello")
        if not stranger.recv(1):
            raise OSError("closed")
