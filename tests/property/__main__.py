"""Random cells of the catalogue, deeper than pairs and triples: all features at once, other people each time.

    PYTHONPATH=tests python -m property --seconds 600

Ends with exit code 1 if a promise is broken; the seed of a finding is printed with it.
"""

import argparse
import sys
import time
import warnings
from dataclasses import replace

import numpy as np

from catalogue import FACTORS, Cell, fit
from property.promises import SAME, Evidence, broken


def random_cell(rng):
    while True:
        cell = Cell(**{name: values[int(rng.integers(len(values)))] for name, values in FACTORS.items()})
        if cell.is_possible:
            return cell


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=None, help="of the first cell; others follow")
    wanted = parser.parse_args()
    seed = int(np.random.SeedSequence().entropy % 2**31) if wanted.seed is None else wanted.seed
    start, n_cells, n_broken = time.monotonic(), 0, 0
    warnings.filterwarnings("ignore")
    while time.monotonic() - start < wanted.seconds:
        cell = random_cell(np.random.default_rng(seed))
        try:
            found = broken(Evidence(fit(replace(cell, asked=SAME)), seed=seed), cell.asked)
        except Exception as error:
            found = [f"{type(error).__name__}: {error}"]
        for sentence in found:
            print(f"seed {seed}: {cell}: {sentence}", flush=True)
        n_cells, n_broken, seed = n_cells + 1, n_broken + bool(found), seed + 1
    print(f"{n_cells:,} random cells, {n_broken} with a promise that does not hold")
    sys.exit(1 if n_broken else 0)


if __name__ == "__main__":
    main()
