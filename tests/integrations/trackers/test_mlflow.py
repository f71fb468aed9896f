import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from searching import a_search, mlflow_uri, scores
from stores import in_mlflow, runs_in_mlflow

from risingsearch.integrations.trackers import MLflowTracker

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*noload"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def server(tmp_path):
    """Yield the address of a server on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{tmp_path}/served.db"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    with Path("server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        url = f"http://127.0.0.1:{port}"
        while not answers(f"{url}/health"):
            assert process.poll() is None, Path("server.log").read_text()
            time.sleep(0.1)
        yield url
        process.terminate()
        process.wait()


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


@pytest.mark.slow
def test_a_server_gets_all_of_it(server):
    result = a_search(MLflowTracker(server, experiment="digits")).run()
    logged = in_mlflow(uri=server)
    expected = scores(result)
    assert {arm: set(curve) for arm, curve in logged.items()} == {
        arm: set(curve) for arm, curve in expected.items()
    }
    assert in_mlflow("loss", uri=server)[0][1] == [1.0]


def test_runs_have_parameters_and_the_winner_is_registered():
    tracker = MLflowTracker(
        mlflow_uri(), experiment="digits", registered_model="digits"
    )
    result = a_search(tracker, rates=(0.9, 0.5, -1.0)).run()
    client, parent, children = runs_in_mlflow()
    assert parent.data.params["metric"] == "accuracy"
    assert parent.data.params["budget_epochs"] == "24"
    assert parent.data.metrics["best_accuracy"] == result.best_score
    assert parent.info.status == "FINISHED"
    by_arm = {int(run.data.tags["risingsearch.arm"]): run for run in children}
    assert by_arm[0].data.params == {"rate": "0.9", "kind": "plain"}
    assert by_arm[2].info.status == "FAILED"
    assert by_arm[2].data.tags["risingsearch.failure"] == "the rate is negative"
    winner = by_arm[result.best_arm]
    assert winner.data.tags["risingsearch.winner"] == f"epoch {result.best_epoch}"
    [version] = client.search_model_versions("name = 'digits'")
    assert version.run_id == winner.info.run_id
    logged = client.list_artifacts(winner.info.run_id, "checkpoint")
    assert [one.path for one in logged] == ["checkpoint/checkpoint"]
