"""How large a dense matrix may be before a sparse or iterative way is taken, or some rows at a time: one home."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = [
    "MAX_DENSE_ROWS",
    "MAX_EXACT_ROWS",
    "MAX_LANCZOS_WORK",
    "MAX_ROWS_OF_ALL_VALUES",
    "MAX_VECTOR_ENTRIES",
    "QUICK_ROWS",
    "some_rows",
]

# Rows of W up to which one exact eigendecomposition, O(m³), is affordable (a few seconds, 32 MB)
# and spares all doubt about lost copies of multiple eigenvalues.
MAX_DENSE_ROWS = 2000
# Rows up to which it is also quicker than the Lanczos method with its check for lost copies …
MAX_EXACT_ROWS = 500
# … and about as quick as the block iteration to four digits.
QUICK_ROWS = 150
# Rows up to which all eigenvalues without their vectors take two or three seconds (2,200 rows: 0.8
# s, where the Lanczos method took 2.6 s for 200 of them).
MAX_ROWS_OF_ALL_VALUES = 3000
# Entries of an eigenvector matrix, and m·d² of the Lanczos method, beyond which a bound costs more
# than an answer.
MAX_VECTOR_ENTRIES = 2_000_000
MAX_LANCZOS_WORK = 50_000_000
_AT_A_TIME = 1024  # rows whose intermediate results stay in cache


def some_rows(m: int) -> Iterator[slice]:
    """Yield slices of m rows, one after another: what is made of some rows at a time takes no second large array.

    Examples
    --------
    >>> [rows.stop for rows in some_rows(1500)]
    [1024, 1500]
    """
    for start in range(0, m, _AT_A_TIME):
        yield slice(start, min(start + _AT_A_TIME, m))
