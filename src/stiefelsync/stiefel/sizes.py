"""How large a dense matrix may be before a sparse or iterative way is taken: one home, with the reasons."""

from __future__ import annotations

__all__ = ["DENSE_ROWS", "EXACT_ROWS", "MATRIX_ENTRIES", "QUICK_ROWS"]

# Rows of W up to which one exact eigendecomposition, O(m³), is affordable (a few seconds, 32 MB) and spares all doubt
# about lost copies of multiple eigenvalues.
DENSE_ROWS = 2000
# Rows up to which it is also quicker than the Lanczos method with its check for lost copies …
EXACT_ROWS = 500
# … and quicker than the block iteration to three digits in single precision.
QUICK_ROWS = 700
# Entries of an eigenvector matrix beyond which the spectral bound of the certificate costs more than an answer.
MATRIX_ENTRIES = 2_000_000
