import pytest

from risingsearch.errors import PriorError
from risingsearch.priors import earlier_searches

EXPERIMENT = """artifact_location: mlflow-artifacts:/{number}
creation_time: 1700000000000
experiment_id: '{number}'
last_update_time: 1700000000000
lifecycle_stage: {stage}
name: {name}
"""
RUN = """artifact_uri: mlflow-artifacts:/0/{name}/artifacts
end_time: 1700000001000
entry_point_name: ''
experiment_id: '0'
lifecycle_stage: {stage}
run_id: {name}
run_name: quiet-hare-1
run_uuid: {name}
source_name: ''
source_type: 4
source_version: ''
start_time: 1700000000000
status: {status}
tags: []
user_id: someone
"""
FINISHED, FAILED = 3, 4


@pytest.fixture
def store(tmp_path):
    """Return two functions, to write an experiment and to write a run in it."""

    def experiment(number=0, name="Default", stage="active"):
        folder = tmp_path / "mlruns" / str(number)
        folder.mkdir(parents=True)
        text = EXPERIMENT.format(number=number, name=name, stage=stage)
        (folder / "meta.yaml").write_text(text)
        return folder

    def run(folder, name, params, metrics, status=FINISHED, stage="active"):
        folder = folder / name
        for kind, values in (("params", params), ("metrics", metrics)):
            (folder / kind).mkdir(parents=True)
            for key, value in values.items():
                (folder / kind / key).parent.mkdir(exist_ok=True)
                (folder / kind / key).write_text(value)
        text = RUN.format(name=name, status=status, stage=stage)
        (folder / "meta.yaml").write_text(text)
        return folder

    return experiment, run


def metric(*scores, step=1):
    lines = [f"1700000000{i} {score} {i * step}\n" for i, score in enumerate(scores)]
    return "".join(lines)


def test_runs_of_every_experiment_are_read(store, tmp_path):
    experiment, run = store
    first, second = experiment(0), experiment(7, name="resnet")
    params = {"rate": "0.1", "depth": "3", "nesterov": "True", "cap": "None"}
    run(first, "a", params, {"acc": metric(0.5, 0.6)})
    run(second, "b", {"kind": "adam\n"}, {"acc": metric(0.7)})
    (tmp_path / "mlruns" / "models").mkdir()
    one, two = earlier_searches(tmp_path / "mlruns")
    assert (one.name, two.name) == ("Default", "resnet")
    assert one.params == [{"rate": 0.1, "depth": 3, "nesterov": True, "cap": None}]
    assert one.curves[0].tolist() == [0.5, 0.6]
    assert two.params == [{"kind": "adam"}]
    assert earlier_searches(second)[0].params == two.params


def test_failed_deleted_and_parent_runs(store):
    experiment, run = store
    folder = experiment()
    run(folder, "a", {"rate": "1"}, {"acc": metric(0.5)})
    run(folder, "b", {"rate": "2"}, {"acc": metric(0.5)}, status=FAILED)
    run(folder, "c", {"rate": "3"}, {"acc": metric(0.5)}, stage="deleted")
    run(folder, "parent", {"rate": "4"}, {})
    [earlier] = earlier_searches(folder)
    assert [params["rate"] for params in earlier.params] == [1, 2]
    assert earlier.epochs.tolist() == [1, 0]


def test_scores_are_in_the_order_of_their_steps(store):
    experiment, run = store
    folder = experiment()
    run(folder, "a", {"rate": "1"}, {"acc": "1 0.6 20\n2 0.5 10\n3 0.7 20\n"})
    run(folder, "b", {"rate": "2"}, {"acc": metric(0.1, 0.3, 0.2, step=0)})
    run(folder, "c", {"rate": "3"}, {"acc": "1 0.4\n2 0.5\n"})
    run(folder, "d", {"rate": "4"}, {"acc": "1 0.4 0 train abc\n2 0.5 1 tra"})
    [earlier] = earlier_searches(folder)
    expected = [[0.5, 0.7], [0.1, 0.3, 0.2], [0.4, 0.5], [0.4]]
    assert [curve.tolist() for curve in earlier.curves] == expected


def test_metric_is_asked_for_where_there_are_several(store):
    experiment, run = store
    folder = experiment()
    metrics = {"acc": metric(0.5), "val/loss": metric(0.2)}
    run(folder, "a", {"rate": "1"}, metrics)
    with pytest.raises(PriorError, match="score=, of 'acc', 'val/loss'"):
        earlier_searches(folder)
    [earlier] = earlier_searches(folder, score="val/loss", direction="minimize")
    assert earlier.scores.tolist() == [-0.2]


def test_deleted_experiments_and_empty_ones_are_left_out(store, tmp_path):
    experiment, run = store
    run(experiment(1, stage="deleted"), "a", {"rate": "1"}, {"acc": metric(0.5)})
    experiment(2)
    with pytest.raises(PriorError, match="has none in its folders"):
        earlier_searches(tmp_path / "mlruns")


@pytest.mark.parametrize("text", ["what is this\n", "1 0.5 0 a b c d\n", "1 0.5\0 0\n"])
def test_junk_in_a_metric_is_one_error(store, text):
    experiment, run = store
    folder = experiment()
    run(folder, "a", {"rate": "1"}, {"acc": text})
    with pytest.raises(PriorError):
        earlier_searches(folder)


def test_links_are_not_followed(store, tmp_path):
    experiment, run = store
    folder = experiment()
    secret = tmp_path / "secret"
    secret.write_text("0.5")
    run(folder, "a", {"rate": "1"}, {"acc": metric(0.5)})
    (folder / "a" / "params" / "secret").symlink_to(secret)
    [earlier] = earlier_searches(folder)
    assert earlier.params == [{"rate": 1}]
