"""Chunks of HDF5 datasets, unpacked here and not by the library.

The library trusts what lies in a chunk: of one that unpacks to fewer bytes than it should it copies what lies behind
them in memory, of one with a checksum and no bytes it runs to the end of memory, one that unpacks to gigabytes it
unpacks, and one that is not packed and longer than it should be it writes beyond the memory meant for it (all found by
fuzzing). Here every chunk has the length that the dataset says, or is damage.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync.errors import FormatError

__all__ = ["from_chunks"]

DEFLATE, SHUFFLE, FLETCHER32 = 1, 2, 3
CHECKSUM = 4  # bytes
_MODULUS = 65535


def from_chunks(item: Any, path: Path, what: str) -> NDArray[Any]:
    """Return the values of a dataset that is kept in chunks, with its fill value where none is stored.

    Parameters
    ----------
    item
        The dataset, of plain numbers (`h5py.Dataset`), already weighed.
    what
        How errors call it.
    """
    import h5py

    plan = item.id.get_create_plist()
    filters = [plan.get_filter(number) for number in range(plan.get_nfilters())]
    unknown = [about for about in filters if about[0] not in (DEFLATE, SHUFFLE, FLETCHER32)]
    if unknown:
        called = bytes(unknown[0][3]).decode("ascii", "replace") or unknown[0][0]
        raise FormatError(f"{path}: {what} is packed by {called}, which is not read; pack it by gzip (h5repack)")
    if sum(about[0] == DEFLATE for about in filters) > 1:
        raise FormatError(f"{path}: {what} is packed more than once, which is not read")
    if not item.id.get_type().equal(h5py.h5t.py_create(item.dtype)):
        raise FormatError(f"{path}: {what} holds numbers of an unusual width")
    made = np.full(item.shape, item.fillvalue, dtype=item.dtype)
    length = int(np.prod(item.chunks)) * item.dtype.itemsize
    damaged = FormatError(f"{path}: {what} has a chunk that does not unpack to its {length:,} bytes")
    # Where nothing is packed the library makes room for the length that a chunk should have, and
    # reads into it as many bytes as the file says.
    for place, data, skipped in _stored(item, path, None if filters else length, damaged):
        plain = _unpacked(data, filters, skipped, length)
        if plain is None:
            raise damaged
        block = np.frombuffer(plain, dtype=item.dtype).reshape(item.chunks)
        into = made[tuple(slice(first, first + part) for first, part in zip(place, item.chunks, strict=True))]
        into[...] = block[tuple(slice(0, part) for part in into.shape)]
    return made


def _stored(
    item: Any, path: Path, only: int | None, damaged: FormatError
) -> Iterator[tuple[tuple[int, ...], bytes, int]]:
    """Yield where each chunk that is stored begins, its bytes, and which filters (as bits) were not applied to it.

    `only` is the one length that chunks may have, if there is one.
    """
    size, found = path.stat().st_size, list[Any]()
    if hasattr(item.id, "chunk_iter"):
        item.id.chunk_iter(found.append)
    else:  # one after another, which looks for each from the beginning
        found += [item.id.get_chunk_info(number) for number in range(item.id.get_num_chunks())]
    for about in found:
        if about.size > size:
            raise FormatError(f"{path} is damaged: a chunk of {about.size:,} bytes in a file of {size:,}")
        if only is not None and about.size != only:
            raise damaged
        if all(first < length for first, length in zip(about.chunk_offset, item.shape, strict=True)):
            yield about.chunk_offset, item.id.read_direct_chunk(about.chunk_offset)[1], about.filter_mask


def _unpacked(data: bytes, filters: list[Any], skipped: int, length: int) -> bytes | None:
    """Return the `length` bytes of a chunk; None if there are fewer or more, or they are damaged."""
    for number, (kind, _, values, _) in reversed(list(enumerate(filters))):
        if skipped >> number & 1:
            continue
        if kind == DEFLATE:
            reader = zlib.decompressobj()
            try:
                data = reader.decompress(data, length + CHECKSUM * len(filters) + 1)
            except zlib.error:
                return None
            if not reader.eof:
                return None
        elif kind == FLETCHER32:
            if len(data) < CHECKSUM or not _is_checksum(data[:-CHECKSUM], data[-CHECKSUM:]):
                return None
            data = data[:-CHECKSUM]
        elif values and values[0] > 1:
            data = _in_order(data, int(values[0]))
    return data if len(data) == length else None


def _in_order(data: bytes, width: int) -> bytes:
    """Return what was shuffled: first bytes of all numbers came first, then all second ones, and so on."""
    whole = len(data) // width * width
    return np.frombuffer(data[:whole], np.uint8).reshape(width, -1).T.tobytes() + data[whole:]


def _is_checksum(data: bytes, given: bytes) -> bool:
    """Return whether Fletcher's checksum of 32 bits is the one given, in either order of bytes as HDF5 has had it.

    Examples
    --------
    >>> _is_checksum(b"abcd", bytes.fromhex("c6c42926")), _is_checksum(b"abce", bytes.fromhex("c6c42926"))
    (True, False)
    """
    words = np.frombuffer(data + b"\0" * (len(data) % 2), dtype=">u2").astype(np.int64)
    first = int(words.sum()) % _MODULUS
    second = int((words * (np.arange(len(words), 0, -1) % _MODULUS)).sum()) % _MODULUS
    for stored in (given, b"".join(given[at : at + 2][::-1] for at in (0, 2))):
        low, high = (int.from_bytes(stored[at : at + 2], "little") % _MODULUS for at in (0, 2))
        if (low, high) == (first, second):
            return True
    return False
