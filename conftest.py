"""Examples in docstrings are tests wherever their optional dependency is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/stiefelsync/torch/*"]
