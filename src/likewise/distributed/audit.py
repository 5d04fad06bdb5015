"""The audit of a Dask DataFrame: every pair of rows, by pairs of buckets.

Four passes over the table: columns are described, a sample is taken, rows are shuffled into buckets, and pairs of
buckets whose bounds do not decide them are searched. Counts are whole numbers and the worst pairs have an order without
ties, so the result does not depend on partitions or workers. Importing this module imports numba; callers do so inside
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from likewise._typing import FloatArray, IntArray
from likewise.auditing.audit import Audit, check_limits, sampled_pairs, tabulate
from likewise.distributed.buckets import (
    SAMPLE_PER_BUCKET,
    BoxedBucket,
    BucketSummary,
    BucketTree,
    OutputReader,
    RowEncoder,
    crossing_pairs,
    n_buckets_for,
    output_unit,
    read_bucket,
    search_pairs,
    shuffle,
    summarise,
)
from likewise.distributed.frames import DaskTable, categories_under, compute, delayed, metric_columns, persist
from likewise.metrics.base import Metric
from likewise.metrics.encoders import TableEncoder, fixed_sample
from likewise.pairs.box_tree import SOME, SearchParameters, build_box_tree, ends_of, search_parameters
from likewise.pairs.model_outputs import ModelOutputs, OutputLabels
from likewise.pairs.points import groups_of
from likewise.pairs.search import Box, SearchGoal, SearchResult, aim_above, settle


def audit(
    model: Any,
    X: Any,
    metric: Metric,
    predictions: Any,
    output_range: tuple[float, float] | None,
    tolerance: float | None,
    thresholds: Sequence[float],
    n_worst: int,
) -> Audit:
    """As `likewise.audit`, for a Dask DataFrame or the path of Parquet files."""
    table, predictions = DaskTable.of(X).with_column(predictions, "predictions")
    names = metric_columns(table, metric, aside=predictions)
    reader = OutputReader.of(model, table, names, predictions, output_range)
    partitions = table.scan(reader.columns, names, categories_under(table, metric, names))
    encoder = RowEncoder(metric.encoder(partitions.digest), partitions.digest, metric)
    weights = metric.weights_of(encoder.encoder)
    scales = encoder.template.scales(weights)

    n = len(partitions)
    sample, pairs = fixed_sample(n, max(SOME, SAMPLE_PER_BUCKET * n_buckets_for(n))), np.stack(sampled_pairs(n))
    chosen = np.union1d(sample, pairs)
    rows = partitions.rows_at(chosen)
    points = encoder.points(rows[names])
    as_tables = isinstance(encoder.encoder, TableEncoder)
    outputs, probable = reader.outputs(rows, as_tables=as_tables)
    in_sample = np.searchsorted(chosen, sample)
    X_sample, outputs_sample = points.X[in_sample], outputs[in_sample]

    tree = BucketTree.fit(X_sample, outputs_sample, scales, points.kinds, n_buckets_for(n))
    buckets = shuffle(partitions, reader, encoder, tree, outputs.shape[1], as_tables)
    unit = 1.0 if probable else output_unit(buckets)
    labels = OutputLabels.of(model, predictions, output_range, probable=probable)
    tolerance, above = check_limits(tolerance, thresholds, unit, shares=labels.are_shares)
    some = slice(None, None, -(-len(sample) // SOME))
    ends = ends_of(encoder.template.X)
    bearings = search_parameters(
        X_sample[some], outputs_sample[some] / unit, ends, scales / unit, metric.p, encoder.template.kinds
    )
    boxes = _Boxes.of(buckets, len(points.kinds), unit, bearings, tolerance / unit, n_worst)
    found = boxes.search(boxes.aim(tolerance / unit, n_worst))
    aims = {each: aim_above(found, max(tolerance, each) / unit) for each in above}
    n_above = {each: 0 if aim is None else boxes.search(aim).n_violations for each, aim in aims.items()}

    positions, places = np.unique(found.pairs, return_inverse=True)
    worst = encoder.points(partitions.rows_at(positions, names)) if len(positions) else encoder.template
    population = ModelOutputs(worst, boxes.outputs_at(positions), unit, labels)
    violations, columns = tabulate(worst, places.reshape(-1, 2), found, population, weights)
    a, b = np.searchsorted(chosen, pairs)
    differences = unit * np.abs(outputs[a] / unit - outputs[b] / unit).sum(axis=1)
    return Audit(
        n_pairs=n * (n - 1) // 2,
        n_violations=found.n_violations,
        max_excess=unit * float(found.differences[0] - found.distances[0]) if found.n_violations else 0.0,
        max_ratio=found.max_ratio,
        violations=violations.assign(row_a=found.pairs[:, 0], row_b=found.pairs[:, 1]),
        n_above=n_above,
        differences=columns,
        sample=pd.DataFrame(
            {"difference": differences, "distance": weights.distances(points.people.rows[a], points.people.rows[b])}
        ),
        n_samples=n,
        n_distinct=sum(summary.n_rows for summary in boxes.summaries),
        n_compared=found.n_compared,
        tolerance=tolerance,
        metric=metric,
    )


class _Boxes(NamedTuple):
    """Buckets as trees of boxes, which the workers keep: they are searched for each threshold."""

    boxed: list[Any]
    summaries: list[BucketSummary]
    bearings: SearchParameters

    @classmethod
    def of(
        cls, buckets: list[Any], n_columns: int, unit: float, bearings: SearchParameters, tolerance: float, n_worst: int
    ) -> _Boxes:
        """Put the people of all buckets in boxes; nothing is left in `buckets`."""
        box = delayed(partial(_box, n_columns, unit, bearings))
        boxed = persist([box(bucket) for bucket in buckets])
        buckets.clear()  # the workers may forget them
        known: list[BucketSummary | None] = compute([delayed(summarise)(each, tolerance, n_worst) for each in boxed])
        kept = [(each, summary) for each, summary in zip(boxed, known, strict=True) if summary is not None]
        return cls([each for each, _ in kept], [summary for _, summary in kept], bearings)

    def aim(self, tolerance: float, n_worst: int) -> SearchGoal:
        """What to look for, at first."""
        return SearchGoal(
            tolerance, n_worst, *settle([summary.guess for summary in self.summaries], tolerance, n_worst)
        )

    def search(self, aim: SearchGoal) -> SearchResult:
        """All pairs."""
        pairs = crossing_pairs([summary.root for summary in self.summaries], self.bearings, aim.tolerance)
        (found,) = compute([search_pairs(self.boxed, pairs, aim)])
        return found  # type: ignore[no-any-return]

    def outputs_at(self, positions: IntArray) -> FloatArray:
        """Outputs of the people at some sorted positions, first rows of distinct people: those that were compared."""
        parts = compute([delayed(partial(_outputs, positions))(bucket) for bucket in self.boxed])
        places, outputs = (np.concatenate(lines) for lines in zip(*parts, strict=True))
        return np.asarray(outputs[np.argsort(places)])


def _outputs(positions: IntArray, bucket: BoxedBucket) -> tuple[IntArray, FloatArray]:
    """Which of some sorted positions are in a bucket, and the outputs there."""
    tree = bucket.box.tree
    here = np.isin(tree.order, positions)
    return np.searchsorted(positions, tree.order[here]), tree.answers[:, here].T


def _box(n_columns: int, unit: float, bearings: SearchParameters, table: pd.DataFrame) -> BoxedBucket | None:
    """Collapse the equal people of a bucket, and put them in boxes."""
    if not len(table):
        return None
    bucket = read_bucket(table, n_columns)
    groups = groups_of(np.column_stack([np.nan_to_num(bucket.X, nan=np.inf), bucket.outputs]))
    total: Any = np.zeros(len(groups.first), dtype=np.int64)
    np.add.at(total, groups.of_row, bucket.times)
    outputs: FloatArray = bucket.outputs[groups.first] / unit
    tree = build_box_tree(bucket.X[groups.first], outputs, bearings)
    position = bucket.position[groups.first]
    return BoxedBucket(Box(tree._replace(order=position[tree.order]), total[tree.order]))
