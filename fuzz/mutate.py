"""Damage to bytes, the same for the same seed on every machine."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

__all__ = ["damaged"]

_EDGES = [
    0,
    1,
    2,
    7,
    8,
    100,
    2**7,
    2**8 - 1,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
_NUMBER = re.compile(rb"-?\d+")
MOST = 2**20  # bytes of a case


def damaged(data: bytes, rng: random.Random, words: Sequence[bytes], other: bytes) -> bytes:
    """Return a file with one to eight kinds of damage; `other` is a sound file to take pieces of."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 8))):
        rng.choice(_WAYS)(made, rng, words, other)
    return bytes(made[:MOST])


def _at(made: bytearray, rng: random.Random) -> int:
    return rng.randrange(len(made) + 1)


def _flip(made: bytearray, rng: random.Random, *_: object) -> None:
    if made:
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)


def _byte(made: bytearray, rng: random.Random, *_: object) -> None:
    if made:
        made[rng.randrange(len(made))] = rng.randrange(256)


def _edge(made: bytearray, rng: random.Random, *_: object) -> None:
    """Put a number at the edge of some type over what is there, either end first."""
    width = rng.choice((1, 2, 4, 8))
    value = (rng.choice(_EDGES) + rng.choice((-1, 0, 0, 1))) % 2 ** (8 * width)
    at = _at(made, rng)
    made[at : at + width] = value.to_bytes(width, rng.choice(("little", "big")))


def _number(made: bytearray, rng: random.Random, *_: object) -> None:
    """Write another number over one that stands in digits."""
    found = list(_NUMBER.finditer(made))
    if found:
        spot = rng.choice(found)
        value = rng.choice((*_EDGES, rng.randrange(20), 10**30)) * rng.choice((1, 1, -1))
        made[spot.start() : spot.end()] = str(value).encode()


def _cut(made: bytearray, rng: random.Random, *_: object) -> None:
    del made[_at(made, rng) :]


def _drop(made: bytearray, rng: random.Random, *_: object) -> None:
    at = _at(made, rng)
    del made[at : at + rng.choice((1, 2, 4, 16, 64, 512))]


def _repeat(made: bytearray, rng: random.Random, *_: object) -> None:
    at = _at(made, rng)
    piece = made[at : at + rng.choice((1, 4, 16, 64, 512))]
    made[at:at] = piece * rng.choice((1, 2, 10))


def _word(made: bytearray, rng: random.Random, words: Sequence[bytes], _: bytes) -> None:
    if words:
        at = _at(made, rng)
        word = rng.choice(words)
        made[at : at + rng.choice((0, len(word)))] = word


def _splice(made: bytearray, rng: random.Random, _: Sequence[bytes], other: bytes) -> None:
    at, begin = _at(made, rng), rng.randrange(len(other) + 1)
    piece = other[begin : begin + rng.choice((4, 16, 64, 512, len(other)))]
    made[at : at + rng.choice((0, len(piece)))] = piece


def _swap(made: bytearray, rng: random.Random, *_: object) -> None:
    a, b, length = _at(made, rng), _at(made, rng), rng.choice((1, 4, 8, 32))
    made[a : a + length], made[b : b + length] = made[b : b + length], made[a : a + length]


_WAYS = (_flip, _byte, _byte, _edge, _edge, _number, _cut, _drop, _repeat, _word, _splice, _swap)
