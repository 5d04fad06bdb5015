"""Reading, writing and scaling a metric file, by its number of columns."""

import tempfile
import time
from pathlib import Path

from benchmarks.common import growth, section

COLUMNS = (250, 500, 1_000, 2_000)


def run() -> str:
    from likewise import TableMetric
    from likewise.metric_edits import scale_text
    from likewise.metric_file import MetricFile, read_metric, write_metric

    rows, last = [], None
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "metric.toml"
        for n in COLUMNS:
            names = [f"column {i}" for i in range(n)]
            numeric = dict.fromkeys(names[: n // 2], 0.01)
            metric = TableMetric(numeric, dict.fromkeys(names[n // 2 :], 0.1), missing="category")
            file = MetricFile(metric, how="Written by hand.", protected=())
            times = [
                _processor(work)
                for work in (
                    lambda file=file: write_metric(file, path),
                    lambda: read_metric(path),
                    lambda: scale_text(path, 0.5),
                )
            ]
            rows.append([f"{n:,}", *(f"{1000 * spent:.0f} ms" for spent in times), growth(last, (n, times[1]))])
            last = (n, times[1])
    return section(
        "Metric files",
        ["columns", "write", "read", "scale", "growth of reading"],
        rows,
        "Processor time, the best of three; half of the columns are numbers that may be missing, half are categories.",
    )


def _processor(work) -> float:
    spent = []
    for _ in range(3):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


if __name__ == "__main__":
    print(run())
