"""The recipe of docs/scale.md for Spark, in a local session."""

import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from likewise import AdditiveClassifier, TableMetric
from likewise.cli.batch_scoring import ScoringJob
from likewise.io import save_model

pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's own


@pytest.mark.slow
def test_map_in_pandas_gives_the_scores_of_the_model(tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java.")
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"id": np.arange(300), "income": rng.normal(size=300), "region": rng.choice(["n", "s"], 300)})
    X = people.drop(columns="id")
    model = AdditiveClassifier(TableMetric({"income": 0.2}, {"region": 0.1}), penalty=1e-3).fit(
        X, np.where(X["income"] > 0, "yes", "no")
    )
    save_model(model, tmp_path / "model.skops")
    people.to_parquet(tmp_path / "people.parquet", index=False)
    order = ScoringJob((tmp_path / "model.skops").read_bytes())

    def score(batches):
        for batch in batches:
            yield batch[["id"]].reset_index(drop=True).join(order(batch))

    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "70").getOrCreate()
    try:
        table = session.read.parquet(str(tmp_path / "people.parquet"))
        scores = table.mapInPandas(score, "id long, p_no double, p_yes double").collect()
    finally:
        session.stop()
    found = pd.DataFrame(scores, columns=["id", "p_no", "p_yes"]).sort_values("id")
    np.testing.assert_array_equal(found[["p_no", "p_yes"]], model.predict_proba(X))
