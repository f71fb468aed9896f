"""The folder of a slice exists while the search waits for it."""

from dataclasses import replace

import pytest

from risingsearch.arms import Job, Report
from risingsearch.errors import SetupError
from risingsearch.search.slurm import slices
from risingsearch.search.training import Outcome, Task


@pytest.fixture
def home(tmp_path):
    return tmp_path / "my run (2)" / "slurm"


@pytest.fixture
def made(home):
    """Return a function: submit a slice of an arm."""
    return lambda arm, job=0: submitted_in(home, task(arm, job))


def submitted_in(home, task):
    return slices.made_slice(home, slices.Parcel(home / "trainable", task, {}))


def task(arm, job=0, to_epoch=2):
    return Task(
        job=Job(arm, 0, to_epoch, job),
        params={"lr": 0.1},
        seed=70 + arm,
        state=None,
        as_bytes=True,
        may_retry=False,
        sign=1.0,
        best_reward=0.0,
    )


def outcome(arm):
    """Return what a job brings back: a score, a best state and the last one."""
    report = Report(task(arm).job, (0.1,), (1.5,), ({"loss": 0.4},))
    return Outcome(
        report, False, b"last", (1, b"best"), n_calls=1, elapsed=1.5, startup=0.5
    )


def test_an_outcome_is_left_for_a_slice_that_is_waited_for(made):
    submitted = made(0)
    submitted.note_end(outcome(0), None)
    assert submitted.outcome == outcome(0)
    submitted.close()
    submitted.note_end(outcome(0), None)
    assert submitted.outcome is None
    assert not submitted.folder.exists()


def test_metrics_that_json_cannot_hold_come_back_as_text(made):
    left = outcome(0)
    report = replace(left.report, metrics=({"loss": b"0.4"},))
    submitted = made(0)
    with pytest.warns(RuntimeWarning, match="metric loss is a bytes"):
        submitted.note_end(left._replace(report=report), None)
    assert submitted.outcome.report.metrics == ({"loss": "b'0.4'"},)


def test_an_error_that_is_not_of_the_arm_comes_back_as_it_was(made):
    submitted = made(0)
    submitted.note_end(SetupError("no such library"), None)
    assert isinstance(submitted.outcome, SetupError)
    assert str(submitted.outcome) == "no such library"
    assert submitted.trained is None


def test_it_is_counted_how_far_the_slices_have_come(home, made):
    assert slices.counted(home) == {}
    submitted = [made(arm) for arm in range(5)]
    submitted[0].note()
    submitted[1].note()
    submitted[1].note_end(outcome(1), None)
    submitted[2].close()
    assert slices.counted(home) == {"training": 1, "back": 1, "waiting": 2}


def test_a_folder_has_a_name_for_one_job_and_is_for_its_owner_alone(made):
    one, other = made(0).folder, made(0).folder
    assert one.name != other.name
    assert one.name.startswith("my_run__2_-")
    for path in (one.parent, one, *one.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_what_was_left_is_claimed_and_the_rest_of_its_arm_is_dropped(home, made):
    same, other_arm, retried = made(0), made(1), made(2, job=3)
    assert slices.claimed(home, task(0)) == same
    assert slices.claimed(home, task(0, job=1)) is None
    assert slices.claimed(home, task(2, job=3, to_epoch=5)) is None
    assert not same.is_open
    assert not retried.is_open
    assert slices.slices_in(home) == [other_arm]


def test_of_a_directory_that_has_moved_only_what_is_trained_is_taken_in(home):
    for arm in range(2):
        submitted = submitted_in(home, task(arm))
        if arm == 0:
            submitted.note_end(outcome(0), None)
    moved = home.parent.rename(home.parent.with_name("moved")) / "slurm"
    assert slices.claimed(moved, task(0)).outcome == outcome(0)
    assert slices.claimed(moved, task(1)) is None
    assert slices.slices_in(moved, 1) == []


def test_a_damaged_file_stops_the_search_and_is_named(made):
    submitted = made(0)
    path = submitted.folder / "slice.json"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SetupError, match=r"slice\.json is damaged .* remove it"):
        _ = submitted.outcome
