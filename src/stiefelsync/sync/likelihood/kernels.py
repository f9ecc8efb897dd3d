"""Calls of the kernels of refinement and exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiefelsync._core.binding import call, struct

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
    "earned_by_blocks",
    "hopeful_pairs",
    "label_product",
    "mark_supported",
    "number_matches",
    "number_partners",
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

_BEYOND = "a label is not below the number of labels"


def arrange_matches(matchings: Matchings) -> tuple[NDArray[np.int32], ...]:
    """Return the row pointers and columns of W without its diagonal, CSR, and the ends of all matches, (2, M)."""
    n, m, pairs = matchings.n_matches, matchings.n_points, np.ascontiguousarray(matchings.pair_objects)
    indptr, indices, ends = (np.empty(shape, dtype=np.int32) for shape in (m + 1, 2 * n, (2, n)))
    points = np.ascontiguousarray(matchings.indices)
    call(
        "arrange_matches", len(pairs), pairs, matchings.pair_start, points, matchings.offsets, m,
        ends[0], ends[1], indptr, indices,
    )  # fmt: skip
    return indptr, indices, ends


def number_matches(table: MatchTable) -> NDArray[np.int32]:
    """Return the number of the match of every stored entry of W, shape (nnz,)."""
    place, numbers = table.indptr[:-1].copy(), np.empty_like(table.indices)
    call("number_matches", table.matchings.n_matches, table.ends[0], table.ends[1], place, numbers)
    return numbers


def count_labels(table: MatchTable, labels: Ints) -> tuple[Floats, Floats, Floats, Floats | None]:
    """Return right matches and shared labels of all pairs, (P,) each, holders, (d,), and partners found, (2,).

    The latter, by rows and by columns, are None where every row is matched.
    """
    problem, numbers = table.matchings, table.partner_numbers if table.full else None
    (right, present), holders = np.empty((2, len(problem.pair_objects))), np.zeros(table.d)
    found = np.empty(2) if table.partial else None
    beyond = call(
        "count_labels", problem.n_objects, table.d, len(problem.pair_objects), problem.pair_objects, problem.pair_start,
        table.ends[0], table.ends[1], problem.offsets, 0 if numbers is None else numbers.shape[1], numbers,
        np.ascontiguousarray(labels, np.int64), right, present, holders, found,
    )  # fmt: skip
    if beyond:
        raise IndexError(_BEYOND)
    return right, present, holders, found


def number_partners(table: MatchTable, out: NDArray[Any]) -> None:
    """Write the number of every point's match in every object to `out`, (m, width), zeros, of bytes or 32 bits each."""
    arrays = table.indptr, table.indices, table.owner, table.matchings.offsets
    call("number_partners", *out.shape, *arrays, *_bytes_or_words(out))


def _bytes_or_words(numbers: NDArray[Any]) -> tuple[Any, Any]:
    """Return numbers of bytes, and those of 32 bits; one of them is None."""
    return (numbers, None) if numbers.dtype == np.uint8 else (None, numbers)


def label_product(table: MatchTable, labels: Ints, values: Floats) -> Floats:
    """Return matrix(values) @ one_hot(labels), shape (m, d)."""
    out = np.zeros((len(labels), table.d))
    labels, values = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(values, np.float64)
    call("label_product", *out.shape, table.indptr, table.indices, labels, values, out)
    return out


def earned_by_blocks(table: MatchTable, labels: Ints, worth: Floats) -> Floats:
    """Return the same, all matches between two objects being worth as much, (k, width), where `table.full`."""
    out, labels = np.zeros((len(labels), table.d)), np.ascontiguousarray(labels, np.int64)
    known = table.matchings.offsets, table.partner_numbers, labels, worth
    call("earn", len(worth), table.d, worth.shape[1], *known, out)
    return out


def mark_supported(table: MatchTable, labels: Ints) -> NDArray[np.bool_]:
    """Return which points have a match to a point of the same label, -1 being one too; shape (m,)."""
    supported = np.zeros(len(labels), dtype=bool)
    labels = np.ascontiguousarray(labels, np.int64)
    call("mark_supported", len(labels), table.indptr, table.indices, labels, supported)
    return supported


def spread_values(table: MatchTable, values: Floats) -> Floats:
    """Return for every stored entry of W, (nnz,), the value of its pair of objects, (k, k)."""
    out = np.empty(len(table.indices))
    arrays = table.matchings.offsets, table.indptr, table.indices, table.owner, values, out
    call("spread_values", len(values), *arrays)
    return out


def sum_rows(A: Any) -> Floats:
    """Return the sums of the rows of a CSR matrix, shape (m,)."""
    out = np.empty(A.shape[0])
    indptr, data = np.ascontiguousarray(A.indptr, np.int32), np.ascontiguousarray(A.data, np.float64)
    call("sum_rows", len(out), indptr, data, out)
    return out


def scale_entries(A: Any, s: Floats, dtype: Any) -> NDArray[Any]:
    """Return the entries of diag(s) A diag(s), A being CSR, in single or double precision."""
    out: NDArray[Any] = np.empty(len(A.data), dtype=dtype)
    where = (None, out) if out.dtype == np.float32 else (out, None)
    rows = [np.ascontiguousarray(x, np.int32) for x in (A.indptr, A.indices)]
    reals = [np.ascontiguousarray(x, np.float64) for x in (A.data, s)]
    call("scale_entries", A.shape[0], *rows, *reals, *where)
    return out


def sketch_rows(N: Any, shift: NDArray[Any], column: Ints, sign: NDArray[Any], out: NDArray[Any]) -> None:
    """Write (N + diag(shift)) S, N being CSR, to `out`, (m, width); S has `sign` in one `column` of every row."""
    rows = [np.ascontiguousarray(x, np.int32) for x in (N.indptr, N.indices)]
    data, shift, sign = (np.ascontiguousarray(x, N.dtype) for x in (N.data, shift, sign))
    name = "sketch_f32" if N.dtype == np.float32 else "sketch_f64"
    call(name, *out.shape, *rows, data, shift, np.ascontiguousarray(column, np.int64), sign, out)


_TYPES = {"partner": np.uint8, "partners": np.int64, "size_first": np.int32, "size_object": np.int32}
_CHANGED = "labels", "O", "holders", "shared", "near", "reach"


class Kernels:
    """Sweeps over the labels of a :class:`~stiefelsync.sync.likelihood.gauss_seidel.State`, changed in place."""

    def __init__(self, state: State) -> None:
        table, rates = state.table, state.rates
        known: dict[str, Any] = {"offsets": table.matchings.offsets, "indptr": table.indptr, "indices": table.indices}
        if not table.complete:
            known["near_first"], known["near_object"] = table.neighbour_rows
        arrays = known | _arrays(state)
        self.state = struct(
            "State", **arrays, k=table.matchings.n_objects, d=table.d, complete=table.complete, apart=np.log(table.d),
            fresh=0.0 if rates.sight is None else rates.by_level[1], births=rates.births,
            width=arrays["worth"].shape[1] if "worth" in arrays else 0,
        )  # fmt: skip

    def begin(self) -> None:
        """Find who holds what, and in `shared` what being seen is worth."""
        if call("begin", self.state):
            raise IndexError(_BEYOND)

    def refine_sweep(self, calm: NDArray[np.bool_]) -> bool:
        """Re-label every restless object that is not calm, (k,), in turn; return whether a label changed."""
        return bool(call("refine_sweep", self.state, calm))

    def draw_sweep(self, order: Ints, noise: Floats) -> None:
        """Draw the labels of every object with points; `order`, (n, times, d), `noise`, (n, times, d // 2)."""
        call("draw_sweep", self.state, order.shape[1], order, noise)


def _arrays(state: State) -> dict[str, Any]:
    """Return the arrays of the struct that depend on labels or rates, by name; those that apply."""
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


def sorted_entries(table: MatchTable, labels: Ints, right: Floats) -> Sorted:
    """Return the entries of W by the pair of labels they join, and what pairs of labels and objects are worth."""
    d, k = table.d, table.matchings.n_objects
    first, across, inside = np.zeros(d**2 + 1, dtype=np.int64), np.zeros((d, d)), np.zeros((d, k))
    labels, right = np.ascontiguousarray(labels, np.int64), np.ascontiguousarray(right, np.float64)
    given = len(labels), d, k, table.indptr, table.indices, table.owner, labels, right
    call("sort_entries", *given, first, None, None, None, None, None)
    first = np.cumsum(first)
    place, n = first.copy(), int(first[-1])
    (i, j), worth = np.empty((2, n), dtype=np.int32), np.empty(n)
    call("sort_entries", *given, place, i, j, worth, across, inside)
    return Sorted(first, i, j, worth, across, inside)


def sum_pairs(table: MatchTable, labels: Ints, worth: Floats) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """Return which pairs of labels matches join, (d, d), what they are worth, (d, d), and to every object, (d, k).

    `worth` is that of a match between two objects, as wide as the numbers of partners.
    """
    d, k = table.d, table.matchings.n_objects
    joined, across, inside = np.zeros((d, d), dtype=bool), np.zeros((d, d)), np.zeros((d, k))
    given = table.matchings.offsets, table.partner_numbers, np.ascontiguousarray(labels, np.int64), worth
    call("sum_pairs", k, d, worth.shape[1], *given, joined, across, inside)
    return joined, across, inside


def hopeful_pairs(entries: Any, pairs: Ints, hope: float, lift: float) -> NDArray[np.bool_]:
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
    given = {name: np.ascontiguousarray(x, dtype) for name, (x, dtype) in arrays.items() if x is not None}
    width = entries.worth.shape[1] if full else 0
    sizes = {"k": entries.k, "d": entries.d, "m": table.matchings.n_points, "width": width}
    known = struct("Entries", **given, **sizes, hope=hope, lift=lift)
    pairs, found = np.ascontiguousarray(pairs, np.int64), np.zeros(len(pairs), dtype=bool)
    call("hopeful_pairs", known, pairs, len(pairs), found)
    return found


def soft_rows(S: Floats, table: MatchTable) -> tuple[Floats, Floats]:
    """Return exp S with rows scaled to sum 1, in the memory of S, (m, d), and the sums of objects' columns, (k, d)."""
    S, offsets = np.ascontiguousarray(S, np.float64), table.matchings.offsets
    columns = np.empty((len(offsets) - 1, S.shape[1]))
    call("less_maximum", S, *S.shape)
    np.exp(S, out=S)
    call("scale_rows", S, S.shape[1], offsets, len(columns), columns)
    return S, columns


def scale_soft(K: Floats, columns: Floats, first: Ints, max_iter: int, tol: float) -> Floats:
    """Return u K v, rows of sum 1; K is (n, d), `columns` its sums over objects, whose first rows are `first`."""
    ends = np.append(first, len(K)).astype(np.int64, copy=False)
    K, columns = (np.array(x, dtype=np.float64, order="C") for x in (K, columns))
    call("scale_soft", K, K.shape[1], ends, len(first), columns, max_iter, tol, np.finfo(float).tiny)
    return K


def count_triangles(table: MatchTable) -> tuple[Floats, Floats]:
    """Return for every compared pair the triangles over its matches that close, and all of them, shape (P,) each."""
    problem, numbers = table.matchings, table.partner_numbers
    closed, all_ = np.empty((2, len(problem.pair_objects)))
    pairs = problem.pair_start, table.ends[0], table.ends[1], closed, all_
    call("count_triangles", numbers.shape[1], *_bytes_or_words(numbers), len(closed), *pairs)
    return closed, all_


def sample_sweep(member: Ints, size: Ints, kinds: Ints, worth: Floats, order: Ints, noise: Floats) -> None:
    """Let every object of every chain swap the points of labels paired off; `member`, (chains, d, k), is changed."""
    size, order = (np.ascontiguousarray(x, np.int64) for x in (size, order))
    noise, worth = (np.ascontiguousarray(x, np.float64) for x in (noise, worth))
    call("sample_sweep", member, *member.shape, size, kinds, len(kinds), worth, worth.shape[1], order, noise)
