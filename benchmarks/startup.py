"""Start-up time of `import likewise` and `likewise --help`."""

import subprocess
import sys

from benchmarks.common import seconds, section


def run() -> str:
    ways = {
        "`python -c pass`": (["-c", "pass"], ""),
        "`import likewise`": (["-c", "import likewise"], "1.5 s"),
        "`from likewise import SmoothedClassifier`": (["-c", "from likewise import SmoothedClassifier"], ""),
        "`from sklearn.ensemble import RandomForestClassifier`": (
            ["-c", "from sklearn.ensemble import RandomForestClassifier"],
            "",
        ),
        "`likewise --help`": (["-m", "likewise", "--help"], "1 s"),
    }
    rows = []
    for name, (arguments, allowed) in ways.items():
        # The best of three: the first may find nothing in the file cache.
        best = min(
            seconds(lambda a=arguments: subprocess.run([sys.executable, *a], check=True, capture_output=True))
            for _ in range(3)
        )
        rows.append([name, f"{best:.2f} s", allowed])
    return section("Start-up time", ["what", "time", "allowed"], rows, "Heavy modules are imported on first use.")


if __name__ == "__main__":
    print(run())
