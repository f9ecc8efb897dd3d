"""How large a dense matrix may be before a sparse or iterative way is taken: one home, with the reasons."""

from __future__ import annotations

__all__ = ["DENSE_ROWS", "EXACT_ROWS", "LANCZOS_WORK", "MATRIX_ENTRIES", "QUICK_ROWS", "VALUES_ROWS"]

# Rows of W up to which one exact eigendecomposition, O(m³), is affordable (a few seconds, 32 MB) and spares all doubt
# about lost copies of multiple eigenvalues.
DENSE_ROWS = 2000
# Rows up to which it is also quicker than the Lanczos method with its check for lost copies …
EXACT_ROWS = 500
# … and about as quick as the block iteration to four digits.
QUICK_ROWS = 150
# Rows up to which all eigenvalues without their vectors take two or three seconds (2,200 rows: 0.8 s, where the Lanczos
# method took 2.6 s for 200 of them).
VALUES_ROWS = 3000
# Entries of an eigenvector matrix, and m·d² of the Lanczos method, beyond which a bound costs more than an answer.
MATRIX_ENTRIES = 2_000_000
LANCZOS_WORK = 50_000_000
