"""All that several files say of the same points: nothing is lost, and what is about others is refused."""

from __future__ import annotations

import numpy as np
import pytest

from stiefelsync import InputError, Matchings, datasets
from stiefelsync.matching.records import Records
from stiefelsync.matching.union import union
from tests.matching.parts import keys, named


@pytest.fixture
def scene() -> Matchings:
    problem, _ = datasets.synthetic(30, 9, 0.7, 0.3, rng=0)
    return named(problem, coordinates=np.random.default_rng(0).uniform(0, 600, (problem.n_points, 2)))


@pytest.mark.parametrize("order", [list(range(9)), list(range(8, -1, -1))])
def test_the_union_of_parts_is_the_whole(scene: Matchings, order: list[int]):
    """Whatever the order of the objects in the parts; pairs that neither part has are missing."""
    one, two = scene[list(range(6))], scene[[i for i in order if i > 2]]
    found, places = union([one, two])
    assert keys(found) == keys(one) | keys(two)  # equal where both have matches
    assert sorted(found.names) == sorted(scene.names)
    for part, place in zip((one, two), places, strict=True):
        np.testing.assert_array_equal(found.coordinates[place], part.coordinates)
        assert [found.names[i] for i in found.point_objects[place]] == [part.names[i] for i in part.point_objects]


def test_of_contradicting_matches_the_better_supported_stays():
    """Point 0 of a is point 0 of b by way of c, whatever the first file says."""
    one = named(Matchings.from_pairs({(0, 1): [[0, 1]]}, [1, 2]), ["a", "b"])
    two = named(
        Matchings.from_pairs({(0, 1): [[0, 0]], (0, 2): [[0, 0]], (1, 2): [[0, 0]]}, [1, 2, 1]), ["a", "b", "c"]
    )
    assert union([one, two])[0].pair(0, 1).tolist() == [[0, 0]]
    three = named(Matchings.from_pairs({(0, 1): [[0, 0]]}, [1, 2]), ["a", "b"])
    assert union([one, three])[0].pair(0, 1).tolist() == [[0, 1]]  # of equals the first


def test_weights_are_the_largest_and_need_to_be_everywhere():
    one, two = (
        Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [1, 1, 1], weights={(0, 1): [w], (1, 2): [0.5]})
        for w in (0.2, 0.9)
    )
    assert union([one, two])[0].weights.tolist() == [0.9, 0.5]
    assert union([one, Matchings.from_labels([0, 0, 0], [1, 1, 1])])[0].weights is None


def test_points_are_told_by_position_where_numbers_differ(scene: Matchings):
    """Tables of tracks may number only the points they have."""
    one = scene[list(range(6))]
    order = np.random.default_rng(1).permutation(int(one.sizes[5]))
    at = np.split(one.coordinates, one.offsets[1:-1])
    turned = Matchings.from_pairs(
        {(0, 1): np.stack([np.argsort(order)[one.pair(4, 5)[:, 1]], one.pair(4, 5)[:, 0]], axis=1)},
        [int(one.sizes[5]), int(one.sizes[4])], names=[one.names[5], one.names[4]],
        coordinates=np.concatenate([at[5][order], at[4]]),
    )  # fmt: skip
    assert keys(union([one, turned])[0]) == keys(one)
    elsewhere = named(one, list(one.names), coordinates=one.coordinates + 100)
    with pytest.raises(InputError, match=r"the points of '00\.jpg' are not the same: point 0 lies elsewhere"):
        union([one, elsewhere])


@pytest.mark.parametrize("clean", [True, False])
def test_records_are_told_by_source_and_id(clean: bool):
    def clusters(**members: str) -> Matchings:
        """Sources p and q; records by cluster."""
        listed = sorted((source, one, label) for label, ids in members.items() for source, one in ids.split())
        records = Records(
            ("p", "q"), np.array(["pq".index(s) for s, *_ in listed]), np.array([one for _, one, _ in listed]),
            np.array([clean, clean]),
        )  # fmt: skip
        sizes = np.bincount(records.source) if clean else np.ones(len(records), dtype=int)
        labels = np.unique([label for *_, label in listed], return_inverse=True)[1]
        return Matchings.from_labels(labels, sizes).with_records(records)

    one, two = clusters(x="p1 q1", y="p2 q2"), clusters(z="q2 p2", w="q3 p4")
    found, _ = union([one, two])
    assert found.records.named() == [("p", "1"), ("p", "2"), ("p", "4"), ("q", "1"), ("q", "2"), ("q", "3")]
    pairs = {tuple(found.records.named()[p] for p in ends) for ends in found.endpoints.tolist()}
    assert pairs == {(("p", "1"), ("q", "1")), (("p", "2"), ("q", "2")), (("p", "4"), ("q", "3"))}
    assert found.n_objects == (2 if clean else 6)


def test_records_of_a_clean_source_that_are_matched_are_refused():
    one = Matchings.from_labels([0, 0, 0], [1, 1, 1]).with_records(
        Records(("p", "q"), np.array([0, 0, 1]), np.array(["1", "2", "1"]), np.array([True, True]))
    )
    with pytest.raises(InputError, match="2 matches would join points of one object"):
        union([one, one])


def test_what_shares_nothing_is_refused(scene: Matchings):
    with pytest.raises(InputError, match="input 2 shares no image, object or record"):
        union([scene[[0, 1]], scene[[4, 5]]])
    with pytest.raises(InputError, match="others have none"):
        union([scene, Matchings.from_labels([0, 0], [1, 1])])
