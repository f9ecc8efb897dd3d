"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import accurate, fast, matchals, matcheig, nmfsync, sparse_stiefel, spectral, union_find

__all__ = ["accurate", "fast", "matchals", "matcheig", "nmfsync", "sparse_stiefel", "spectral", "union_find"]
