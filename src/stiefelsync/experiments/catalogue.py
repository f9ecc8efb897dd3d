"""All experiments by name."""

from __future__ import annotations

from stiefelsync.errors import unknown_name
from stiefelsync.experiments.convergence import CONVERGENCE
from stiefelsync.experiments.experiment import Experiment
from stiefelsync.experiments.house import HOUSE
from stiefelsync.experiments.house_ablation import HOUSE_ABLATION
from stiefelsync.experiments.house_matches import HOUSE_MATCHES
from stiefelsync.experiments.powers import POWERS
from stiefelsync.experiments.sparsity import SPARSITY
from stiefelsync.experiments.synthetic import SYNTHETIC
from stiefelsync.experiments.synthetic_ablation import SYNTHETIC_ABLATION

__all__ = ["ALL", "EXPERIMENTS", "find_experiments"]

ALL = "all"

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        HOUSE,
        HOUSE_MATCHES,
        SYNTHETIC,
        HOUSE_ABLATION,
        SYNTHETIC_ABLATION,
        POWERS,
        SPARSITY,
        CONVERGENCE,
    )
}


def find_experiments(name: str) -> list[Experiment]:
    """Return the experiment of that name, or all of them, or say which names there are.

    Examples
    --------
    >>> len(find_experiments("all")), find_experiments("house")[0].title
    (8, 'Quantitative results on the CMU house sequence')
    """
    if name == ALL:
        return list(EXPERIMENTS.values())
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, [*EXPERIMENTS, ALL])
    return [EXPERIMENTS[name]]
