"""Compiled inner loops, optional: C sources, and the library that the build makes of them."""
