"""Compiled forms of what refinement and exchange do in NumPy, with the same results."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiefelsync._kernels.library import address

if TYPE_CHECKING:
    from stiefelsync.matching.matchings import Matchings
    from stiefelsync.sync.likelihood.gauss_seidel import State
    from stiefelsync.sync.likelihood.matches import MatchTable

__all__ = [
    "Kernels",
    "Sorted",
    "arrange_matches",
    "count_labels",
    "count_triangles",
    "counting",
    "earned_by_blocks",
    "hopeful_pairs",
    "label_product",
    "mark_supported",
    "number_matches",
    "number_partners",
    "refining",
    "sample_sweep",
    "scale_entries",
    "scale_soft",
    "sketch_rows",
    "soft_rows",
    "sorted_entries",
    "spread_values",
    "sum_pairs",
    "sum_rows",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_INTEGER, _REAL, _ARRAY = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
_BEYOND = "a label is not below the number of labels"


def arrange_matches(library: Any, matchings: Matchings) -> tuple[NDArray[np.int32], ...]:
    """Return the row pointers and columns of W without its diagonal, CSR, and the ends of all matches, (2, M)."""
    n, m = matchings.n_matches, matchings.n_points
    indptr, indices, ends = (np.empty(shape, dtype=np.int32) for shape in (m + 1, 2 * n, (2, n)))
    given = map(_at, (matchings.pair_objects, matchings.pair_start, matchings.indices, matchings.offsets))
    library.arrange_matches(
        _INTEGER(len(matchings.pair_objects)), *given, _INTEGER(m), *map(_at, (*ends, indptr, indices))
    )
    return indptr, indices, ends


def number_matches(library: Any, table: MatchTable) -> NDArray[np.int32]:
    """Return the number of the match of every stored entry of W, shape (nnz,)."""
    place, numbers = table.indptr[:-1].copy(), np.empty_like(table.indices)
    library.number_matches(_INTEGER(table.matchings.n_matches), *map(_at, (*table.ends, place, numbers)))
    return numbers


def count_labels(library: Any, table: MatchTable, labels: Ints) -> tuple[Floats, Floats, Floats, Floats | None]:
    """Return right matches and shared labels of all pairs, (P,) each, holders, (d,), and partners found, (2,).

    The latter, by rows and by columns, are None where every row is matched.
    """
    (right, present), holders = np.empty((2, len(table.matchings.pair_objects))), np.zeros(table.d)
    found = np.empty(2) if table.partial else None
    assert len(labels) == table.matchings.n_points
    arrays = np.ascontiguousarray(labels, np.int64), right, present, holders, found
    if failed := library.count_labels(*table.counting, *map(_at, arrays)):
        raise MemoryError("no memory for counting labels") if failed < 0 else IndexError(_BEYOND)
    return right, present, holders, found


def counting(table: MatchTable) -> tuple[Any, ...]:
    """Return what :func:`count_labels` tells its kernel of a table, whatever the labels."""
    problem, numbers = table.matchings, table.partner_numbers if table.full else None
    sizes = map(_INTEGER, (problem.n_objects, table.d, len(problem.pair_objects)))
    given = map(_at, (problem.pair_objects, problem.pair_start, *table.ends, problem.offsets))
    return *sizes, *given, _INTEGER(0 if numbers is None else numbers.shape[1]), _at(numbers)


def number_partners(library: Any, table: MatchTable, out: NDArray[Any]) -> None:
    """Write the number of every point's match in every object to `out`, (m, width), zeros, of bytes or 32 bits each."""
    arrays = table.indptr, table.indices, table.owner, table.matchings.offsets
    library.number_partners(*map(_INTEGER, out.shape), *map(_at, arrays), *_bytes_or_words(out))


def _bytes_or_words(numbers: NDArray[Any]) -> tuple[Any, Any]:
    """Return where numbers of bytes are, and where those of 32 bits are; one of them is nowhere."""
    return (_at(numbers), None) if numbers.dtype == np.uint8 else (None, _at(numbers))


def label_product(library: Any, table: MatchTable, labels: Ints, values: Floats) -> Floats:
    """Return matrix(values) @ one_hot(labels), shape (m, d)."""
    out = np.zeros((len(labels), table.d))
    labels, values = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(values, np.float64)
    sizes = map(_INTEGER, out.shape)
    library.label_product(*sizes, *map(_at, (table.indptr, table.indices, labels, values, out)))
    return out


def earned_by_blocks(library: Any, table: MatchTable, labels: Ints, worth: Floats) -> Floats:
    """Return the same, all matches between two objects being worth as much, (k, width), where `table.full`."""
    out = np.zeros((len(labels), table.d))
    labels, sizes = np.ascontiguousarray(labels, np.int64), map(_INTEGER, (len(worth), table.d, worth.shape[1]))
    library.earn(*sizes, *map(_at, (table.matchings.offsets, table.partner_numbers, labels, worth, out)))
    return out


def mark_supported(library: Any, table: MatchTable, labels: Ints) -> NDArray[np.bool_]:
    """Return which points have a match to a point of the same label, -1 being one too; shape (m,)."""
    supported = np.zeros(len(labels), dtype=bool)
    arrays = table.indptr, table.indices, np.ascontiguousarray(labels, np.int64), supported
    library.mark_supported(_INTEGER(len(labels)), *map(_at, arrays))
    return supported


def spread_values(library: Any, table: MatchTable, values: Floats) -> Floats:
    """Return for every stored entry of W, (nnz,), the value of its pair of objects, (k, k)."""
    out = np.empty(len(table.indices))
    arrays = table.matchings.offsets, table.indptr, table.indices, table.owner, values, out
    library.spread_values(_INTEGER(len(values)), *map(_at, arrays))
    return out


def sum_rows(library: Any, A: Any) -> Floats:
    """Return the sums of the rows of a CSR matrix, shape (m,)."""
    out = np.empty(A.shape[0])
    indptr, data = np.ascontiguousarray(A.indptr, np.int32), np.ascontiguousarray(A.data, np.float64)
    library.sum_rows(_INTEGER(len(out)), *map(_at, (indptr, data, out)))
    return out


def scale_entries(library: Any, A: Any, s: Floats, dtype: Any) -> NDArray[Any]:
    """Return the entries of diag(s) A diag(s), A being CSR, in single or double precision."""
    out: NDArray[Any] = np.empty(len(A.data), dtype=dtype)
    where = (None, _at(out)) if out.dtype == np.float32 else (_at(out), None)
    rows = [np.ascontiguousarray(x, np.int32) for x in (A.indptr, A.indices)]
    reals = [np.ascontiguousarray(x, np.float64) for x in (A.data, s)]
    library.scale_entries(_INTEGER(A.shape[0]), *map(_at, (*rows, *reals)), *where)
    return out


def sketch_rows(library: Any, N: Any, shift: NDArray[Any], column: Ints, sign: NDArray[Any], out: NDArray[Any]) -> None:
    """Write (N + diag(shift)) S, N being CSR, to `out`, (m, width); S has `sign` in one `column` of every row."""
    rows = [np.ascontiguousarray(x, np.int32) for x in (N.indptr, N.indices)]
    reals = [np.ascontiguousarray(x, N.dtype) for x in (N.data, shift, sign)]
    arrays = *rows, *reals[:2], np.ascontiguousarray(column, np.int64), reals[2], out
    kernel = library.sketch_f32 if N.dtype == np.float32 else library.sketch_f64
    if kernel(*map(_INTEGER, out.shape), *map(_at, arrays)):
        raise MemoryError("no memory for a sketch")


_TYPES = {"partner": np.uint8, "partners": np.int64, "size_first": np.int32, "size_object": np.int32}
_CHANGED = "labels", "O", "holders", "shared", "near", "reach"


class _State(ctypes.Structure):
    """The struct State of ``_kernels/refine.c``."""

    _fields_ = [
        *((name, _INTEGER) for name in ("k", "d", "complete")),
        *((name, _ARRAY) for name in ("offsets", "indptr", "indices", "partners", "near_first", "near_object")),
        *((name, _ARRAY) for name in ("right", "seen", "size", "size_first", "size_object", "size_value")),
        *((name, _ARRAY) for name in ("popular", "logit")),
        *((name, _REAL) for name in ("fresh", "apart")),
        *(("extent", _ARRAY), ("births", _REAL)),
        *((name, _ARRAY) for name in ("labels", "O", "holders", "shared", "near", "reach")),
        *(("width", _INTEGER), ("partner", _ARRAY), ("worth", _ARRAY)),
    ]


class Kernels:
    """Compiled sweeps over the labels of a :class:`~stiefelsync.sync.likelihood.gauss_seidel.State`, changed in place.

    Labels come out as those of the NumPy code, bit for bit.
    """

    def __init__(self, library: Any, state: State) -> None:
        self.library, self.kept = library, _arrays(state)
        rates, self.state = state.rates, _State.from_buffer_copy(state.table.refining)
        for name, array in self.kept.items():
            setattr(self.state, name, address(array))
        self.state.fresh, self.state.births = 0.0 if rates.sight is None else rates.by_level[1], rates.births
        self.state.width = self.kept["worth"].shape[1] if "worth" in self.kept else 0

    def begin(self) -> None:
        """Find who holds what, and in `shared` what being seen is worth."""
        if self.library.begin(ctypes.byref(self.state)):
            raise IndexError(_BEYOND)

    def refine_sweep(self, calm: NDArray[np.bool_]) -> bool:
        """Re-label every restless object that is not calm, (k,), in turn; return whether a label changed."""
        return bool(self._checked(self.library.refine_sweep(ctypes.byref(self.state), _at(calm))))

    def draw_sweep(self, order: Ints, noise: Floats) -> None:
        """Draw the labels of every object with points; `order`, (n, times, d), `noise`, (n, times, d // 2)."""
        times = _INTEGER(order.shape[1])
        self._checked(self.library.draw_sweep(ctypes.byref(self.state), times, _at(order), _at(noise)))

    @staticmethod
    def _checked(code: int) -> int:
        if code < 0:
            raise MemoryError("no memory for a sweep over the labels")
        return code


def refining(table: MatchTable) -> Any:
    """Return the struct State as far as it does not depend on labels; the table must be kept."""
    known = _State(k=table.matchings.n_objects, d=table.d, complete=int(table.complete), apart=float(np.log(table.d)))
    known.offsets, known.indptr, known.indices = map(address, (table.matchings.offsets, table.indptr, table.indices))
    if not table.complete:
        known.near_first, known.near_object = map(address, table.neighbour_rows)
    return known


def _arrays(state: State) -> dict[str, Any]:
    """Return the other arrays of the struct that apply, by name, of the types that it wants."""
    rates, table = state.rates, state.table
    found: dict[str, Any] = {}
    if table.full and rates.by_blocks:
        found |= {"partner": table.partner_numbers, "worth": table.by_partner(rates.match)}
    else:
        found["right"] = rates.right
    if state.half is not None:
        found |= {"partners": table.partners, "seen": state.half}
    if isinstance(rates.size, np.ndarray):
        found["size"] = rates.size
    else:
        found |= {"size_first": rates.size.indptr, "size_object": rates.size.indices, "size_value": rates.size.data}
    if not isinstance(state.popular, float):
        found["popular"] = state.popular
    if rates.sight is not None:
        found["logit"] = rates.by_level[0]
    if rates.extent is not None:
        found["extent"] = rates.extent
    found = {name: np.ascontiguousarray(x, _TYPES.get(name, np.float64)) for name, x in found.items()}
    # What sweeps change must be the arrays of the state themselves.
    assert state.labels.dtype == np.int64
    assert len(state.labels) == table.matchings.n_points
    return found | {name: x for name in _CHANGED if (x := getattr(state, name)) is not None}


class Sorted(NamedTuple):
    """The entries of W between labelled points, the smaller label first, by the pair of labels they join.

    Attributes
    ----------
    first : (d² + 1,)
        Where the entries of every pair of labels begin.
    i, j, right : (n,)
        Both objects of every entry, and its worth.
    across : (d, d)
        Worth of all entries of every pair.
    inside : (d, k)
        Worth of the entries within a label to every object.
    """

    first: Ints
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    right: Floats
    across: Floats
    inside: Floats


class _Entries(ctypes.Structure):
    """The struct Entries of ``_kernels/exchange.c``."""

    _fields_ = [
        *((name, _INTEGER) for name in ("k", "d", "m")),
        *((name, _ARRAY) for name in ("first", "i", "j", "right", "where", "X", "size")),
        *(("width", _INTEGER), ("partner", _ARRAY), ("worth", _ARRAY), ("offsets", _ARRAY)),
        *((name, _REAL) for name in ("hope", "lift")),
    ]


def sorted_entries(library: Any, table: MatchTable, labels: Ints, right: Floats) -> Sorted:
    """Return the entries of W by the pair of labels they join, and what pairs of labels and objects are worth."""
    d, k = table.d, table.matchings.n_objects
    first, across, inside = np.zeros(d**2 + 1, dtype=np.int64), np.zeros((d, d)), np.zeros((d, k))
    labels, right = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(right, np.float64)
    given: list[Any] = [_INTEGER(n) for n in (len(labels), d, k)]
    given += [_at(array) for array in (table.indptr, table.indices, table.owner, labels, right)]
    library.sort_entries(*given, _at(first), None, None, None, None, None)
    first = np.cumsum(first)
    place, n = first.copy(), int(first[-1])
    (i, j), worth = np.empty((2, n), dtype=np.int32), np.empty(n)
    library.sort_entries(*given, *map(_at, (place, i, j, worth, across, inside)))
    return Sorted(first, i, j, worth, across, inside)


def sum_pairs(library: Any, table: MatchTable, labels: Ints, worth: Floats) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return which pairs of labels matches join, (d, d), what they are worth, (d, d), and to every object, (d, k).

    `worth` is that of a match between two objects, as wide as the numbers of partners.
    """
    d, k = table.d, table.matchings.n_objects
    joined, across, inside = np.zeros((d, d), dtype=bool), np.zeros((d, d)), np.zeros((d, k))
    sizes = map(_INTEGER, (k, d, worth.shape[1]))
    given = table.matchings.offsets, table.partner_numbers, np.ascontiguousarray(labels, np.int64), worth
    if library.sum_pairs(*sizes, *map(_at, (*given, joined, across, inside))):
        raise MemoryError("no memory for the worth of matches")
    return joined, across, inside


def hopeful_pairs(library: Any, entries: Any, pairs: Ints, hope: float, lift: float) -> NDArray[np.bool_]:
    """Return which pairs of labels, (P, 2), pass the tests of `lightest_cut`; shape (P,)."""
    size, table = None, entries.table
    if entries.X is None and entries.worth is None:
        size = entries.rates.size if isinstance(entries.rates.size, np.ndarray) else entries.rates.size.toarray()
    full = entries.worth is not None
    arrays: dict[str, tuple[Any, Any]] = {
        **{name: (getattr(entries, name), np.int64) for name in ("first", "where")},
        **{name: (getattr(entries, name), np.int32) for name in ("i", "j")},
        **{name: (getattr(entries, name), np.float64) for name in ("right", "X", "worth")},
        "size": (size, np.float64),
        "partner": (table.partner_numbers if full else None, np.uint8),
        "offsets": (table.matchings.offsets, np.int64),
    }
    kept = {name: x if x is None else np.ascontiguousarray(x, dtype) for name, (x, dtype) in arrays.items()}
    struct = _Entries(
        **{name: address(array) for name, array in kept.items()},
        k=entries.k,
        d=entries.d,
        m=table.matchings.n_points,
        width=entries.worth.shape[1] if full else 0,
        hope=hope,
        lift=lift,
    )
    pairs, found = np.ascontiguousarray(pairs, np.int64), np.zeros(len(pairs), dtype=bool)
    if library.hopeful_pairs(ctypes.byref(struct), _at(pairs), _INTEGER(len(pairs)), _at(found)):
        raise MemoryError("no memory for exchanging labels")
    return found


def soft_rows(library: Any, S: Floats, table: MatchTable) -> tuple[Floats, Floats]:
    """Return exp S with rows scaled to sum 1, in the memory of S, (m, d), and the sums of objects' columns, (k, d)."""
    S, offsets = np.ascontiguousarray(S, np.float64), table.matchings.offsets
    columns = np.empty((len(offsets) - 1, S.shape[1]))
    library.less_maximum(_at(S), *map(_INTEGER, S.shape))
    np.exp(S, out=S)
    library.scale_rows(_at(S), _INTEGER(S.shape[1]), _at(offsets), _INTEGER(len(columns)), _at(columns))
    return S, columns


def scale_soft(library: Any, K: Floats, columns: Floats, first: Ints, max_iter: int, tol: float) -> Floats:
    """Return u K v, rows of sum 1; K is (n, d), `columns` its sums over objects, whose first rows are `first`."""
    ends = np.append(first, len(K)).astype(np.int64, copy=False)
    K, columns = (np.array(x, dtype=np.float64, order="C") for x in (K, columns))
    rest = _INTEGER(max_iter), _REAL(tol), _REAL(np.finfo(float).tiny)
    if library.scale_soft(_at(K), _INTEGER(K.shape[1]), _at(ends), _INTEGER(len(first)), _at(columns), *rest):
        raise MemoryError("no memory for soft labels")
    return K


def count_triangles(library: Any, table: MatchTable) -> tuple[Floats, Floats]:
    """Return for every compared pair the triangles over its matches that close, and all of them, shape (P,) each."""
    problem, numbers = table.matchings, table.partner_numbers
    closed, all_ = np.empty((2, len(problem.pair_objects)))
    pairs = map(_at, (problem.pair_start, *table.ends, closed, all_))
    library.count_triangles(_INTEGER(numbers.shape[1]), *_bytes_or_words(numbers), _INTEGER(len(closed)), *pairs)
    return closed, all_


def sample_sweep(
    library: Any, member: Ints, size: Ints, kinds: Ints, worth: Floats, order: Ints, noise: Floats
) -> None:
    """Let every object of every chain swap the points of labels paired off; `member`, (chains, d, k), is changed."""
    shape = [_INTEGER(n) for n in member.shape]
    size, order = (np.ascontiguousarray(x, np.int64) for x in (size, order))
    noise, worth = (np.ascontiguousarray(x, np.float64) for x in (noise, worth))
    known = _at(kinds), _INTEGER(len(kinds)), _at(worth), _INTEGER(worth.shape[1])
    if library.sample_sweep(_at(member), *shape, _at(size), *known, _at(order), _at(noise)):
        raise MemoryError("no memory for a sweep over the labels")


def _at(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(address(array))
