"""Whatever public functions are given, what is wrong with it has one type; mistakes of ours and of callbacks stay."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import numpy as np
import pytest

from fuzz.calls import draw, perform, public
from stiefelsync import InputError, Matchings, datasets, io, sparse_stiefel, synchronise
from stiefelsync._border import typed
from stiefelsync.io.cells import read_sessions
from stiefelsync.matching.difference import difference

PROBLEM = Matchings.from_labels([0, 1, 1, 0], [2, 2])


def test_what_is_public_is_found() -> None:
    found = public()
    assert len(found) > 100
    assert {"synchronise", "clean", "Matchings.from_pairs", "datasets.shapes.star", "io.read"} <= found.keys()


def test_a_call_of_everything_and_some_wrong_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short form of ``make fuzz``: one call of everything, as sound as its types tell, and 300 wrong ones."""
    monkeypatch.chdir(tmp_path)
    outcomes = {perform(draw(number, tmp_path)) for number in range(len(public()) + 300)}
    assert outcomes == {"accepted", "refused"}


def test_every_public_function_has_the_border() -> None:
    bare = [name for name, one in public().items() if not inspect.isclass(one) and not hasattr(one, "__wrapped__")]
    assert not [name for name in bare if not hasattr(getattr(public()[name], "__func__", None), "__wrapped__")]


def test_the_same_number_is_the_same_call(tmp_path: Path) -> None:
    assert str(draw(999, tmp_path)) == str(draw(999, tmp_path)) != str(draw(1000, tmp_path))


def test_untyped_errors_and_warnings_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call = draw(0, tmp_path)
    for function, told in ((lambda: [][0], "IndexError"), (lambda: np.array([1.0]) / 0, "RuntimeWarning")):
        call.function, call.given, call.named = function, [], {}
        assert perform(call).startswith("untyped: ")
        assert told in perform(call)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("before must be Matchings, got 5", lambda: difference(5, PROBLEM)),
        ("callback must be a function of one argument", lambda: sparse_stiefel(np.eye(4), 2, callback=lambda: 0)),
        ("callback must be a function of one argument or None, got 'x'", lambda: synchronise(PROBLEM, callback="x")),
        ("universe must be at most 10,000,000", lambda: datasets.synthetic(2**70, 3, 1.0, 0.0)),
        ("error must be a number of a usual size, got nan", lambda: datasets.shapes.window(error=float("nan"))),
        ("the prior must be real numbers, got complex128", lambda: synchronise(PROBLEM, prior=np.array([1 + 2j]))),
        (
            "the correspondences of 'a' and 'b' must be real numbers, got complex128",
            lambda: io.from_correspondences({("a", "b"): np.full((2, 4), 1j)}),
        ),
        ("no session is given; name at least one file or folder", lambda: read_sessions([])),
        ("neurons are compared by two responses or more, got stimuli=1", lambda: datasets.shapes.networks(stimuli=1)),
        ("every object must be expected to see 0.01 points or more", lambda: datasets.shapes.rogue(universe=0)),
    ],
)
def test_words(message: str, call) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)


def test_what_a_callback_raises_is_its_own() -> None:
    def broken(_: object) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        sparse_stiefel(np.diag([3.0, 2, 1, 0.5]), 2, callback=broken)


def test_a_mistake_of_ours_stays_one() -> None:
    """No argument explains it: all are of the type asked for, and of this package."""

    @typed
    def ours(matchings: Matchings, *, quick: bool = False) -> int:
        return matchings.sizes[99]

    with pytest.raises(IndexError):
        ours(PROBLEM, quick=True)
    with pytest.raises(InputError, match="matchings must be Matchings, got list"):
        ours([1])


def test_a_call_that_is_none_stays_a_type_error() -> None:
    with pytest.raises(TypeError, match="missing"):
        difference(PROBLEM)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nonsense"):
        difference(PROBLEM, PROBLEM, nonsense=1)  # type: ignore[call-arg]


@pytest.mark.skipif(os.name == "nt", reason="a name that Windows would refuse anyway")
def test_names_that_no_file_has(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the name of a file"):
        io.read("nul\0")
