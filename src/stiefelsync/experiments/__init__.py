"""The paper's experiments, one file per figure: run → records, evaluate, plot."""

from stiefelsync.experiments.catalogue import EXPERIMENTS
from stiefelsync.experiments.experiment import Experiment, Settings, Verdict
from stiefelsync.experiments.records import Record, Store
from stiefelsync.experiments.reproduce import Finding, plan, reproduce

__all__ = ["EXPERIMENTS", "Experiment", "Finding", "Record", "Settings", "Store", "Verdict", "plan", "reproduce"]
