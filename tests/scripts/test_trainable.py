"""A script trains arm by arm, and whatever it does wrong is a failure with a reason."""

import json
import math
import shutil
import sys
import textwrap
import threading
import time

import pytest

from risingsearch.arms import Job
from risingsearch.errors import RunDirError, ScriptError, SetupError
from risingsearch.scripts.living import LivingTrainable
from risingsearch.scripts.trainable import (
    ArchivedTrainable,
    CommandTrainable,
    checkpoint_name,
)
from risingsearch.search import training as training_job

GOOD = """
    import json, os, pathlib
    state = pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"], "epoch")
    epoch = int(state.read_text()) if state.exists() else 0
    for _ in range(int(os.environ["RISINGSEARCH_EPOCHS"])):
        epoch += 1
        state.write_text(str(epoch))
        print("loss is falling")
        print(json.dumps({"epoch": epoch, "score": epoch / 10, "loss": 1 / epoch}))
"""


@pytest.fixture
def training(tmp_path):
    """Return a trainable that runs a program, and its first arm."""

    def make(program, *arguments, **options):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(program))
        command = [sys.executable, str(script), *arguments]
        own = CommandTrainable(command, tmp_path / "arms", **options)
        own.arms[77] = 4
        return own, own.start({"lr": 0.1, "name": "a b; $HOME"}, 77)

    return make


@pytest.mark.parametrize(
    "instead", ["pass", "os.symlink('/etc', folder)", "open(folder, 'w').close()"]
)
def test_a_script_that_removes_its_checkpoint_directory_has_failed(training, instead):
    own, run = training(
        f"""
        import json, os, shutil
        folder = os.environ["RISINGSEARCH_CHECKPOINT_DIR"]
        shutil.rmtree(folder)
        {instead}
        print(json.dumps({{"epoch": 1, "score": 0.5}}))
        """
    )
    with pytest.raises(ScriptError, match="has replaced its checkpoint directory"):
        own.train_epochs(run, 1)


def test_a_script_goes_on_from_its_checkpoint(training, tmp_path):
    own, run = training(GOOD)
    assert own.train_epochs(run, 2) == [
        {"score": 0.1, "loss": 1.0},
        {"score": 0.2, "loss": 0.5},
    ]
    own.save(run, str(tmp_path / "state"))
    run = own.load(str(tmp_path / "state"))
    assert [told["score"] for told in own.train_epochs(run, 3)] == [0.3, 0.4, 0.5]
    assert run.epoch == 5
    assert own.checkpoint_epochs(4) == [2, 5]
    assert (own.home(4) / checkpoint_name(5) / "epoch").read_text() == "5"
    log = (own.home(4) / "log.txt").read_text()
    assert log.count("loss is falling") == 5
    assert "--- epochs 3 to 5: " in log


def test_what_a_script_is_told(training):
    program = """
        import json, os, sys
        names = ["ARM", "SEED", "FROM_EPOCH", "EPOCHS", "TO_EPOCH", "PARAMS"]
        told = {name: os.environ["RISINGSEARCH_" + name] for name in names}
        print(json.dumps({"epoch": 1, "score": 1, "told": told, "given": sys.argv[1:]}))
        print(json.dumps({"epoch": 2, "score": 1}))
    """
    own, run = training(
        program, "--lr={lr}", "{name}", "{to_epoch}", "{{x}}", "--beta={beta}"
    )
    first = own.train_epochs(run, 2)[0]
    assert first["told"] == {
        "ARM": "4",
        "SEED": "77",
        "FROM_EPOCH": "0",
        "EPOCHS": "2",
        "TO_EPOCH": "2",
        "PARAMS": json.dumps({"lr": 0.1, "name": "a b; $HOME"}),
    }
    # One argument each, no shell looks at them; what names an absent one is left out.
    assert first["given"] == ["--lr=0.1", "a b; $HOME", "2", "{x}"]


LOST = """
    import json, os, time
    first = int(os.environ["RISINGSEARCH_FROM_EPOCH"]) + 1
    for epoch in range(first, int(os.environ["RISINGSEARCH_TO_EPOCH"]) + 1):
        score = float("nan") if epoch == 2 else 0.5
        print(json.dumps({"epoch": epoch, "score": score}), flush=True)
        if epoch == 2:
            time.sleep(3600)
"""


@pytest.mark.parametrize("kind", [CommandTrainable, ArchivedTrainable, LivingTrainable])
def test_a_script_is_ended_at_a_score_that_is_not_finite(tmp_path, kind):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(LOST))
    options = {"max_epochs": 5, "max_alive": 2, "direction": "maximize"}
    own = kind(
        [sys.executable, str(script)],
        tmp_path / "arms",
        **options if kind is LivingTrainable else {},
    )
    own.arms = {0: 0}
    task = training_job.Task(Job(0, 0, 5, 0), {}, 0, None, True, False, 1.0, -math.inf)
    outcome = training_job.run_task(own, task._replace(wants_checkpoint=True))
    assert outcome.report.failure is None
    assert outcome.report.scores[0] == 0.5
    assert [math.isfinite(score) for score in outcome.report.scores] == [True, False]
    assert own.checkpoint_epochs(0) == []  # it may be half written


@pytest.mark.parametrize(("n_reported", "charged"), [(0, 1), (2, 3), (3, 3)])
def test_a_script_that_dies_is_charged_the_epochs_that_it_trained(
    training, n_reported, charged
):
    own, _ = training(
        f"""
        import json, sys
        for epoch in range({n_reported}):
            print(json.dumps({{"epoch": epoch + 1, "score": 0.5}}))
        sys.exit(3)
        """
    )
    task = training_job.Task(Job(4, 0, 3, 0), {}, 77, None, True, False, 1.0, -math.inf)
    outcome = training_job.run_task(own, task)
    assert isinstance(outcome.report.failure, ScriptError)
    assert (outcome.charged, outcome.report.scores) == (charged, ())


def test_fewer_epochs_end_the_arm(training):
    own, run = training(
        GOOD.replace("range(int(", "range(min(1, int(").replace('"]))', '"])))')
    )
    assert len(own.train_epochs(run, 3)) == 1
    assert run.epoch == 1


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit(3)", "ended with exit code 3; its last line: ''"),
        ("raise ValueError('too hot')", "code 1; its last line: 'ValueError: too hot'"),
        ("print('nothing to say')", "there is no line of JSON with an epoch and"),
        ('print(\'{"epoch": 1, "score": "good"}\')', "score='good', which is no n"),
        ("print('{\"score\": 0.5}')", "reports no epoch where 1 is due"),
        ('print(\'{"epoch": 2, "score": 1}\')', "reports epoch 2 where 1 is due"),
        (
            'for e in (1, 2, 3): print(\'{"epoch": %d, "score": 1}\' % e)',
            "reports epoch 3, and was asked to end at 2",
        ),
        (
            'for e in (1, 1): print(\'{"epoch": %d, "score": 1}\' % e)',
            "reports epoch 1 a second time: have one line",
        ),
        ("import time; time.sleep(3600)", "has reported no epoch for 0.5 seconds"),
    ],
)
def test_what_goes_wrong_is_a_failure_with_a_reason(training, program, message):
    own, run = training(program, timeout=0.5 if "sleep" in program else None)
    with pytest.raises(ScriptError) as raised:
        own.train_epochs(run, 2)
    assert message in str(raised.value)
    assert run.epoch == 0
    assert own.checkpoint_epochs(4) == []


def test_a_script_that_reports_in_a_file_of_its_checkpoint(training):
    inner = (
        'print(json.dumps({"epoch": epoch, "score": epoch / 10, "loss": 1 / epoch}))'
    )
    program = GOOD.replace(inner, 'log.write("%s\\n" % ' + inner[6:-1] + ")")
    program = program.replace(
        "for _", 'log = state.with_name("told").open("a")\n    for _'
    )
    own, run = training(program, report_file="told")
    assert [told["score"] for told in own.train_epochs(run, 2)] == [0.1, 0.2]
    assert [told["score"] for told in own.train_epochs(run, 1)] == [0.3]
    lines = (own.home(4) / checkpoint_name(3) / "told").read_text().splitlines()
    assert len(lines) == 3


def test_a_script_that_starts_anew_is_found_out(training):
    own, run = training(GOOD)
    own.train_epochs(run, 2)
    forgetful = training(GOOD.replace("if state.exists()", "if False"))[0]
    with pytest.raises(ScriptError, match="started anew instead of resuming"):
        forgetful.train_epochs(run, 1)
    assert run.epoch == 2
    again = training(GOOD)[0]  # its checkpoint is as it was
    assert again.train_epochs(run, 1)[0]["score"] == 0.3


def test_a_program_that_is_not_there(tmp_path):
    own = CommandTrainable(["no-such-program"], tmp_path)
    own.arms[1] = 0
    with pytest.raises(SetupError, match="no-such-program cannot be started"):
        own.train_epochs(own.start({}, 1), 1)
    own = CommandTrainable(["no-such-{program}"], tmp_path)
    own.arms[1] = 0
    with pytest.raises(ScriptError, match="no-such-program cannot be started"):
        own.train_epochs(own.start({"program": "program"}, 1), 1)
    own = CommandTrainable([sys.executable], tmp_path, cwd=tmp_path / "gone")
    own.arms[1] = 0
    with pytest.raises(SetupError, match="gone cannot be started"):
        own.train_epochs(own.start({}, 1), 1)


def test_a_slot_comes_back_whatever_happens(training):
    own, run = training(GOOD, slots=[{"A=B": "1"}])
    for _ in range(2):
        with pytest.raises(ValueError, match="illegal environment variable name"):
            own.train_epochs(run, 1)


def test_the_metric_is_the_score_and_no_other_is(training):
    program = """
        import json
        facts = {"epoch": 1, "accuracy": 0.9, "score": 0.1, "seconds": 3, "loss": 2}
        print(json.dumps(facts))
    """
    own, run = training(program, metric="accuracy")
    assert own.train(run) == {
        "score": 0.9,
        "reported_score": 0.1,
        "reported_seconds": 3,
        "loss": 2,
    }


def test_a_lost_checkpoint_costs_the_epochs_since_the_one_before(training):
    own, run = training(GOOD)
    own.train_epochs(run, 2)
    own.train_epochs(run, 1)
    shutil.rmtree(own.home(4) / checkpoint_name(3))
    with pytest.warns(RuntimeWarning, match="arm 4 trains again from epoch 2 to 3"):
        told = own.train_epochs(run, 2)
    assert [epoch["score"] for epoch in told] == [0.4, 0.5]
    assert own.checkpoint_epochs(4) == [2, 5]
    for epoch in (2, 5):
        shutil.rmtree(own.home(4) / checkpoint_name(epoch))
    with pytest.warns(RuntimeWarning, match="from epoch 0 to 5, which is not charged"):
        assert own.train_epochs(run, 1)[0]["score"] == 0.6


def test_once_it_has_ended_nothing_starts(training):
    own, run = training(GOOD)
    own.end()
    with pytest.raises(SetupError, match="has ended before"):
        own.train_epochs(run, 1)
    assert "falling" not in (own.home(4) / "log.txt").read_text()


def test_scripts_of_a_process_that_was_killed_are_ended(training):
    program = """
        import os, pathlib, time
        pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"], "runs").touch()
        time.sleep(3600)
    """
    own, run = training(program)

    def train():
        with pytest.raises(ScriptError, match="SIGKILL"):
            own.train(run)

    trains = threading.Thread(target=train)
    trains.start()
    while not list(own.home(4).glob("training-*/runs")):
        time.sleep(0.01)
    training(program)[0].end_left_over()
    trains.join()
    assert not (own.home(4) / "running.json").exists()


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ("os.mkdir('told')", "in told cannot be read .* is a folder"),
        ("os.mkfifo('pipe')", "has left 'pipe' in its checkpoint"),
    ],
)
def test_what_is_no_file_fails_the_arm(training, left, message):
    program = f"""
        import os
        os.chdir(os.environ["RISINGSEARCH_CHECKPOINT_DIR"])
        open("epochs", "w").write('{{"epoch": 1, "score": 1}}')
        os.rename("epochs", "told")
        {left.replace("mkdir", "remove('told'); os.mkdir")}
    """
    own, run = training(program, report_file="told")
    with pytest.raises(ScriptError, match=message):
        own.train_epochs(run, 1)
    assert own.checkpoint_epochs(4) == []
    assert training(GOOD)[0].train(run)["score"] == 0.1


def test_a_checkpoint_of_many_files_and_links(training):
    program = """
        import os, pathlib
        folder = pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"])
        epoch = int(os.environ["RISINGSEARCH_FROM_EPOCH"]) + 1
        assert len(list(folder.iterdir())) in (0, 101)
        for i in range(100):
            (folder / str(i)).write_text(str(epoch))
        (folder / "outside").unlink(missing_ok=True)
        (folder / "outside").symlink_to("/")
        print('{"epoch": %d, "score": 1}' % epoch)
    """
    own, run = training(program)
    for epoch in (1, 2):
        assert len(own.train_epochs(run, 1)) == 1
        kept = own.home(4) / checkpoint_name(epoch)
        assert len(list(kept.iterdir())) == 101
        assert (kept / "99").read_text() == str(epoch)


def test_something_else_in_the_folder_of_an_arm(training):
    own, run = training(GOOD)
    own.home(4).joinpath("log.txt").mkdir(parents=True)
    with pytest.raises(RunDirError, match=r"arm-000004 cannot be written .*resume"):
        own.train_epochs(run, 1)


def test_the_slot_is_free_once_nothing_of_the_job_runs(training, tmp_path):
    """A daemon that a script has left has the slot's GPU no longer."""
    program = """
        import os, psutil, sys, time
        held = os.path.join(os.environ["BUSY"], "held")
        epoch = int(os.environ["RISINGSEARCH_TO_EPOCH"])
        if os.path.exists(held):
            pid = int(open(held).read())
            gone = not psutil.pid_exists(pid)
            gone = gone or psutil.Process(pid).status() == "zombie"
            sys.exit(f"the GPU is free: {gone}")
        print('{"epoch": %d, "score": 1}' % epoch, flush=True)
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, 3)
            open(held + "-new", "w").write(str(os.getpid()))
            os.rename(held + "-new", held)
            time.sleep(3600)
        while not os.path.exists(held):
            time.sleep(0.01)
    """
    own, run = training(program, slots=[{"BUSY": str(tmp_path)}])
    own.train(run)
    with pytest.raises(ScriptError, match="the GPU is free: True"):
        own.train(run)
