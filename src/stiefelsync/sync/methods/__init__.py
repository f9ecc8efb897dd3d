"""Every synchronisation method; importing this package registers them all."""

from stiefelsync.sync.methods import matchals, matcheig, nmfsync, spectral, union_find

__all__ = ["matchals", "matcheig", "nmfsync", "spectral", "union_find"]
