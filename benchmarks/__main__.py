"""Run every benchmark, one after the other, and write `docs/performance.md`."""

import importlib
import os
import pkgutil
import platform
from pathlib import Path

import benchmarks

HEAD = """# Performance

Written by `make bench`. Ratios are of times measured in one run on one machine, one right after the other; absolute
times depend on the machine and on what else it was doing. This run: {cores} cores, Python {python}.
"""


def main() -> None:
    sections = [HEAD.format(cores=os.cpu_count(), python=platform.python_version())]
    for name in sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__)):
        module = importlib.import_module(f"benchmarks.{name}") if name != "__main__" else None
        if hasattr(module, "run"):
            print(f"{name} ...", flush=True)
            sections.append(module.run().strip() + "\n")
    Path("docs/performance.md").write_text("\n".join(sections))
    print("Wrote docs/performance.md")


if __name__ == "__main__":
    main()
