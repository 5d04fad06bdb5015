"""Run every benchmark, one after the other; write `docs/performance.md`, and the table in `docs/scale.md`.

What is finished is kept in ``.benched/``; ``--go-on`` continues a run that was stopped.
"""

import argparse
import importlib
import os
import pkgutil
import platform
import re
import shutil
import time
from pathlib import Path

import benchmarks
from benchmarks.common import PAGE

KEPT, SCALE = Path(".benched"), Path("docs/scale.md")
HEAD = """# Performance

Written by `make bench`. Ratios are of times measured in one run on one machine, one right after the other; absolute
times depend on the machine and its load. This run: {cores} cores, Python {python}.
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--go-on", action="store_true", help="leave out what a run before has finished")
    if not parser.parse_args().go_on:
        shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir(exist_ok=True)
    sections = [HEAD.format(cores=os.cpu_count(), python=platform.python_version())]
    for name in sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__)):
        module = importlib.import_module(f"benchmarks.{name}") if name != "__main__" else None
        if not hasattr(module, "run"):
            continue
        kept = KEPT / f"{name}.md"
        if not kept.exists():
            print(f"{name} ...", end=" ", flush=True)
            start = time.perf_counter()
            text = module.run().strip() + "\n"
            kept.write_text(text, encoding="utf-8")
            print(f"{time.perf_counter() - start:.0f} s", flush=True)
        sections.append(kept.read_text(encoding="utf-8"))
    PAGE.write_text("\n".join(sections), encoding="utf-8")
    body = (KEPT / "cluster.md").read_text(encoding="utf-8").split("\n", 2)[2]
    page = re.sub(
        r"(<!-- begin: cluster -->\n).*?(<!-- end: cluster -->)",
        lambda marks: marks[1] + body + marks[2],
        SCALE.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    SCALE.write_text(page, encoding="utf-8")
    print(f"Wrote {PAGE} and the table in {SCALE}")


if __name__ == "__main__":
    main()
