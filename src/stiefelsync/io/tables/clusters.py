"""Clusters of records, one record per line: which cluster it is in, whose it is, its own id, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError, InputError
from stiefelsync.io.base import MOST_MATCHES, Content, Format, consistent_labels, follows, losses, names_of, register
from stiefelsync.io.tables.files import Coded, bad_row, column_names, header, read_columns, write_columns
from stiefelsync.matching.matchings import Matchings
from stiefelsync.matching.table import records_of

__all__ = ["CLUSTERS", "record_columns"]

CLUSTER, ID, SOURCE = "cluster_id", "unique_id", "source_dataset"


def sniff(path: Path) -> bool:
    """Return whether a table has columns of clusters and of ids."""
    return {CLUSTER, ID} <= set(column_names(path))


def read(path: Path) -> Matchings:
    """Read ``cluster_id,source_dataset,unique_id``; every two records of a cluster are a match.

    Sources are the objects if no cluster has two records of one of them, else every record is an object of its own.
    """
    found = header(path)
    if found is None or not {CLUSTER, ID} <= set(found.names):
        raise FormatError(f"{path} has no columns {CLUSTER!r} and {ID!r}")
    wanted = [CLUSTER, ID, *([SOURCE] if SOURCE in found.names else [])]
    table = read_columns(path, found, wanted, [])
    try:
        records, where, cluster = records_of(table[CLUSTER], table.get(SOURCE), table[ID])
    except InputError as error:
        if error.match is None:
            raise
        raise bad_row(path, found, error.match, error) from None
    count = np.bincount(cluster, minlength=1)
    if int((count * (count - 1) // 2).sum()) > MOST_MATCHES:
        raise FormatError(f"{path} has clusters so large that they make more than {MOST_MATCHES:,} matches")
    labels = np.empty(len(cluster), dtype=np.int64)
    labels[where] = cluster
    clean = bool(records.duplicate_free.all())
    sizes = np.bincount(records.source, minlength=len(records.sources)) if clean else np.ones(len(records), np.int64)
    names = records.sources if clean and len(records.sources) > 1 else None
    return Matchings.from_labels(labels, sizes, names=names).with_records(records)


def record_columns(matchings: Matchings) -> dict[str, NDArray[Any]]:
    """Return the source and the own id of every point, or the name of its object and its number there."""
    if matchings.records is not None:
        return matchings.records.columns()
    objects = matchings.point_objects
    names = np.array(names_of(matchings), dtype=object)
    return {SOURCE: names[objects], ID: np.arange(matchings.n_points) - matchings.offsets[objects]}


def write(content: Content, path: Path, *, like: Path | None, delimiter: str | None = None) -> None:
    """Write ``cluster_id[,source_dataset],unique_id[,confidence]``, a line for every record, cluster by cluster.

    Clusters are numbered in the order of their first records; a record alone is a cluster of its own. The confidence
    is there where an answer is written.
    """
    matchings, labels = content.matchings, consistent_labels(content)
    alone = np.flatnonzero(labels < 0)
    labels[alone] = labels.max(initial=-1) + 1 + np.arange(len(alone))
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    cluster = number[which]
    order = np.argsort(cluster, kind="stable")
    columns: dict[str, NDArray[Any] | Coded] = {CLUSTER: cluster[order]}
    columns |= {name: column[order] for name, column in record_columns(matchings).items()}
    if content.confidence is not None:
        columns["confidence"] = content.confidence()[order].round(4)
    write_columns(path, columns, provenance=content.provenance, delimiter=delimiter)


def loses(matchings: Matchings) -> list[str]:
    """A table of clusters has no place for weights, and holds all that follows."""
    where = "A table of clusters"
    return losses(matchings, where, weights=False, coordinates=False) + follows(matchings, where)


CLUSTERS = register(
    Format(
        "clusters",
        "one record per line: cluster_id,source_dataset,unique_id[,confidence]",
        (".csv", ".tsv", ".txt", ".parquet"),
        sniff,
        read,
        write,
        loses,
        whole=True,
    )
)
