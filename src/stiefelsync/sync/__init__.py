"""The synchroniser."""
