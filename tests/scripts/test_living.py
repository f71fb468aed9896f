"""A script that cannot resume is paused between its jobs, and ended at the end."""

import sys
import textwrap
import threading
import time
from types import SimpleNamespace

import psutil
import pytest

from risingsearch.errors import ScriptError, SetupError
from risingsearch.scripts import output
from risingsearch.scripts.living import LivingTrainable

TRAIN = """
    import os, pathlib
    here = pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"])
    (here / "pid").write_text(str(os.getpid()))
    for epoch in range(1, 7):
        (here / "epoch").write_text(str(epoch))
        print(f"epoch {epoch}: accuracy {epoch / 10 + float(os.environ['TOP'])}")
"""
GATED = f"""{TRAIN.replace("import os", "import os, time")}
        while not (here / f"go-{{epoch}}").exists():
            time.sleep(0.01)
"""  # it trains no epoch ahead before it may
ACCURACY = {"regex": "accuracy ([0-9.]+)"}


@pytest.fixture
def training(tmp_path):
    """Return a trainable that runs a program in plain text, and makes arms."""
    made = []

    def make(program, max_alive=2, max_epochs=6, **options):
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(program))
        command = [sys.executable, "-S", str(script)]
        own = LivingTrainable(
            command,
            tmp_path / "arms",
            metric=ACCURACY,
            max_epochs=max_epochs,
            max_alive=max_alive,
            direction="maximize",
            **{"slots": [{"TOP": "0"}], **options},
        )
        own.arms = {arm: arm for arm in range(9)}
        made.append(own)
        return own

    yield make
    for own in made:
        own.end()


def scores(results):
    return [round(one["score"], 9) for one in results]


def pid_of(own, arm):
    return int((own.home(arm) / "files" / "pid").read_text())


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def let_go(own, arm):
    for epoch in range(1, 7):
        (own.home(arm) / "files" / f"go-{epoch}").touch()


def wait_until_stopped(pid):
    while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)


def test_exactly_the_epochs_of_each_job_are_counted(training):
    own = training(TRAIN)
    run = own.start({}, 3)
    assert scores(own.train_epochs(run, 1)) == [0.1]
    assert scores(own.train_epochs(run, 3)) == [0.2, 0.3, 0.4]
    assert run.epoch == 4
    assert scores(own.train_epochs(run, 2)) == [0.5, 0.6]
    assert not is_alive(pid_of(own, 3))
    assert (own.checkpoint_from(3, 6) / "epoch").read_text() == "6"
    log = (own.home(3) / "log.txt").read_text()
    assert log.count("--- ") == 1
    assert "--- epochs 1 to 6: " in log


def test_it_stands_still_between_its_jobs(training):
    own = training(GATED)
    run = own.start({}, 3)
    own.train_epochs(run, 1)
    pid = pid_of(own, 3)
    wait_until_stopped(pid)
    let_go(own, 3)
    assert psutil.Process(pid).status() == psutil.STATUS_STOPPED
    assert (own.home(3) / "files" / "epoch").read_text() == "1"
    assert scores(own.train_epochs(run, 2)) == [0.2, 0.3]
    assert pid_of(own, 3) == pid
    own.end()
    assert not is_alive(pid)
    with pytest.raises(SetupError, match="has ended before"):
        own.train_epochs(own.start({}, 4), 1)


def test_one_that_trains_longer_than_it_may_is_ended(training):
    own = training(TRAIN, max_epochs=2)
    run = own.start({}, 3)
    assert scores(own.train_epochs(run, 2)) == [0.1, 0.2]
    assert not is_alive(pid_of(own, 3))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("print('nothing')", "no line in which 'accuracy "),
        ("print('accuracy ...')", "finds '...', which is no number, in 'accuracy ...'"),
        ("import time; time.sleep(3600)", "has reported no epoch for 0.5 seconds"),
    ],
)
def test_what_goes_wrong_is_a_failure_with_a_reason(training, program, message):
    own = training(program, timeout=0.5 if "sleep" in program else None)
    with pytest.raises(ScriptError, match=message):
        own.train_epochs(own.start({}, 3), 2)
    assert not (own.home(3) / "running.json").exists()
    assert scores(training(TRAIN).train_epochs(own.start({}, 3), 1)) == [0.1]


def test_numbers_are_read_where_logging_writes_them(training):
    own = training("import sys; print('accuracy 0.5', file=sys.stderr)")
    assert scores(own.train_epochs(own.start({}, 3), 1)) == [0.5]


def test_the_time_of_a_pause_is_no_time_without_an_epoch(training, monkeypatch):
    paused = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + paused)
    monkeypatch.setattr(output, "time", clock)
    own = training(GATED, timeout=600)
    run = own.start({}, 3)
    own.train_epochs(run, 1)
    paused = 1000.0
    let_go(own, 3)
    assert scores(own.train_epochs(run, 1)) == [0.2]


def test_the_worst_process_makes_room_and_its_arm_has_ended(training):
    tops = GATED.replace("os.environ['TOP']", "os.environ['RISINGSEARCH_ARM']")
    own = training(tops)
    runs = [own.start({}, arm) for arm in range(3)]
    for run in (runs[1], runs[0], runs[2]):
        own.train_epochs(run, 1)
    assert [is_alive(pid_of(own, arm)) for arm in range(3)] == [False, True, True]
    assert own.train_epochs(runs[0], 1) == []
    let_go(own, 1)
    assert scores(own.train_epochs(runs[1], 1)) == [1.2]


def test_a_pid_of_a_killed_sweep_cannot_be_revived(training):
    own = training(GATED)
    run = own.start({}, 3)
    own.train_epochs(run, 1)
    pid = pid_of(own, 3)
    again = training(TRAIN)
    again.end_left_over()
    assert not is_alive(pid)
    with pytest.warns(RuntimeWarning, match="progress of epochs 1 to 1 is lost"):
        assert again.train_epochs(run, 1) == []


def test_slots_that_are_alike_are_shared(training):
    own = training(TRAIN, slots=[{"TOP": "0"}, {"TOP": "0"}])
    run = own.start({}, 1)
    assert scores(own.train_epochs(run, 1)) == [0.1]
    with own._slots.taken(0):
        assert scores(own.train_epochs(run, 1)) == [0.2]


def test_a_process_keeps_its_slot_and_waits_for_it(training):
    slots = [{"TOP": "0"}, {"TOP": "1"}]
    own = training(TRAIN, slots=slots)
    first, second = own.start({}, 1), own.start({}, 2)
    assert scores(own.train_epochs(first, 1)) == [0.1]
    assert scores(own.train_epochs(second, 1)) == [1.1]
    results = []
    with own._slots.taken(0):
        waits = threading.Thread(
            target=lambda: results.append(own.train_epochs(first, 1))
        )
        waits.start()
        assert scores(own.train_epochs(second, 1)) == [1.2]
        assert results == []
    waits.join()
    assert scores(results[0]) == [0.2]
