"""What an earlier release has written is read by this one, and gone on with."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import recorded
from recorded_models import LastUnopened, Rising

from risingsearch import InvalidParameterError, RisingSearch, StateError
from risingsearch.cli.main import main
from risingsearch.policies import UCB1, ThompsonGaussian
from risingsearch.scheduling.policy_choice import FIRST_AUTO
from risingsearch.scripts.identity import last

HERE = Path(__file__).parent
LAYOUTS = sorted(path.name for path in HERE.iterdir() if (path / "auto").is_dir())
SEARCHES = ["auto", "failures", "objects", "pickled", "proposer", "seconds", "threads"]
SCHEDULERS = ["ask", "auto", "cost", "cure-ucb", "draws"]


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return HERE / request.param


def copied(source, tmp_path):
    """Return a copy of a directory, and what its search comes to."""
    run_dir = tmp_path / source.name
    shutil.copytree(source, run_dir)
    for path in (run_dir, *run_dir.rglob("*")):  # a checkout may be a group's
        path.chmod(path.stat().st_mode & ~0o022)
    return run_dir, json.loads((run_dir / "expected.json").read_text())


OBJECTS = {
    "objects": {"policy": ThompsonGaussian, "proposer": LastUnopened()},
    "proposer": {"proposer": recorded.PROPOSER},
}


def check_goes_on(name, search, expected):
    before = recorded.outcome_of(search.result())
    assert before == expected[: len(before)]
    assert 0 < len(before) < len(expected)
    after = recorded.outcome_of(search.run())
    if name == "seconds":  # costs are measured anew
        assert len(after) == len(expected)
    else:
        assert after == expected


@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_is_resumed(layout, name, with_state, tmp_path):
    run_dir, expected = copied(layout / name, tmp_path)
    if not with_state:
        (run_dir / "state.json").unlink()
    with ThreadPoolExecutor(3) as threads:
        given = dict(OBJECTS.get(name, {}))
        if name == "threads":
            given["executor"] = threads
        search = RisingSearch.resume(run_dir, Rising(), **given)
        check_goes_on(name, search, expected)


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_call_goes_on(layout, name, tmp_path):
    run_dir, expected = copied(layout / name, tmp_path)
    with ThreadPoolExecutor(3) as threads:
        more = {"executor": threads} if name == "threads" else {}
        search = recorded.search(name, run_dir, **more)
        check_goes_on(name, search, expected)


@pytest.mark.parametrize("name", sorted(set(SEARCHES) - OBJECTS.keys()))
def test_a_search_is_shown(layout, name, tmp_path):
    run_dir, expected = copied(layout / name, tmp_path)
    shown = recorded.outcome_of(RisingSearch.saved_result(run_dir))
    assert shown == expected[: len(shown)]
    assert shown


def test_an_object_is_asked_for(layout, tmp_path):
    run_dir, _ = copied(layout / "objects", tmp_path)
    with pytest.raises(InvalidParameterError, match="ThompsonGaussian: give policy"):
        RisingSearch.resume(run_dir, Rising())


def test_another_object_is_refused(layout, tmp_path):
    run_dir, _ = copied(layout / "objects", tmp_path)
    with pytest.raises(StateError, match="UCB1"):
        recorded.search("objects", run_dir, policy=UCB1)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_goes_on(layout, name):
    saved = json.loads((layout / "scheduler_states.json").read_text())[name]
    scheduler = recorded.scheduler(name)
    scheduler.load_state_dict(saved["state"])
    jobs = list(scheduler.in_flight)
    assert [job.id for job in jobs] == saved["jobs"]
    assert recorded.play(scheduler, jobs) == saved["asked"]


def test_a_scheduler_saves_the_same_again(layout):
    for name, saved in json.loads(
        (layout / "scheduler_states.json").read_text()
    ).items():
        scheduler = recorded.scheduler(name)
        scheduler.load_state_dict(saved["state"])
        del saved["state"]["waiting"]  # a trace of asks in vain, no part of it now
        assert scheduler.state_dict() == saved["state"]


def test_a_scikit_learn_search_is_there_again(layout, tmp_path):
    run_dir, expected = copied(layout / "sklearn", tmp_path)
    model, X, y = recorded.classifier_search(run_dir)
    model.fit(X, y)
    assert recorded.outcome_of(model) == expected
    np.testing.assert_array_equal(
        model.best_estimator_.predict(X),
        recorded.classifier_search()[0]
        .set_params(policy=FIRST_AUTO)
        .fit(X, y)
        .predict(X),
    )
    assert model.continue_search(4).n_epochs_ == 16


def test_a_sweep_is_resumed(layout, tmp_path, monkeypatch, capsys):
    run_dir, expected = copied(layout / "sweep", tmp_path)
    shutil.copy(HERE / "train.py", tmp_path)
    monkeypatch.chdir(tmp_path)  # the sweep runs where it is resumed
    assert main(["resume", str(run_dir)]) == 0
    result = RisingSearch.saved_result(run_dir)
    assert recorded.outcome_of(result) == expected
    assert "24" in capsys.readouterr().out


@pytest.mark.parametrize("with_sweep", [True, False])
def test_a_sweep_with_the_first_names_of_its_keys_is_resumed(
    with_sweep, tmp_path, monkeypatch
):
    run_dir, expected = copied(HERE / "first_keys" / "sweep", tmp_path)
    assert '"timeout": 600.0, "retries": 1' in (run_dir / "sweep.json").read_text()
    if not with_sweep:
        (run_dir / "sweep.json").unlink()
    shutil.copy(HERE / "train.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["resume", str(run_dir)]) == 0
    assert recorded.outcome_of(RisingSearch.saved_result(run_dir)) == expected
    sweep = last(run_dir)["sweep"]
    assert (sweep["epoch_timeout"], sweep["max_failures"]) == (600, 1)
    assert sweep.keys().isdisjoint({"timeout", "retries"})


def test_the_same_sweep_goes_on_with_its_keys_of_today(tmp_path, monkeypatch):
    run_dir, expected = copied(HERE / "first_keys" / "sweep", tmp_path)
    shutil.copy(HERE / "train.py", tmp_path)
    monkeypatch.chdir(tmp_path)
    today = {**recorded.SWEEP, "epoch_timeout": 600, "max_failures": 1}
    (tmp_path / "sweep.yaml").write_text(json.dumps(today))
    assert main(["run", "sweep.yaml", "--run-dir", str(run_dir)]) == 0
    assert recorded.outcome_of(RisingSearch.saved_result(run_dir)) == expected
