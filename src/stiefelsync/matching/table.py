"""Tables of scored pairs of records, of any library.

Columns found by name, ids kept, sources told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import InputError, MissingExtraError, counted
from stiefelsync.matching._assignment import best_pairs
from stiefelsync.matching._canonical import Repair
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.records import Records

__all__ = [
    "DOUBTFUL", "EdgeColumns", "columns_of", "edge_columns", "from_table", "linked", "linked_pairs", "records_of",
]  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Probability above which a pair may become a match where sources are clean: cycles remove what is
# wrong, and .2 to .3 was better than .5 nearly everywhere it was measured.
DOUBTFUL = 0.3
_MIN_WEIGHT = 1e-9  # a weight is positive, and a pair of probability 0 is evidence all the same

_WORDS = {"yes": True, "true": True, "no": False, "false": False}
_SUFFIXES = (
    ("_l", "_r"), ("_left", "_right"), ("_1", "_2"), ("1", "2"), ("_a", "_b"), ("a", "b"), ("_x", "_y"), ("_0", "_1"),
    ("_first", "_second"), ("_from", "_to"), ("_source", "_target"),
)  # fmt: skip
_PREFIXES = (
    ("left_", "right_"), ("l_", "r_"), ("ltable_", "rtable_"), ("first_", "second_"), ("from_", "to_"),
    ("source_", "target_"), ("a_", "b_"),
)  # fmt: skip
_IDS = (
    "unique_id", "id", "record_id", "rec_id", "record", "uid", "uuid", "rid", "key", "index", "entity_id", "entity",
    "node_id", "node", "item_id", "item", "level", "pairs",
)  # fmt: skip
_BOTH_IDS = (("left", "right"), ("source", "target"), ("from", "to"), ("first", "second"))
_SOURCES = ("source_dataset", "source", "dataset", "table", "source_table", "source_name", "dataset_name")
_SCORES = (
    "match_probability", "probability", "match_prob", "prob", "p_match", "p", "proba", "score", "match_score",
    "confidence_score", "similarity", "similarity_score", "weight", "confidence",
)  # fmt: skip
_NO_IDS = ("image", "object", "point")  # stems of tables of other kinds
_ODDS = "match_weight"  # Splink's: log2 of the odds
HEADERS = (
    "unique_id_l,unique_id_r,match_probability with source_dataset_l and source_dataset_r if there are several sources,"
    " or id_left,id_right,score"
)


@dataclass(frozen=True)
class EdgeColumns:
    """Which columns of a table of scored pairs hold what.

    `source` is None where ids alone tell records apart.
    """

    id: tuple[str, str]
    score: str
    source: tuple[str, str] | None = None

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return [*(self.source or ()), *self.id, self.score]

    @property
    def log2_odds(self) -> bool:
        """Whether the score is Splink's match weight."""
        return self.score.lower() == _ODDS


def edge_columns(names: Iterable[str], told: str | Sequence[str] | None = None) -> EdgeColumns | None:
    """Return which columns hold ids, sources and scores, None where the names do not tell.

    Parameters
    ----------
    names
        Of all columns.
    told
        The names to take, with commas between or listed: ``id,id,score`` or
        ``source,id,source,id,score``.

    Examples
    --------
    >>> edge_columns(["match_probability", "unique_id_l", "unique_id_r"])
    EdgeColumns(id=('unique_id_l', 'unique_id_r'), score='match_probability', source=None)
    >>> edge_columns(["a", "b", "p"], "a,b,p").id
    ('a', 'b')
    """
    listed = list(names)
    if told is not None:
        chosen = [name.strip() for name in (told.split(",") if isinstance(told, str) else told)]
        for name in chosen:
            if name not in listed:
                raise InputError(f"there is no column {name!r}; there are {', '.join(listed)}", setting="columns")
        if len(chosen) == 3:
            return EdgeColumns((chosen[0], chosen[1]), chosen[2])
        if len(chosen) == 5:
            return EdgeColumns((chosen[1], chosen[3]), chosen[4], (chosen[0], chosen[2]))
        raise InputError(
            f"columns names id,id,score or source,id,source,id,score, got {counted(len(chosen), 'name')}",
            setting="columns",
        )
    by_name = {name.strip().lower(): name for name in reversed(listed)}
    score = next((by_name[name] for name in (*_SCORES, _ODDS) if name in by_name), None)
    if score is None:
        return None
    both, sources = _two(by_name, _IDS), _two(by_name, _SOURCES)
    if both is None:
        both = next((found for names in _BOTH_IDS if (found := _pair(by_name, names)) is not None), None)
    if both is None:  # what is left besides score and sources, if these are two columns that are called alike
        rest = [name for name in listed if name not in (score, *(sources or ()))]
        stems = {
            name.strip().lower()[: -len(end)]
            for name in rest
            for ends in _SUFFIXES
            for end in ends
            if name.strip().lower().endswith(end)
        }
        stems |= {
            name.strip().lower()[len(begin) :]
            for name in rest
            for ends in _PREFIXES
            for begin in ends
            if name.strip().lower().startswith(begin)
        }
        both = _two(by_name, sorted(stems - {"", *_NO_IDS, *_SOURCES})) if len(rest) == 2 else None
    return None if both is None else EdgeColumns(both, score, sources)


def _two(by_name: Mapping[str, str], stems: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of the left and of the right record whose names have one of the stems."""
    for stem in stems:
        for left, right in _SUFFIXES:
            if (found := _pair(by_name, (stem + left, stem + right))) is not None:
                return found
        for left, right in _PREFIXES:
            if (found := _pair(by_name, (left + stem, right + stem))) is not None:
                return found
    return None


def _pair(by_name: Mapping[str, str], names: tuple[str, str]) -> tuple[str, str] | None:
    return (by_name[names[0]], by_name[names[1]]) if all(name in by_name for name in names) else None


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a table by name.

    Of a dict, or a frame of any library that knows Arrow's interface.

    Examples
    --------
    >>> columns_of({"a": [1, 2]})["a"].tolist()
    [1, 2]
    """
    if isinstance(table, Mapping):
        return {str(name): _array(column) for name, column in table.items()}
    if isinstance(table, np.ndarray) and table.dtype.names:  # of one field with two numbers, two columns are made
        fields = {name: np.asarray(table[name]) for name in table.dtype.names}
        return {
            called: column
            for name, field in fields.items()
            for called, column in (
                [(name, field)] if field.ndim == 1 else [(f"{name}_l", field[:, 0]), (f"{name}_r", field[:, 1])]
            )
        }
    if isinstance(table, Sequence) and table and all(isinstance(row, Mapping) for row in table):
        keys = list(dict.fromkeys(name for row in table for name in row))
        return {str(name): _array([row.get(name) for row in table]) for name in keys}
    if hasattr(table, "collect") and hasattr(table, "collect_schema"):  # polars' frames that are not computed yet
        return columns_of(table.collect())
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "fetch_arrow_table"):
        try:
            import pyarrow
        except ImportError:
            pyarrow = None
        if pyarrow is not None:
            arrow = pyarrow.table(table) if hasattr(table, "__arrow_c_stream__") else table.fetch_arrow_table()
            return {name: arrow.column(name) for name in arrow.column_names}
    names = getattr(table, "columns", None)
    if names is not None and not callable(names) and hasattr(table, "__getitem__"):
        return {str(name): _array(table[name]) for name in names}
    if hasattr(table, "__arrow_c_stream__") or hasattr(table, "fetch_arrow_table"):
        raise MissingExtraError("reading such a table", "pyarrow", "tables")
    raise InputError(
        f"a table is a dict of columns, or a frame of pandas, polars, Arrow or DuckDB; got {type(table).__name__}"
    )


def _array(column: Any) -> NDArray[Any]:
    """Return a column as an array, text of differing types as objects."""
    if isinstance(column, np.ndarray):
        return column
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy())
    listed = list(column)
    if len({type(value) for value in listed}) > 1 or any(isinstance(value, tuple | list) for value in listed):
        kept = np.empty(len(listed), dtype=object)
        kept[:] = listed
        return kept
    return np.array(listed)


def from_table(
    table: Any,
    *,
    columns: str | Sequence[str] | None = None,
    threshold: float | None = None,
    duplicates: bool | str | Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
    prefix: str | None = None,
) -> Matchings:
    """Make a problem of a table of scored pairs; what :meth:`Matchings.from_table` does."""
    found = columns_of(table)
    chosen = edge_columns(found, columns)
    if chosen is None:
        raise InputError(
            f"no columns of ids and scores among {', '.join(found) or 'none'}; the usual names are {HEADERS}; "
            "say which with columns=",
            setting="columns",
        )
    return linked(
        {name: found[name] for name in chosen.names}, chosen,
        threshold=threshold, duplicates=duplicates, sources=sources, prefix=prefix,
    )  # fmt: skip


def linked(
    table: Mapping[str, Any],
    columns: EdgeColumns,
    *,
    threshold: float | None = None,
    duplicates: bool | str | Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
    prefix: str | None = None,
) -> Matchings:
    """Make a problem of the columns of scored pairs, NumPy's or Arrow's.

    Raises
    ------
    InputError
        With the number of the row in `match` where one row is to blame.
    """
    probability = _probabilities(table[columns.score], columns)
    if not len(probability):
        raise InputError("the table has no rows: there are no scored pairs")
    records, ends = _records(table, columns, sources, prefix)
    own = np.flatnonzero(ends[:, 0] == ends[:, 1])
    if len(own):
        t = int(own[0])
        raise InputError(
            f"the record {_shown(records.ids[ends[t, 0]])} is paired with itself; if the two columns of ids are of "
            "different sources, name these with sources=left,right",
            match=t,
            setting="sources",
        )
    # Each pair once, the smaller record first: of several scores the highest stays.
    ends = np.sort(ends, axis=1)
    order = np.lexsort((-probability, ends[:, 1], ends[:, 0]))
    ends, probability = ends[order], probability[order]
    first = np.ones(len(ends), dtype=bool)
    first[1:] = (ends[1:] != ends[:-1]).any(axis=1)
    twice = int((~first).sum())
    ends, probability = ends[first], probability[first]
    inside = records.source[ends[:, 0]] == records.source[ends[:, 1]]
    clean = _duplicate_free(records, np.unique(records.source[ends[inside, 0]]), duplicates)
    records = Records(records.sources, records.source, records.ids, clean)
    return _problem(ends, probability, records, threshold, twice)


def linked_pairs(
    ends: Ints, probability: Floats, source: Ints, *, duplicate_free: bool, threshold: float | None = None
) -> Matchings:
    """Return the problem of scored pairs of points without ids, grouped by their sources.

    Parameters
    ----------
    ends, probability : (M, 2), (M,)
        Different pairs of points a < b or b < a, and how probable they are.
    source : (m,)
        Source of every point, ascending from 0 without gaps.

    Examples
    --------
    >>> linked_pairs(np.array([[0, 1]]), np.array([0.9]), np.array([0, 1]), duplicate_free=True)
    Matchings(2 objects, 2 points, 1 match in 1 of 1 pair)
    """
    names = tuple(str(n) for n in range(int(source.max(initial=-1)) + 1))
    clean = np.full(len(names), duplicate_free)
    first = np.searchsorted(source, np.arange(len(names)))
    records = Records(names, source, np.arange(len(source)) - first[source], clean)
    return _problem(np.sort(ends, axis=1), probability, records, threshold, 0)


def _problem(ends: Ints, probability: Floats, records: Records, threshold: float | None, twice: int) -> Matchings:
    """Return the problem of different pairs of records a < b."""
    clean = records.duplicate_free
    if threshold is not None and not 0 <= threshold < 1:
        raise InputError(f"threshold must be a probability of at least 0 and below 1, got {threshold!r}")
    weights = np.maximum(probability, _MIN_WEIGHT)
    if not clean.all():
        kept = probability >= (threshold or 0.0)
        return _made(ends[kept], np.ones(len(records), dtype=np.int64), weights[kept], records, Repair(twice, 0))
    above = probability >= (threshold or 0.0)
    records = replace(records, scored=(ends[above], probability[above]))
    kept = _one_to_one(ends, probability, records, DOUBTFUL if threshold is None else threshold)
    sizes = np.bincount(records.source, minlength=len(records.sources))
    dropped = int((probability >= (DOUBTFUL if threshold is None else threshold)).sum()) - int(kept.sum())
    return _made(ends[kept], sizes, weights[kept], records, Repair(twice, dropped))


def _made(ends: Ints, sizes: Ints, weights: Floats, records: Records, repair: Repair) -> Matchings:
    """Return the problem, with the names of the sources where they are its objects."""
    names = records.sources if len(sizes) == len(records.sources) < len(records) else None
    made = Matchings.from_endpoints(ends, sizes, weights=weights, names=names)
    return made._with(repair=repair if repair.dropped else None).with_records(records)


def _probabilities(column: Any, columns: EdgeColumns) -> Floats:
    """Return the scores as probabilities, (M,), or say which row is to blame."""
    values = _as_numeric(column)
    if values is None:
        raise InputError(f"the column {columns.score!r} does not hold numbers", setting="columns")
    if columns.log2_odds:
        values = 1 / (1 + np.exp2(-np.clip(values, -1000, 1000))) + np.where(np.isnan(values), np.nan, 0)
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if len(bad):
        t = int(bad[0])
        if np.isnan(values[t]):
            raise InputError(f"{columns.score} is empty; leave out pairs that were not scored", match=t)
        raise InputError(
            f"{columns.score} is {values[t]:g}; scores are taken for probabilities, from 0 to 1 (a match weight w in "
            "bits is the probability 2**w / (1 + 2**w)); if another column has these, name it with columns=id,id,score",
            match=t,
            setting="columns",
        )
    return values


def _as_numeric(column: Any) -> Floats | None:
    """Return a column as float64, NaN for what is empty, or None if it holds something else."""
    if hasattr(column, "combine_chunks"):  # Arrow's
        import pyarrow

        try:
            return np.asarray(column.cast(pyarrow.float64()).to_numpy(), dtype=np.float64)
        except pyarrow.lib.ArrowException:
            return None
    array = np.asarray(column)
    if array.dtype.kind not in "biufOU":
        return None
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _records(
    table: Mapping[str, Any], columns: EdgeColumns, sources: str | Sequence[str] | None, prefix: str | None
) -> tuple[Records, Ints]:
    """Return the records mentioned, sorted by source and id, and the two of every row.

    Shape (M, 2).
    """
    values, ids = _factorised([table[name] for name in columns.id], columns.id)
    told = [name.strip() for name in sources.split(",")] if isinstance(sources, str) else list(sources or ())
    if columns.source is not None:
        if told or prefix:
            raise InputError("the table has columns of sources; leave sources= and prefix= out", setting="sources")
        names, source = _factorised([table[name] for name in columns.source], columns.source)
        texts = [str(name) for name in names.tolist()]
    elif told:
        if len(told) != 2 or prefix:
            raise InputError(f"sources names the left and the right one, got {', '.join(told)}", setting="sources")
        texts = list(dict.fromkeys(told))
        source = np.tile([texts.index(name) for name in told], (len(ids), 1))
    elif prefix:
        texts, values, of_id = _prefixed(values, prefix, ids)
        source = of_id[ids]
    else:
        texts, source = [""], np.zeros_like(ids)
    order = np.arange(len(texts)) if told else np.argsort(np.array(texts, dtype=object), kind="stable")
    place = np.empty(len(texts), dtype=np.int64)
    place[order] = np.arange(len(texts))
    keys, ends = np.unique(place[source] * max(len(values), 1) + ids, return_inverse=True)
    of_source, which = np.divmod(keys, max(len(values), 1))
    used = np.unique(of_source)
    listed = tuple(texts[order[s]] for s in used.tolist())
    if len(set(listed)) < len(listed):
        raise InputError("two sources look the same as text; rename one")
    numbers = np.asarray(np.searchsorted(used, of_source), dtype=np.int64)
    found = Records(listed or ("",), numbers, values[which], np.zeros(len(listed) or 1, dtype=bool))
    return found, ends.reshape(-1, 2).astype(np.int64)


def records_of(cluster: Any, source: Any | None, ids: Any) -> tuple[Records, Ints, Ints]:
    """Return the records of a table that lists each once, where each row's is among them, and the cluster of each row.

    Sources are free of duplicates if no cluster has two records of one of them, else none is.

    Parameters
    ----------
    cluster, source, ids : (n,)
        Columns, NumPy's or Arrow's; `source` is None where there is one source.
    """
    _, clusters = _factorised([cluster], ["cluster_id"])
    values, codes = _factorised([ids], ["unique_id"])
    clusters, codes = clusters[:, 0], codes[:, 0]
    names, owners = [""], np.zeros_like(codes)
    if source is not None:
        found, owners = _factorised([source], ["source_dataset"])
        names, owners = [str(name) for name in found.tolist()], owners[:, 0]
    keys = owners * max(len(values), 1) + codes
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(twice):
        t = int(order[twice[0] + 1])
        raise InputError(f"the record {_shown(values[codes[t]])} is listed twice", match=t)
    where = np.empty(len(keys), dtype=np.int64)
    where[order] = np.arange(len(keys))
    pairs = np.unique(clusters * len(names) + owners, return_counts=True)[1]
    clean = len(names) > 1 and int(pairs.max(initial=0)) < 2
    ordered = owners[order]
    return Records(tuple(names), ordered, values[codes[order]], np.full(len(names), clean)), where, clusters


def _prefixed(values: NDArray[Any], prefix: str, ids: Ints) -> tuple[list[str], NDArray[Any], Ints]:
    """Split ids such as "shop-__-17" at the first `prefix`.

    Return the sources, the ids, and the source of each id.
    """
    parts = [str(value).partition(prefix) for value in values.tolist()]
    for n, (_, mark, own) in enumerate(parts):
        if not mark or not own:
            t = int((ids == n).any(axis=1).argmax())
            raise InputError(f"the id {_shown(values[n])} has no source before {prefix!r}", match=t, setting="prefix")
    texts = sorted({source for source, _, _ in parts})
    number = {source: n for n, source in enumerate(texts)}
    owners = np.array([number[source] for source, _, _ in parts], dtype=np.int64)
    return texts, np.array([own for _, _, own in parts], dtype=object), owners


def _shown(value: Any) -> str:
    """Return an id as Python writes it, whatever array it comes from."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _factorised(columns: Sequence[Any], names: Sequence[str]) -> tuple[NDArray[Any], Ints]:
    """Return the different values of columns, sorted where they can be, and the codes of all; shape (n, columns)."""
    if all(hasattr(column, "combine_chunks") for column in columns):
        values, codes = _factorised_arrow(columns)
    else:
        arrays = [_array(column) for column in columns]
        if len({array.dtype.kind for array in arrays}) > 1:
            # Whole numbers are the same ids whether or not they are kept as such.
            arrays = [_whole(array) if array.dtype.kind == "f" else array for array in arrays]
        if len({array.dtype.kind for array in arrays}) > 1:
            arrays = [array.astype(object) for array in arrays]
        values, codes = _unique(np.concatenate(arrays))
    bad = np.flatnonzero(codes < 0)
    if len(bad):
        t = int(bad[0])
        side, row = divmod(t, len(codes) // len(columns))
        raise InputError(f"{names[side]} is empty", match=row)
    return values, codes.reshape(len(columns), -1).T


def _factorised_arrow(columns: Sequence[Any]) -> tuple[NDArray[Any], Ints]:
    """Do the same for columns of Arrow."""
    import pyarrow

    plain = [column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type for column in columns]
    if len(set(plain)) > 1:
        columns = _of_one_type(columns, plain)
    try:
        encoded = [
            column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode() for column in columns
        ]
    except pyarrow.lib.ArrowNotImplementedError:  # UUIDs, for example
        return _unique(np.array([value for column in columns for value in column.to_pylist()], dtype=object))
    # The texts of dictionaries are compared, never those of rows, which would be many times as many.
    chunks = [chunk for column in encoded for chunk in column.chunks]
    texts = [chunk.dictionary.to_numpy(zero_copy_only=False) for chunk in chunks]
    joined = np.concatenate([np.empty(0, dtype=object) if not texts else texts[0][:0], *texts])
    values, place = _unique(joined)
    place = np.append(place, -1)
    codes, first = [np.empty(0, dtype=np.int64)], 0
    for chunk, listed in zip(chunks, texts, strict=True):
        indices = chunk.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        codes.append(place[np.where(indices < 0, len(joined), first + indices)])
        first += len(listed)
    return values, np.concatenate(codes)


def _of_one_type(columns: Sequence[Any], plain: Sequence[Any]) -> list[Any]:
    """Return columns of Arrow as numbers if all of them are, whole if they can be, else as text."""
    import pyarrow

    is_number = [pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) for kind in plain]
    numbers = (pyarrow.int64(), pyarrow.uint64(), pyarrow.float64()) if all(is_number) else ()
    for target in (*numbers, pyarrow.string()):
        try:
            return [column.cast(target) for column in columns]
        except pyarrow.lib.ArrowInvalid:
            continue
    raise InputError(f"the two columns of ids are {' and '.join(map(str, plain))}, which cannot be compared")


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as whole ones if all of them are."""
    exact = np.isfinite(array).all() and (array == np.rint(array)).all() and (np.abs(array) < 2**53).all()
    return array.astype(np.int64) if exact else array


def _unique(values: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Return the different values, sorted, and the code of each, -1 for None and NaN."""
    if values.dtype.kind != "O":
        found, codes = np.unique(values, return_inverse=True)
        empty = np.isnan(found) if values.dtype.kind == "f" else np.zeros(len(found), dtype=bool)
        codes = np.where(empty[codes], -1, codes)
        return found[~empty], codes.astype(np.int64)
    listed = values.tolist()
    different = {value for value in listed if value is not None and value == value}
    try:
        ordered = sorted(different)
    except TypeError:  # of several types
        ordered = sorted(different, key=lambda value: (type(value).__name__, str(value)))
    number = {value: n for n, value in enumerate(ordered)}
    codes = np.fromiter((number.get(value, -1) for value in listed), dtype=np.int64, count=len(listed))
    found = np.empty(len(ordered), dtype=object)
    found[:] = ordered
    return found, codes


def _duplicate_free(records: Records, scored: Ints, duplicates: bool | str | Sequence[str] | None) -> NDArray[np.bool_]:
    """Return which sources hold everything once, as was said, or as it looks.

    Where no pair inside was scored.

    Parameters
    ----------
    scored : (s,) int64
        Sources with a scored pair inside.
    """
    count = len(records.sources)
    clean = np.ones(count, dtype=bool)
    if duplicates is None:
        clean[scored] = False
        return clean if count > 1 else np.zeros(count, dtype=bool)
    if isinstance(duplicates, str):
        duplicates = _WORDS.get(duplicates.strip().lower(), duplicates)
    if isinstance(duplicates, bool):
        if not duplicates and count < 2:
            raise InputError("a single source without duplicates has no pairs to be found; leave duplicates out")
        return np.full(count, not duplicates)
    listed = duplicates.split(",") if isinstance(duplicates, str) else duplicates
    for name in (str(given).strip() for given in listed):
        if name not in records.sources:
            raise InputError(
                f"duplicates names {name!r}, which is no source; there are {', '.join(records.sources)}",
                setting="duplicates",
            )
        clean[records.sources.index(name)] = False
    return clean


def _one_to_one(ends: Ints, probability: Floats, records: Records, threshold: float) -> NDArray[np.bool_]:
    """Return which pairs become matches of clean sources.

    In every pair of sources the best assignment.
    """
    chosen = np.zeros(len(ends), dtype=bool)
    i, j = records.source[ends].T
    liable = np.flatnonzero((probability >= threshold) & (i != j))
    pair = i[liable] * len(records.sources) + j[liable]
    order = np.argsort(pair, kind="stable")
    liable = liable[order]
    cuts = np.flatnonzero(np.diff(pair[order], prepend=-1, append=-1))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        rows = liable[first:last]
        gain = np.maximum(probability[rows] - threshold, _MIN_WEIGHT)
        chosen[rows] = best_pairs(ends[rows, 0], ends[rows, 1], gain)
    return chosen
