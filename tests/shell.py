"""A table of loans, and commands run on files as at a prompt."""

import os

import numpy as np
import pandas as pd
from click.testing import CliRunner

from likewise.cli.main import main

RNG = np.random.default_rng(0)
N = 150
LOANS = pd.DataFrame(
    {
        "id": np.arange(N),
        "income": RNG.lognormal(8, 0.5, N).round(),
        "years": RNG.integers(0, 30, N),
        "region": RNG.choice(["north", "süd", "<b>"], N),
        "race": RNG.choice(["x", "y"], N),
        "constant": 1,
    }
)
LOANS["approved"] = np.where(LOANS.income + 100 * LOANS.years + 800 * (LOANS.race == "x") > 4800, "yes", "no")


def run(place, command, given=None):
    """Run a command, or its words, in a directory; `given` is standard input."""
    before = os.getcwd()
    os.chdir(place)
    try:
        return CliRunner().invoke(main, command.split() if isinstance(command, str) else command, input=given)
    finally:
        os.chdir(before)
