"""Scripts that fail are told of, mended and tried again."""

from pathlib import Path

import pytest

from risingsearch.cli.main import main
from tests.cli.sweeping import BASH, BASH_SWEEP, BY_EPOCH, exported, json_of, told


def test_a_program_that_is_missing_blames_no_arm(folder, capsys):
    sweep = BASH_SWEEP.replace("bash, train.sh", "./train.sh")
    Path("sweep.yaml").write_text(sweep)
    for command in ("plan", "run", "run"):
        assert main([command, "sweep.yaml"]) == 2
        said = capsys.readouterr().err
        assert "./train.sh cannot be started (Permission denied)" in said
        assert not Path("runs").exists()
    Path("train.sh").chmod(0o700)
    found = json_of(capsys, "run", "sweep.yaml")
    assert (found["epochs"], found["failures"]) == (24, 0)


def test_scripts_that_all_fail_end_the_search_early(folder, capsys):
    Path("train.sh").write_text("echo no GPU here; exit 7")
    Path("sweep.yaml").write_text(BY_EPOCH.replace("budget: 24", "budget: 14"))
    assert main(["run", "sweep.yaml"]) == 3
    said = capsys.readouterr().err
    assert "exit code 7; its last line: 'no GPU here'" in said
    assert "run the search again: risingsearch run sweep.yaml --run-dir runs/s" in said
    assert "with --retry-failed to try first those that have failed" in said
    found = json_of(capsys, "status", "runs/sweep")
    assert (found["epochs"], found["failures"]) == (10, 10)
    assert found["stop_reason"].startswith("none: it has stopped; continue with")
    Path("train.sh").write_text(BASH)
    assert json_of(capsys, "run", "sweep.yaml")["epochs"] == 14


def test_a_broken_script_is_mended_before_it_has_cost_the_budget(folder, capsys):
    """The same command continues with the others, and then with those that failed."""
    Path("train.sh").write_text(BASH.replace("score", "accuracy"))
    sweep = BY_EPOCH.replace("budget: 24", "budget: 30\ncandidates: 14")
    Path("sweep.yaml").write_text(f"{sweep}workers: 2\n")
    assert main(["run", "sweep.yaml"]) == 3
    said = capsys.readouterr().err
    assert "there is no line of JSON with an epoch and 'score'" in said
    assert "the keys seen were epoch, accuracy" in said
    failed = json_of(capsys, "status", "runs/sweep")["arms"]["failed"]
    assert failed == 1  # the first says what is wrong with all
    Path("train.sh").write_text(BASH)
    assert json_of(capsys, "run", "sweep.yaml")["failures"] == failed
    assert main(["status", "runs/sweep"]) == 0
    assert "first failure  arm" in capsys.readouterr().out
    again = ["resume", "runs/sweep", "--retry-failed", "--json"]
    assert main(["run", "sweep.yaml", "--retry-failed"]) == 2
    assert main(again) == 2
    assert "cannot be tried again: add to it with --budget" in capsys.readouterr().err
    assert main([*again, "--budget", "+16"]) == 0
    found = told(capsys)
    assert "failed" not in found["arms"]
    assert (found["epochs"], found["failures"]) == (46, failed)
    assert (found["failures_tried_again"], found["first_failure"]) == (failed, None)
    whole = exported("runs/sweep", capsys)
    assert len({row["arm"] for row in whole if row["score"] != "nan"}) == 14
    assert main(["resume", "runs/sweep"]) == 0
    assert exported("runs/sweep", capsys) == whole


def test_a_misspelt_metric_is_mended_in_the_file(folder, capsys):
    """It may change until there is a score, and no more after that."""
    metrics = ("scores", "score", "epochs")
    codes = []
    for metric in metrics:
        sweep = BY_EPOCH.replace("budget: 24", "budget: 14")
        Path("sweep.yaml").write_text(f"{sweep}metric: {metric}\n")
        codes.append(main(["run", "sweep.yaml"]))
    assert codes == [3, 0, 2]
    said = capsys.readouterr().err
    assert "metric is 'epochs' in the sweep, and runs/sweep was begun with 's" in said
    assert json_of(capsys, "status", "runs/sweep")["metric"] == "score"
    assert json_of(capsys, "resume", "runs/sweep", "--budget", "+2")["epochs"] == 16


def test_what_has_used_all_its_epochs_is_not_tried_again(folder, capsys):
    Path("train.sh").write_text(BASH.replace("set -eu", "set -eu; (( $1 % 3 ))"))
    sweep = BY_EPOCH.replace("max_epochs: 8", "max_epochs: 1\ncandidates: 12")
    sweep = sweep.replace("budget: 24", "budget: 9")
    Path("sweep.yaml").write_text(sweep)
    assert main(["run", "sweep.yaml"]) == 0
    again = ["resume", "runs/sweep", "--retry-failed", "--budget", "+2"]
    with pytest.warns(RuntimeWarning, match="is not tried again: max_epochs"):
        assert main(again) == 0


FORGETFUL = BASH.replace("[[ -e $state ]]", "false")


@pytest.mark.parametrize("spent", ["budget: 240", "budget: 4\ncandidates: 2"])
def test_scripts_that_never_resume_end_the_search(folder, capsys, spent):
    Path("train.sh").write_text(FORGETFUL)
    Path("sweep.yaml").write_text(BY_EPOCH.replace("budget: 24", spent))
    assert main(["run", "sweep.yaml"]) == 3
    said = capsys.readouterr().err
    assert "no script has resumed from its checkpoint, of" in said
    assert "script reports epoch 1 where 2 is due: it has started anew" in said
    assert "resume: false in the sweep keeps its process alive" in said
    found = json_of(capsys, "status", "runs/sweep")
    assert found["failures"] == 2
    assert "it has started anew" in found["first_failure"]


def test_one_that_cannot_resume_is_told_of_beside_the_others(folder, capsys):
    sweep = f"{BY_EPOCH}candidates: 8\npolicy: round-robin\n"  # resumes all of them
    Path("sweep.yaml").write_text(sweep)
    forgetful = BASH.replace("[[ -e $state ]]", "(( $1 % 4 )) && [[ -e $state ]]")
    Path("train.sh").write_text(forgetful)
    assert main(["run", "sweep.yaml"]) == 0
    assert "it has started anew instead of resuming" in capsys.readouterr().out


def test_a_budget_grows_with_a_sweep_that_was_begun(folder, capsys):
    Path("sweep.yaml").write_text(BY_EPOCH)
    assert main(["run", "sweep.yaml", "--budget", "+6"]) == 2
    assert "runs/sweep holds no search whose budget could grow" in (
        capsys.readouterr().err
    )
    Path("train.sh").write_text("exit 1")
    assert main(["run", "sweep.yaml", "--run-dir", "failed"]) == 3
    assert main(["run", "sweep.yaml", "--run-dir", "failed"]) == 3
    assert main(["run", "sweep.yaml", "--run-dir", "failed"]) == 3
    assert "with --budget +N if the budget is spent" in capsys.readouterr().err
    Path("train.sh").write_text(BASH)
    again = ["run", "sweep.yaml", "--run-dir", "failed", "--retry-failed", "--json"]
    assert main(again) == 2
    assert "add to it with --budget +N" in capsys.readouterr().err
    assert main([*again, "--budget", "+30"]) == 0
    assert told(capsys)["epochs"] == 54
    with pytest.raises(SystemExit):
        main(["plan", "sweep.yaml", "--budget", "+6"])
