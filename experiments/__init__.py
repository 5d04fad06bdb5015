"""The paper's experiments (Section 6), from data to table and figure; run by ``python -m experiments``."""

from experiments.data import DATASETS
from experiments.run import SEEDS, reproduce
from experiments.summary import summarise
from experiments.trials import Settings, Trial

__all__ = ["DATASETS", "SEEDS", "Settings", "Trial", "reproduce", "summarise"]
