"""The presets for airspeed velocity, by time and memory: ``pip install asv && asv run`` (not a dependency)."""

from __future__ import annotations

from stiefelsync import datasets, synchronise


class Presets:
    """Problems drawn afresh from seed 0."""

    params = (["fast", "accurate"], ["30 25 .6 .6", "60 50 1 .7"])
    param_names = ("method", "problem")

    def setup(self, method: str, problem: str) -> None:
        """Draw the problem."""
        k, d, observed, error = problem.split()
        self.universe = int(d)
        self.problem, _ = datasets.synthetic(int(d), int(k), float(observed), float(error), rng=0)

    def time_synchronise(self, method: str, problem: str) -> None:
        """Seconds."""
        synchronise(self.problem, self.universe, method=method)

    def peakmem_synchronise(self, method: str, problem: str) -> None:
        """Peak memory."""
        synchronise(self.problem, self.universe, method=method)
