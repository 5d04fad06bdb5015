"""The audit of a Dask DataFrame: every pair of rows, by pairs of buckets.

Four passes over the table: columns are described, a sample is taken, rows are shuffled into buckets, and pairs of
buckets that may hold a violation are searched. Counts are whole numbers and the worst pairs have an order without
ties, so the result does not depend on partitions or workers. Importing this module imports numba; callers do so inside
functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from likewise._subsample import fixed_sample, random_pairs
from likewise._typing import FloatArray, IntArray
from likewise.auditing.audit import N_SAMPLED, Audit, as_audit, check_limits
from likewise.distributed.buckets import (
    SAMPLE_PER_BUCKET,
    BoxedBucket,
    BoxedBuckets,
    BucketTree,
    OutputReader,
    RowEncoder,
    n_buckets_for,
    output_unit,
    read_bucket,
    shuffle,
)
from likewise.distributed.cluster import compute, delayed, persist
from likewise.distributed.frames import DaskTable, categories_under, metric_columns
from likewise.exceptions import InvalidInputError
from likewise.metrics.base import Metric
from likewise.pairs.box_search import count_above
from likewise.pairs.box_tree import (
    SLOPE_SAMPLE,
    SearchParameters,
    build_box_tree,
    column_ranges,
    parts_of,
    search_parameters,
)
from likewise.pairs.model_outputs import ModelOutputs, OutputLabels
from likewise.pairs.points import groups_of


def audit(
    model: Any,
    X: Any,
    metric: Metric,
    predictions: Any,
    output_range: tuple[float, float] | None,
    tolerance: float | None,
    thresholds: Sequence[float],
    n_worst: int,
    favourable: Any,
) -> Audit:
    """As `likewise.audit`, for a Dask DataFrame or the path of Parquet files."""
    table, predictions = DaskTable.of(X).with_column(predictions, "predictions")
    names = metric_columns(table, metric, aside=predictions)
    reader = OutputReader.of(model, table, names, predictions, output_range)
    partitions = table.scan(reader.columns, names, categories_under(table, metric, names))
    bound = metric.bind(metric.encoder(partitions.digest))
    encoder = RowEncoder(bound.schema, partitions.digest, bound)
    if encoder.template.splits is None:
        name = bound.schema.names[next(iter(bound.tables))]
        raise InvalidInputError(
            f"metric must have groups in place of distances between the categories of {name!r} for a table in "
            "partitions: these distances are not a sum of mismatches, or of too many categories to find one, so every "
            "pair would have to be compared. Use groups, or take up to 10,000 rows as a pandas DataFrame."
        )
    scales = encoder.template.scales

    n = len(partitions)
    sample = fixed_sample(n, max(SLOPE_SAMPLE, SAMPLE_PER_BUCKET * n_buckets_for(n)))
    pairs = np.stack(random_pairs(n, N_SAMPLED))
    chosen = np.union1d(sample, pairs)
    rows = partitions.rows_at(chosen)
    reader.check_known(rows)
    points = encoder.points(rows[names])
    outputs, probable = reader.outputs(rows, as_tables=encoder.reads_tables)
    in_sample = np.searchsorted(chosen, sample)
    X_sample, outputs_sample = points.X[in_sample], outputs[in_sample]

    tree = BucketTree.fit(X_sample, outputs_sample, scales, points.kinds, n_buckets_for(n))
    buckets = shuffle(partitions, reader, encoder, tree, outputs.shape[1])
    unit = 1.0 if probable else output_unit(buckets)
    labels = OutputLabels.of(model, predictions, output_range, probable=probable)
    tolerance, above = check_limits(tolerance, thresholds, unit, shares=labels.are_shares)
    some = slice(None, None, -(-len(sample) // SLOPE_SAMPLE))
    ends = column_ranges(encoder.template.X)
    parameters = search_parameters(
        X_sample[some], outputs_sample[some] / unit, ends, scales / unit, metric.p, encoder.template.kinds
    )
    box = delayed(partial(_box, len(points.kinds), unit, parameters))
    boxed = persist([box(bucket) for bucket in buckets])
    buckets.clear()  # so that the workers can release them
    boxes = BoxedBuckets.of(boxed, parameters, tolerance / unit, n_worst)
    result = boxes.search(boxes.goal(tolerance / unit, n_worst))
    counts = count_above([max(tolerance, each) / unit for each in above], result, boxes.search)

    positions, places = np.unique(result.pairs, return_inverse=True)
    worst = encoder.points(partitions.rows_at(positions, names)) if len(positions) else encoder.template
    model_outputs = ModelOutputs(worst, _outputs_at(boxes, positions), unit, labels)
    a, b = np.searchsorted(chosen, pairs)
    sampled = points.people.rows
    differences = unit * np.abs(outputs[a] / unit - outputs[b] / unit).sum(axis=1)
    sample_of_pairs = pd.DataFrame({"difference": differences, "distance": bound.distances(sampled[a], sampled[b])})
    others: dict[str, Any] = {
        "tolerance": tolerance,
        "n_above": dict(zip(above, counts, strict=True)),
        "sample": sample_of_pairs,
    }
    others |= {"metric": metric, "n_distinct": sum(summary.n_rows for summary in boxes.summaries)}
    return as_audit(result, n, model_outputs, places.reshape(-1, 2), result.pairs, favourable, **others)


def _box(n_columns: int, unit: float, parameters: SearchParameters, table: pd.DataFrame) -> BoxedBucket | None:
    """Group the equal people of a bucket, and build their box tree."""
    if not len(table):
        return None
    bucket = read_bucket(table, n_columns)
    groups = groups_of(np.column_stack([np.nan_to_num(bucket.X, nan=np.inf), bucket.outputs]))
    total: Any = np.zeros(len(groups.first), dtype=np.int64)
    np.add.at(total, groups.of_row, bucket.times)
    X, outputs = bucket.X[groups.first], np.asarray(bucket.outputs[groups.first] / unit)
    return BoxedBucket(build_box_tree(X, outputs, parameters, total, bucket.position[groups.first]))


def _outputs_at(boxes: BoxedBuckets, positions: IntArray) -> FloatArray:
    """Outputs of the people at some sorted positions, which must be first rows of distinct people."""
    parts = compute([delayed(partial(_outputs, positions))(bucket) for bucket in boxes.buckets])
    places, outputs = (np.concatenate(lines) for lines in zip(*parts, strict=True))
    return np.asarray(outputs[np.argsort(places)])


def _outputs(positions: IntArray, bucket: BoxedBucket) -> tuple[IntArray, FloatArray]:
    """Which of some sorted positions are in a bucket, and the outputs there."""
    tree = bucket.tree
    here = np.isin(tree.order, positions)
    return np.searchsorted(positions, tree.order[here]), parts_of(tree)[1][:, here].T
