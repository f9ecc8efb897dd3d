"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples every time, and no deadline: a busy machine must not fail a test.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("brief", deadline=None, derandomize=True, max_examples=20)  # for hundreds of mutants
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Programs started with nohup or in the background of a script ignore these, and so would all that tests start.
for number in (signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGINT)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left alone with it in the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True, scope="session")
def colmap_at_hand() -> Iterator[None]:
    """Let the next command be that of COLMAP, whatever is installed here; what depends on it is tested by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stiefelsync.io.colmap.verify.which", lambda name: f"/usr/bin/{name}")
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets, or a skip that says how to provide it."""
    folder = os.environ.get("STIEFELSYNC_DATA")
    if not folder:
        pytest.skip("real data needed: set STIEFELSYNC_DATA to the folder that holds house/, sceaux/, herz-jesu-p8/")
    return Path(folder)


@pytest.fixture(scope="session")
def reference_dir(data_dir: Path) -> Path:
    """The folder of reference results beside the data."""
    folder = data_dir.parent / "reference"
    if not folder.is_dir():
        pytest.skip("reference results needed: a folder 'reference' beside STIEFELSYNC_DATA")
    return folder
