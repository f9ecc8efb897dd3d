"""Whatever is given to the public functions of `io` and the constructors of Matchings: an answer or a typed error."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stiefelsync import InputError, Matchings, io
from stiefelsync.errors import MissingExtraError

QUIET = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
PROBLEM = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=["a", "b"], coordinates=np.zeros((4, 2)))

numbers = st.one_of(
    st.integers(-3, 5), st.sampled_from([2**31, 2**63, -(2**63), 10**30]), st.floats(), st.booleans(), st.none(),
    st.complex_numbers(max_magnitude=9),
)  # fmt: skip
scalars = st.one_of(numbers, st.text(max_size=3), st.binary(max_size=3))
rows = st.lists(st.lists(numbers, max_size=3), max_size=4)
arrays = st.builds(
    lambda shape, dtype, fill: np.full(shape, fill).astype(dtype),
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from(["i1", "u8", "i8", "f4", "f8", "c8", "?", "U2", "S2", "O"]),
    st.integers(-1, 2).map(lambda n: abs(n)),
)
anything = st.one_of(
    scalars, rows, arrays, st.lists(scalars, max_size=4), st.dictionaries(scalars, scalars, max_size=2)
)
pair = st.one_of(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), st.tuples(scalars, scalars), scalars)
mappings = st.dictionaries(pair, st.one_of(rows, arrays, scalars), max_size=3)


def answered(call) -> None:
    """Call a function that may refuse its arguments, but only by an error of ours; NumPy's warnings are errors here."""
    with contextlib.suppress(InputError):
        call()


CONSTRUCTORS = {
    "from_arrays": lambda a, b, c, options: Matchings.from_arrays(a, b, c, **options),
    "from_endpoints": lambda a, b, c, options: Matchings.from_endpoints(a, b, **options),
    "from_pairs": lambda a, b, c, options: Matchings.from_pairs(c, b, **options),
    "from_matrix": lambda a, b, c, options: Matchings.from_matrix(a, b, **options),
    "from_labels": lambda a, b, c, options: Matchings.from_labels(a, b, **options),
}


@QUIET
@pytest.mark.parametrize("name", CONSTRUCTORS)
@given(a=anything, b=st.one_of(st.lists(st.integers(0, 3), max_size=3), anything), c=st.one_of(mappings, anything),
       names=st.one_of(st.none(), anything), coordinates=st.one_of(st.none(), anything))  # fmt: skip
def test_constructors(name, a, b, c, names, coordinates):
    options = {"names": names, "coordinates": coordinates}
    answered(lambda: CONSTRUCTORS[name](a, b, c, {key: value for key, value in options.items() if value is not None}))


EXCHANGE = {
    "from_dict": io.from_dict,
    "from_permutations": io.from_permutations,
    "from_tensor": io.from_tensor,
    "to_permutations": lambda a, sizes=None: io.to_permutations(a, [1] if sizes is None else sizes),
}


@QUIET
@pytest.mark.parametrize("name", EXCHANGE)
@given(a=st.one_of(mappings, anything), sizes=st.one_of(st.none(), anything))
def test_exchange(name, a, sizes):
    answered(lambda: EXCHANGE[name](a, sizes))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sound file of every format that can be written from nothing."""
    made = tmp_path_factory.mktemp("formats")
    for name in io.FORMATS:
        if name != "colmap":
            try:
                io.write(PROBLEM, made / f"{name}.file", name)
            except MissingExtraError:
                continue
    return made


@QUIET
@pytest.mark.parametrize("name", [name for name in io.FORMATS if name != "colmap"])
@given(data=st.data())
def test_options_of_reading(folder, name, data):
    known = io.FORMATS[name]
    if not (folder / f"{name}.file").exists() or not known.read_options:
        return
    option = data.draw(st.sampled_from(known.read_options))
    value = data.draw(st.one_of(anything, st.sampled_from(["error", "repair", True, [2, 2]])))
    answered(lambda: io.read(folder / f"{name}.file", name, **{option: value}))


@QUIET
@pytest.mark.parametrize("name", [name for name in io.FORMATS if name not in ("colmap", "dataset")])
@given(data=st.data())
def test_options_of_writing(folder, tmp_path, name, data):
    known = io.FORMATS[name]
    if not (folder / f"{name}.file").exists() or not known.write_options:
        return
    option = data.draw(st.sampled_from(known.write_options))
    value = data.draw(anything)
    answered(lambda: io.write(PROBLEM, tmp_path / "out", name, force=True, **{option: value}))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@QUIET
@given(path=scalars, format=scalars, more=anything)
def test_paths_and_formats(tmp_path, path, format, more):
    for call in (
        lambda: io.read(path, format),
        lambda: io.detect(path),
        lambda: io.write(PROBLEM, tmp_path / "out.csv", format, force=True),
        lambda: io.write(more, tmp_path / "out.csv", force=True),
        lambda: io.read_truth(path),
    ):
        answered(call)


def test_every_public_reader_is_here():
    """A new format is met by the tests above without being named."""
    assert set(inspect.signature(io.read).parameters) == {"path", "format", "options"}
