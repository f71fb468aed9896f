"""The recipes of docs/earlier-searches.md."""

from types import SimpleNamespace

import pandas as pd
import pytest
from recipes import recipe

from risingsearch.priors import earlier_searches


@pytest.mark.filterwarnings("ignore:.*noload")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_runs_of_mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    import mlflow

    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/mlflow.db")
    mlflow.set_experiment("digits")
    for rate in (0.1, 0.01):
        with mlflow.start_run():
            mlflow.log_params({"rate": rate, "kind": "adam"})
            mlflow.log_metric("loss", rate + 1.0)
    runs = mlflow.search_runs(experiment_names=["digits"])
    [earlier] = earlier_searches(
        recipe("from_mlflow")(runs, "loss"), score="loss", direction="minimize"
    )
    assert earlier.params == [
        {"rate": 0.01, "kind": "adam"},
        {"rate": 0.1, "kind": "adam"},
    ]
    assert earlier.scores.tolist() == [-1.01, -1.1]


def test_runs_of_ray_tune():
    columns = {"training_iteration": [1, 2], "epoch": [0, 1], "time_total_s": [1.0, 2]}
    results = [  # as Tuner.fit returns them
        SimpleNamespace(
            config={"rate": rate, "kind": "adam"},
            metrics_dataframe=pd.DataFrame({**columns, "acc": [rate, 2 * rate]}),
        )
        for rate in (0.1, 0.2)
    ]
    [earlier] = earlier_searches(
        recipe("from_ray")(results, "acc"), score="acc", direction="maximize"
    )
    assert earlier.params == [result.config for result in results]
    assert [curve.tolist() for curve in earlier.curves] == [[0.1, 0.2], [0.2, 0.4]]


def test_runs_of_weights_and_biases():
    runs = [  # as its API returns them
        SimpleNamespace(
            id=name,
            config={"rate": rate, "kind": "adam"},
            scan_history=lambda rate=rate: (
                {"_step": step, "acc": rate * (step + 1), "_runtime": 1.0}
                for step in range(3)
            ),
        )
        for name, rate in (("a", 0.1), ("b", 0.2))
    ]
    [earlier] = earlier_searches(
        recipe("from_wandb")(runs, "acc"), score="acc", direction="maximize"
    )
    assert earlier.params == [run.config for run in runs]
    assert earlier.epochs.tolist() == [3, 3]
