"""The same labels on every kind of processor, with any number of BLAS threads."""

from __future__ import annotations

import os

import pytest

from benchmarks import machines

# NumPy's and SciPy's wheels have no kernels of their own for Zen and use Haswell's.
KINDS = [kind for kind in machines.kinds() if kind != "Zen"]
# One and two threads on the first kind, one on the others; `python -m benchmarks.machines --labels` tries all.
RUNS = [(kind, threads) for kind in KINDS for threads in machines.THREADS if threads == 1 or kind == KINDS[0]]


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not KINDS, reason="other processors can be imitated on an x86 under Linux only"),
    pytest.mark.skipif(
        "OPENBLAS_CORETYPE" in os.environ, reason="on an imitated processor this would compare the same again"
    ),
    pytest.mark.parametrize(("kind", "threads"), RUNS[1:]),
]


@pytest.fixture(scope="module")
def first():
    return machines.labels_on(*RUNS[0], range(1))


@pytest.fixture(scope="module")
def first_of_few():
    return machines.labels_on(*RUNS[0], range(100, 104), few=True)


def test_labels_of_few_objects_are_those_of_another_processor(kind, threads, first_of_few):
    # Much is equal there, and what is equal must not be decided by rounding.
    found = machines.labels_on(kind, threads, range(100, 104), few=True)
    assert len(found) == 36
    assert found == first_of_few


def test_labels_agree_with_those_of_another_processor_or_tie(kind, threads, first):
    found = machines.labels_on(kind, threads, range(1))
    assert len(found) == 60
    for case in machines.differences(first, found):
        # One answer may be as good as another; then rounding chooses between them.
        for quantity in ("objective", "log_posterior"):
            one, other = case[quantity]
            assert one == pytest.approx(other, rel=1e-12), case
