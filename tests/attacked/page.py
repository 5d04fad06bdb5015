"""The section of `docs/trust.md` on the search for violations: every number in it comes from ``results.csv``."""

import re
from pathlib import Path

import pandas as pd

from attacked.cases import cases

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "docs" / "attacked" / "results.csv"
PAGE = ROOT / "docs" / "trust.md"

STRATEGIES = ["random", "borders", "categories", "lines", "slopes", "climbing"]
FIGURES = ["largest excess", "share used", "violations", "worst pair"]
_PLACE = re.compile(r"(<!-- begin: attacked -->\n).*?(<!-- end: attacked -->)", re.DOTALL)


def summed(found):
    """One row per case that was attacked, over all its rounds; `found` has one entry per case and round."""
    runs = pd.DataFrame(found, columns=["case", "seed", *STRATEGIES, *FIGURES]).fillna(dict.fromkeys(STRATEGIES, 0))
    rows = []
    for case in cases():
        own = runs[runs["case"] == case.name]
        if own.empty:
            continue
        worst = own.loc[own["largest excess"].idxmax()]
        rows.append(
            {
                "case": case.name,
                "method": case.method,
                "metric": case.metric,
                "columns": case.columns,
                "outputs": case.outputs,
                "rounds": len(own),
                "pairs": int(own[STRATEGIES].sum().sum()),
                **own[STRATEGIES].sum().astype(int).to_dict(),
                "largest excess": worst["largest excess"],
                "share used": own["share used"].max(),
                "violations": int(own["violations"].sum()),
                "worst pair": worst["worst pair"],
            }
        )
    return pd.DataFrame(rows)


def fill(page, table):
    """The page with the table in its place."""
    return _PLACE.sub(lambda match: f"{match[1]}{section(table)}\n{match[2]}", page)


def section(table):
    """What was tried and what was found, in words and per case."""
    count = table["pairs"].sum()
    by_method = ", ".join(
        f"{_millions(n)} on {method}" for method, n in table.groupby("method", sort=False)["pairs"].sum().items()
    )
    by_tactic = ", ".join(f"{_millions(table[tactic].sum())} {tactic}" for tactic in STRATEGIES)
    above = int(table["violations"].sum())
    words = [
        f"{count:,} pairs over {len(table)} models: {by_method}. By tactic: {by_tactic}. "
        f"Pairs that exceed the promise by more than 1e-12: {above:,}. The largest excess of all is "
        f"{table['largest excess'].max():.1e}.",
        "",
        "| method | metric | columns | outputs | pairs | largest excess | share of the bound used |",
        "|---|---|---|---|---|---|---|",
    ]
    words += [
        f"| {row.method} | {row.metric} | {row.columns} | {row.outputs} | {row.pairs:,} | "
        f"{row.excess:.1e} | {row.share:.4f} |"
        for row in table.rename(columns={"largest excess": "excess", "share used": "share"}).itertuples()
    ]
    return "\n".join(words)


def _millions(n):
    return f"{n / 1e6:,.1f} million"
