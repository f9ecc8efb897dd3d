"""What positions are given in."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync.positions import units


@pytest.mark.parametrize(
    ("places", "normalised"),
    [([[-0.5, 0.5], [0.4, -0.1]], True), ([[-0.3, 0.2], [0.1, 700]], False), ([[0.3, 0.2], [0.1, 0.0]], False)],
)
def test_positions_are_normalised_if_none_is_far_from_a_centre_within_the_image(places, normalised):
    assert units.are_normalised(np.array(places)) is normalised
    assert units.are_normalised(np.array([*places, [np.nan, 0.1]])) is normalised
    assert not units.are_normalised(None)
