"""Scored pairs of records, as record linkage programs write them: ids, perhaps sources, and a probability."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import Content, Format, losses, register
from stiefelsync.io.tables.clusters import record_columns
from stiefelsync.io.tables.files import bad_row, column_names, header, read_columns, write_columns
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.table import HEADERS, edge_columns, linked

__all__ = ["EDGES"]


def sniff(path: Path) -> bool:
    """Return whether a table has columns of two ids and a score."""
    return edge_columns(column_names(path)) is not None


def read(
    path: Path,
    *,
    columns: str | Sequence[str] | None = None,
    threshold: float | None = None,
    duplicates: bool | str | Sequence[str] | None = None,
    sources: str | Sequence[str] | None = None,
    prefix: str | None = None,
) -> Matchings:
    """Read a table of scored pairs; the options are those of :meth:`Matchings.from_table`."""
    found = header(path)
    if found is None:
        raise FormatError(f"{path} is no table: it has no line with the names of columns")
    chosen = edge_columns(found.names, columns)
    if chosen is None:
        raise FormatError(
            f"{path} has no columns of ids and scores that are known by name ({', '.join(found.names)}); "
            f"the usual ones are {HEADERS}; say which with columns=",
            setting="columns",
        )
    table = read_columns(path, found, chosen.names[:-1], [chosen.score])
    try:
        return linked(table, chosen, threshold=threshold, duplicates=duplicates, sources=sources, prefix=prefix)
    except InputError as error:
        if error.match is None:
            raise
        raise bad_row(path, found, error.match, error) from None


def write(content: Content, path: Path, *, like: Path | None, delimiter: str | None = None) -> None:
    """Write every match as a pair of records with a probability.

    Where an answer is written that is the confidence of the less certain of the two, else the weight, 1 without any.
    """
    matchings = content.matchings
    ends = matchings.endpoints
    if content.confidence is not None:
        sure = np.nan_to_num(content.confidence(), nan=1.0)
        probability = sure[ends].min(axis=1, initial=1.0)
    else:
        probability = np.minimum(matchings.match_weights, 1.0)
    own = record_columns(matchings)
    names = [name for name in own if name != "unique_id"] + ["unique_id"]
    columns = {f"{name}_{side}": own[name][ends[:, n]] for n, side in enumerate("lr") for name in names}
    columns["match_probability"] = probability.round(6)
    write_columns(path, columns, provenance=content.provenance, delimiter=delimiter)


EDGES = register(
    Format(
        "edges",
        "one scored pair of records per line: [source_l,]id_l,[source_r,]id_r,score, named as Splink does or otherwise",
        (".csv", ".tsv", ".txt", ".parquet"),
        sniff,
        read,
        write,
        partial(losses, where="A table of pairs", sizes=False, coordinates=False),
        answers="clusters",
    )
)
