"""The paper's experiments (Section 6), from data to table and figure, in cells that are computed once."""

from likewise.experiments.problems import DATASETS
from likewise.experiments.run import SEEDS, reproduce
from likewise.experiments.summary import summarise
from likewise.experiments.trials import Settings, Trial

__all__ = ["DATASETS", "SEEDS", "Settings", "Trial", "reproduce", "summarise"]
