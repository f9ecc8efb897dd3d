"""Which method runs, and why."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import Matchings
from stiefelsync.sync import choose
from stiefelsync.sync.choose import Reason, choose_method


@pytest.fixture(scope="module")
def photographs() -> Matchings:
    """Three images of the same 60 points, each moved a little."""
    at = np.random.default_rng(0).uniform(0, 500, size=(60, 2))
    labels = np.tile(np.arange(60), 3)
    return Matchings.from_labels(labels, [60, 60, 60], coordinates=np.concatenate([at, at + 20, at - 10]))


def test_positions_decide_only_where_everything_is_left_to_us(photographs: Matchings) -> None:
    chosen = choose_method(photographs, "auto", None, {}, photographs=True)
    assert (chosen.method.name, chosen.reason) == ("tracks", Reason.POSITIONS)
    for universe, method, options, are_photographs, reason in [
        ("auto", None, {}, False, Reason.USUAL),
        (500, None, {}, True, Reason.USUAL),
        ("auto", "accurate", {}, True, Reason.ASKED),
    ]:
        chosen = choose_method(photographs, universe, method, options, photographs=are_photographs)
        assert (chosen.method.name, chosen.options, chosen.reason) == ("accurate", options, reason)


def test_large_universes_hand_over_whoever_asks(photographs: Matchings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "MAX_PRESET_ENTRIES", 100)
    for method in (None, "accurate", "fast"):
        chosen = choose_method(photographs, "auto", method, {}, photographs=True)
        assert (chosen.method.name, chosen.reason) == ("tracks", Reason.LARGE)
    assert choose_method(photographs, 500, "fast", {}).reason is Reason.ASKED
