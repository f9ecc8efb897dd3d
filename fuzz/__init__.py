"""Damaged files for every reader, made without end: ``make fuzz SECONDS=60`` (docs/reliability.md)."""
