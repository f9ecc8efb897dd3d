"""Verdicts follow from the records by stated rules."""

from __future__ import annotations

import pytest

from stiefelsync.errors import InputError
from stiefelsync.experiments.experiment import AVERAGE, FAILS, HOLDS, Settings, judge
from stiefelsync.experiments.house import evaluate as evaluate_house
from stiefelsync.experiments.house import frames, k_of
from stiefelsync.experiments.lines import NMF, OURS, SPECTRAL, Line, fscore, means
from stiefelsync.experiments.records import Record
from stiefelsync.experiments.verdicts import best, comparable, quickest


def records(line: Line, fscores: dict[int, list[float]], seconds: float = 1.0) -> list[Record]:
    return [
        Record(line.task({"data": "house", "k": k}, seed), {"fscore": value, "objective": 25 + value}, seconds, seconds)
        for k, found in fscores.items()
        for seed, value in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("each", "average", "most", "finding"),
    [
        ([True, True], False, False, HOLDS),
        ([True, False], True, False, AVERAGE),
        ([True, False], False, False, FAILS),
        ([True, True, False], False, True, HOLDS),
        ([True, False], False, True, FAILS),
        ([], False, False, FAILS),
    ],
)
def test_judge(each: list[bool], average: bool, most: bool, finding: str) -> None:
    verdict = judge("a claim", each, average, "numbers", most=most)
    assert verdict.finding == finding
    assert f"true at {sum(each)} of {len(each)} settings" in verdict.evidence


def test_means_are_over_seeds() -> None:
    assert means(records(OURS, {20: [0.8, 1.0], 40: [0.5]}), OURS, fscore, k_of) == {20: 0.9, 40: 0.5}


@pytest.mark.parametrize(
    ("rival", "strict", "finding"),
    [
        ({20: [0.8], 40: [0.8]}, False, HOLDS),
        ({20: [0.95], 40: [0.8]}, False, AVERAGE),
        ({20: [0.95], 40: [0.95]}, False, FAILS),
        ({20: [0.9], 40: [0.9]}, False, HOLDS),
        ({20: [0.9], 40: [0.9]}, True, FAILS),
        ({40: [0.8]}, False, HOLDS),  # where a rival did not run it cannot win
    ],
)
def test_best(rival: dict[int, list[float]], strict: bool, finding: str) -> None:
    found = records(OURS, {20: [0.88, 0.92], 40: [0.9]}) + records(SPECTRAL, rival)
    verdict = best(found, OURS, (OURS, SPECTRAL), fscore, k_of, "claim", strict=strict)
    assert verdict is not None
    assert verdict.finding == finding


def test_best_quotes_the_means() -> None:
    found = (
        records(OURS, {20: [0.9], 40: [0.8]}) + records(SPECTRAL, {20: [0.5], 40: [0.6]}) + records(NMF, {20: [0.7]})
    )
    verdict = best(found, OURS, (OURS, SPECTRAL, NMF), fscore, k_of, "claim")
    assert verdict is not None
    assert "Ours (as published) 0.850, Spectral 0.550, NmfSync 0.700 (where it ran: Ours (as published) 0.900)" in (
        verdict.evidence
    )


@pytest.mark.parametrize(("seconds", "finding"), [(0.9, HOLDS), (1.9, HOLDS), (2.1, FAILS)])
def test_quickest(seconds: float, finding: str) -> None:
    found = records(OURS, {20: [1.0]}, seconds) + records(SPECTRAL, {20: [1.0]}, 1.0)
    verdict = quickest(found, OURS, (OURS, SPECTRAL), k_of, "claim")
    assert verdict is not None
    assert verdict.finding == finding


def test_unmeasured_runtimes_do_not_count() -> None:
    found = records(OURS, {20: [1.0]}) + [
        Record(record.task, record.result, None, None) for record in records(SPECTRAL, {20: [1.0]})
    ]
    assert quickest(found, OURS, (OURS, SPECTRAL), k_of, "claim") is None


@pytest.mark.parametrize(("value", "finding"), [(0.885, HOLDS), (0.915, HOLDS), (0.87, FAILS), (0.93, FAILS)])
def test_comparable(value: float, finding: str) -> None:
    found = records(OURS, {20: [0.9]}) + records(SPECTRAL, {20: [value]})
    verdict = comparable(found, OURS, (OURS, SPECTRAL), fscore, k_of, "claim")
    assert verdict is not None
    assert verdict.finding == finding


def test_the_authors_program_is_compared_at_each_k() -> None:
    def finding(twenty: float, forty: float) -> str:
        found = records(OURS, {20: [twenty], 40: [forty]})
        return next(v.finding for v in evaluate_house(found) if "authors' program" in v.claim)

    assert finding(0.921 + 0.014, 0.960 - 0.014) == HOLDS
    assert finding(0.921 + 0.016, 0.960 - 0.014) == AVERAGE
    assert finding(0.921 + 0.016, 0.960 + 0.016) == FAILS


def test_no_records_no_verdicts() -> None:
    assert evaluate_house([]) == []


def test_settings() -> None:
    assert frames(Settings(step=30)) == [20, 50, 80, 110, 111]
    with pytest.raises(InputError, match="seeds must be at least 1, got 0"):
        Settings(seeds=0)
    with pytest.raises(InputError, match="step must be at least 1, got 0"):
        Settings(step=0)
