import json
import os

import numpy as np
import pytest

from risingsearch.errors import PriorError
from risingsearch.priors import earlier_searches

# What Ray Tune 2.60 adds to every result of a trial.
AUTO = {
    "timestamp": 1700000000,
    "checkpoint_dir_name": None,
    "should_checkpoint": True,
    "done": False,
    "trial_id": "ab12_00000",
    "date": "2026-01-01_00-00-00",
    "time_this_iter_s": 2.0,
    "time_total_s": 2.0,
    "pid": 1,
    "hostname": "host",
    "node_ip": "127.0.0.1",
    "time_since_restore": 2.0,
    "iterations_since_restore": 1,
    "experiment_tag": "0_rate=0.1",
}


@pytest.fixture
def write_trial(tmp_path):
    def write(name, config, scores, end="\n"):
        folder = tmp_path / "experiment" / f"train_{name}_0_rate=0.1_2026-01-01"
        folder.mkdir(parents=True)
        (folder / "params.json").write_text(json.dumps(config, indent=2))
        (folder / "params.pkl").write_bytes(b"never unpickled")
        lines = [
            json.dumps(
                {"accuracy": score}
                | AUTO
                | {"training_iteration": epoch, "config": config}
            )
            for epoch, score in enumerate(scores, start=1)
        ]
        (folder / "result.json").write_text("\n".join(lines) + end if lines else "")
        return folder

    return write


def test_trials_of_an_experiment_are_runs(write_trial, tmp_path):
    write_trial("a", {"rate": 0.1, "net": {"depth": 3}}, [0.5, 0.6])
    write_trial("b", {"rate": 0.2, "net": {"depth": 4}}, [0.4])
    (tmp_path / "experiment" / "tuner.pkl").write_bytes(b"never unpickled")
    for path in (tmp_path / "experiment", tmp_path):
        [earlier] = earlier_searches(path)
        assert earlier.name == "experiment"
        assert earlier.params[0] == {"rate": 0.1, "net": {"depth": 3}}
        assert [curve.tolist() for curve in earlier.curves] == [[0.5, 0.6], [0.4]]
        assert earlier.seconds == [2.0, 2.0]


def test_torn_last_line_is_left_out_and_others_are_errors(write_trial, tmp_path):
    folder = write_trial("a", {"rate": 0.1}, [0.5, 0.6], end='\n{"accuracy": 0.7, "tr')
    [earlier] = earlier_searches(tmp_path)
    assert earlier.curves[0].tolist() == [0.5, 0.6]
    results = folder / "result.json"
    results.write_text('{"accuracy": 0.\n' + results.read_text())
    with pytest.raises(PriorError, match=r"result\.json is damaged: line 1"):
        earlier_searches(tmp_path)


def test_text_that_is_torn_inside_a_letter_is_read(write_trial, tmp_path):
    folder = write_trial("a", {"rate": 0.1}, [0.5])
    with (folder / "result.json").open("ab") as file:
        file.write('{"accuracy": 0.7, "note": "é'.encode()[:-1])
    assert earlier_searches(tmp_path)[0].curves[0].tolist() == [0.5]


def test_failed_trials_have_no_curve_and_those_before_a_result_are_left_out(
    write_trial, tmp_path
):
    write_trial("a", {"rate": 0.1}, [0.5])
    (write_trial("b", {"rate": 0.2}, [0.4]) / "error.txt").write_text("Traceback")
    write_trial("c", {"rate": 0.3}, [])
    [earlier] = earlier_searches(tmp_path)
    assert [params["rate"] for params in earlier.params] == [0.1, 0.2]
    assert earlier.epochs.tolist() == [1, 0]


def test_trial_that_went_on_after_an_error_has_not_failed(write_trial, tmp_path):
    folder = write_trial("a", {"rate": 0.1}, [0.5, 0.6])
    (folder / "error.txt").write_text("Traceback")
    again = {"accuracy": 0.7, "training_iteration": 2, "done": True, "config": {}}
    with (folder / "result.json").open("a") as file:
        file.write(json.dumps(again) + "\n")
    assert earlier_searches(tmp_path)[0].curves[0].tolist() == [0.5, 0.7]


def test_parameters_come_from_the_results_where_their_file_is_torn(
    write_trial, tmp_path
):
    folder = write_trial("a", {"rate": 0.1}, [0.5])
    (folder / "params.json").write_text('{"rate": ')
    assert earlier_searches(tmp_path)[0].params == [{"rate": 0.1}]


def test_metric_is_asked_for_where_there_are_several(write_trial, tmp_path):
    folder = write_trial("a", {"rate": 0.1}, [0.5])
    line = {"accuracy": 0.5, "eval": {"loss": 0.2}, "training_iteration": 1}
    (folder / "result.json").write_text(json.dumps(line) + "\n")
    with pytest.raises(PriorError, match="score=, of 'accuracy', 'eval/loss'"):
        earlier_searches(tmp_path)
    [earlier] = earlier_searches(tmp_path, score="eval/loss", direction="minimize")
    assert earlier.scores.tolist() == [-0.2]


def test_diverged_and_huge_scores_are_the_worst(write_trial, tmp_path):
    write_trial("a", {"rate": 0.1}, [0.5, float("nan"), float("inf"), 1e300, 10**400])
    [earlier] = earlier_searches(tmp_path)
    assert np.isnan(earlier.curves[0][1:]).all()
    assert earlier.scores.tolist() == [0.5]


def test_links_out_of_the_folder_are_not_followed(write_trial, tmp_path):
    folder = write_trial("a", {"rate": 0.1}, [0.5])
    other = tmp_path / "other"
    other.mkdir()
    os.symlink(folder, other / "trial")
    with pytest.raises(PriorError, match="is none of them"):
        earlier_searches(other)
    inside = write_trial("b", {"rate": 0.2}, [0.9])
    (inside / "result.json").unlink()
    (inside / "result.json").symlink_to(folder / "result.json")
    with pytest.raises(PriorError, match="symbolic link"):
        earlier_searches(tmp_path / "experiment")


def test_nesting_without_end_is_an_error_and_no_crash(write_trial, tmp_path):
    write_trial("a", {"rate": 0.1}, [0.5])
    deep = write_trial("b", {"rate": 0.2}, [0.5])
    (deep / "params.json").write_text('{"a":' * 150 + "1" + "}" * 150)
    [earlier] = earlier_searches(tmp_path)
    assert earlier.params == [{"rate": 0.1}]
    (deep / "result.json").write_text('{"a":' * 100_000 + "1" + "}" * 100_000 + "\n")
    with pytest.raises(PriorError, match="is damaged"):
        earlier_searches(tmp_path)
