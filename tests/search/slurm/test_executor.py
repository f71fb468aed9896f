"""A slice trains once, whatever happens to its job, and the right one is blamed."""

from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from risingsearch.errors import RunDirError, ScriptError, SetupError
from risingsearch.scripts.slurm import AfterSlurm
from risingsearch.scripts.trainable import CommandTrainable, NothingReportedError
from risingsearch.search.slurm import executor as executor_module
from risingsearch.search.slurm.clients import Element
from risingsearch.search.slurm.slices import FOLDER, claimed, drop_recorded, note_of
from risingsearch.storage import files

pytestmark = pytest.mark.usefixtures("pretended")


def scores(outcome):
    return list(outcome.report.scores)


def batches(tmp_path):
    return [path for path in (tmp_path / "run" / FOLDER).iterdir() if path.is_dir()]


def test_a_slice_is_a_job_and_the_next_one_goes_on_from_its_checkpoint(
    training, pretended, tmp_path
):
    own = training()
    before = own.train(2)
    assert scores(before) == [0.1, 0.2]
    own.recorded()
    assert scores(own.train(1, epoch=2, state=before.resume_from)) == [0.3]
    own.recorded()
    assert pretended.n_submitted == 2
    assert own.trainable.checkpoint_epochs(0) == [2, 3]
    assert batches(tmp_path) == []


@pytest.mark.parametrize("state", ["CANCELLED", "PREEMPTED", "NODE_FAIL"])
def test_what_the_machine_does_is_tried_again_and_nobody_is_blamed(
    training, pretended, state
):
    pretended.fates = [state, state, state, state]
    own = training()
    with pytest.warns(RuntimeWarning, match=f"has ended as {state}.*not charged"):
        assert scores(own.train(2)) == [0.1, 0.2]
    assert pretended.n_submitted == 5


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            "TIMEOUT",
            "past its time limit: raise the time of launcher, or lower epochs_",
        ),
        ("OUT_OF_MEMORY", "needed more memory than launcher asks for"),
        ("FAILED", "it was killed"),
    ],
)
def test_what_the_script_does_counts(training, pretended, state, words):
    pretended.fates = [state]
    own = training()
    with pytest.raises(ScriptError, match=words):
        own.train(2)
    assert own.elapsed == 7.0  # seconds that the job has run, and none in the queue
    assert pretended.n_submitted == 1


def test_a_script_that_is_killed_with_its_job_is_not_to_blame(training, pretended):
    pretended.fates = [("CANCELLED", "killed")]
    own = training()
    with pytest.warns(RuntimeWarning, match="has ended as CANCELLED"):
        assert scores(own.train(1)) == [0.1]


def test_a_job_that_was_told_to_end_is_submitted_again(training, pretended):
    pretended.fates = [("FAILED", "told")]
    own = training()
    with pytest.warns(RuntimeWarning, match="has ended as FAILED: .*not charged"):
        assert scores(own.train(1)) == [0.1]


def test_a_script_that_is_killed_alone_has_failed(training, pretended):
    pretended.fates = [("FAILED", "killed")]
    own = training()
    with pytest.raises(ScriptError, match="killed by 15"):
        own.train(1)


def test_a_script_that_fails_counts_with_its_own_words(training):
    own = training("raise SystemExit('no such layer')")
    with pytest.raises(ScriptError, match="no such layer"):
        own.train(1)


def test_a_script_that_reports_nothing_is_told_apart(training):
    own = training("print(0.5)")
    with pytest.raises(NothingReportedError):
        own.train(1)


def test_a_node_that_starts_no_job_stops_the_search_in_the_end(training, pretended):
    pretended.fates = [("FAILED", "early")] * 3
    own = training()
    with (
        pytest.warns(RuntimeWarning, match="has ended as FAILED"),
        pytest.raises(SetupError, match=r"before it began, as with 2 others"),
    ):
        own.train(1)


def test_a_job_that_its_node_has_not_started_is_submitted_again(training, pretended):
    pretended.fates = [("PENDING", "held")]
    own = training()
    with pytest.warns(RuntimeWarning, match="job 1 has ended as HELD .*its node"):
        assert scores(own.train(1)) == [0.1]
    assert pretended.cancelled == [("1",)]


@pytest.mark.parametrize("reason", ["PartitionConfig", "QOSMaxJobs", "Priority"])
def test_why_slurm_keeps_jobs_waiting_is_told(
    training, pretended, monkeypatch, tmp_path, recwarn, reason
):
    own, notes, listed = training(), [], pretended.listed

    def listed_later():
        """Return the job as waiting three times, and then as it ends."""
        notes.append((own.executor.progress_note(), note_of(tmp_path / "run" / FOLDER)))
        if len(notes) > 3:
            pretended.bring_back()
            return listed()
        return dict.fromkeys(listed(), Element("1", "PENDING", 0.0, reason))

    monkeypatch.setattr(executor_module.clients, "listed", listed_later)
    pretended.fates = ["PENDING"]
    assert scores(own.train(1)) == [0.1]
    assert notes[1:4] == [(f"1 waiting in Slurm ({reason})",) * 2] * 3
    warned = [str(one.message) for one in recwarn]
    expected = f"keeps job 1 waiting ({reason}), maybe for ever: see scontrol show job"
    assert [expected in one for one in warned] == [True] * (reason != "Priority")
    own.end()
    assert note_of(tmp_path / "run" / FOLDER) == ""


def test_a_submission_whose_answer_was_lost_is_found_by_its_name(training, pretended):
    pretended.fates = ["unanswered"]
    own = training()
    with pytest.warns(RuntimeWarning, match="does not answer"):
        assert scores(own.train(1)) == [0.1]
    assert pretended.n_submitted == 1
    assert own.executor.progress_note() in ("", "Slurm does not answer (timed out)")


def test_a_submission_that_never_came_through_is_made_again(training, pretended):
    pretended.fates = ["lost"]
    own = training()
    with pytest.warns(RuntimeWarning) as warned:
        assert scores(own.train(1)) == [0.1]
    assert any("Slurm does not know it" in str(each.message) for each in warned)
    assert pretended.n_submitted == 2


def left_by_a_killed_process(training, pretended, fate, n_epochs=2):
    """Have a process die while it waits for a slice."""
    pretended.fates = [fate]
    own = training()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(own.train, n_epochs)
        pretended.has_submitted.wait()
        own.end()
        with pytest.raises(SetupError):
            waiting.result()


def test_a_job_that_runs_on_is_waited_for_by_the_next_process(
    training, pretended, capsys
):
    left_by_a_killed_process(training, pretended, "RUNNING")
    assert "scancel 1" in capsys.readouterr().err
    own = training()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(own.train, 2)
        pretended.bring_back()
        assert scores(waiting.result()) == [0.1, 0.2]
    assert pretended.n_submitted == 1


def test_what_a_job_has_brought_meanwhile_is_taken_in(training, pretended):
    left_by_a_killed_process(training, pretended, "RUNNING")
    pretended.bring_back()
    own = training()
    assert scores(own.train(2)) == [0.1, 0.2]
    assert pretended.n_submitted == 1


def test_it_is_taken_in_on_another_machine_too(training, pretended, tmp_path):
    left_by_a_killed_process(training, pretended, "RUNNING")
    pretended.bring_back()
    slices = tmp_path / "run" / FOLDER
    here = training()
    here.trainable = CommandTrainable(["false"], tmp_path / "run" / "arms")
    here.executor = AfterSlurm(1, slices)
    assert scores(here.train(2)) == [0.1, 0.2]
    assert here.trainable.checkpoint_epochs(0) == [2]


def test_a_failure_that_was_told_is_not_counted_again(training, tmp_path):
    failing = training("raise SystemExit('no such layer')")
    with pytest.raises(ScriptError):
        failing.train(1)
    # The search has written it down, and dies before the files are removed.
    own = training()
    drop_recorded(tmp_path / "run" / FOLDER, {0})
    assert batches(tmp_path) == []
    assert scores(own.train(1)) == [0.1]


def test_a_slice_that_a_later_run_has_recorded_is_not_submitted_again(
    training, pretended
):
    pretended.fates = ["RUNNING"]
    own = training()
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(own.train, 1)
        pretended.has_submitted.wait()
        name = pretended.last.folder.name
        own.recorded()
        pretended.listing[name] = Element("1", "CANCELLED", 1.0, "None")
        with pytest.raises(CancelledError):
            waiting.result()
    assert pretended.n_submitted == 1


def test_what_waits_to_run_is_cancelled_at_the_end(training, pretended):
    left_by_a_killed_process(training, pretended, "PENDING")
    assert pretended.cancelled == [("--state=PENDING", "1")]


def test_slurm_is_asked_every_five_seconds_at_most(training, pretended, monkeypatch):
    own, now, asked_at = training(), [100.0], []
    monkeypatch.setattr(executor_module, "ASK_EVERY", 5.0)
    monkeypatch.setattr(executor_module.time, "monotonic", lambda: now[0])
    for now[0] in (100.0, 100.2, 104.9, 105.0, 109.0, 110.0):
        asked_at.append(own.executor._ask()[0])
    assert asked_at == [100.0, 100.0, 100.0, 105.0, 105.0, 110.0]


def test_where_sbatch_refuses_no_job_is_named_to_be_cancelled(
    training, pretended, capsys, monkeypatch
):
    def refused(*arguments):
        raise SetupError("sbatch refuses: invalid partition specified: gpuq")

    monkeypatch.setattr(executor_module.clients, "submit", refused)
    own = training()
    with pytest.raises(SetupError, match="invalid partition"):
        own.train(1)
    own.end()
    assert "scancel" not in capsys.readouterr().err
    assert pretended.cancelled == []


@pytest.mark.parametrize("fate", ["FAILED", None])
def test_what_fails_on_a_full_disk_is_not_charged_once_there_is_room(
    training, pretended, monkeypatch, tmp_path, fate
):
    pretended.fates = [fate]
    own = training(*["raise SystemExit('no space')"] * (fate is None))
    with monkeypatch.context() as patched:
        patched.setattr(files, "_has_room", lambda folder: False)
        with pytest.raises(RunDirError, match=r"cannot be written .* make room"):
            own.train(2)
    assert claimed(tmp_path / "run" / FOLDER, own.task(0, 0, 2)) is None


def test_a_damaged_result_ends_the_search_with_that_error(
    training, pretended, tmp_path
):
    left_by_a_killed_process(training, pretended, "RUNNING")
    [folder] = batches(tmp_path)
    (folder / "slice.json").write_text('{"outcome": {"seco')
    own = training()
    with pytest.raises(SetupError, match=r"slice\.json is damaged"):
        own.train(2)
