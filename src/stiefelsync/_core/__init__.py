"""Compiled inner loops: C sources, the table of what they take and return, and the one way to call them."""
