"""A sweep with its checkpoints in an object store goes on where its folders are not."""

import os
import shutil
import sys
from pathlib import Path

import fsspec
import pytest

from risingsearch.errors import (
    InvalidParameterError,
    RunDirError,
    ScriptError,
    SetupError,
)
from risingsearch.scripts.run import ARMS, resume_sweep, run_sweep
from risingsearch.scripts.sweep import checked_sweep
from risingsearch.scripts.trainable import ArchivedTrainable
from risingsearch.storage.object_store import ObjectStore

TRAIN = """
import json, os, pathlib
folder = pathlib.Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"], "deep")
folder.mkdir(exist_ok=True)
seen = folder / "seen"
for epoch in range(
    int(os.environ["RISINGSEARCH_FROM_EPOCH"]) + 1,
    int(os.environ["RISINGSEARCH_TO_EPOCH"]) + 1,
):
    with seen.open("a") as file:
        file.write(f"{epoch} ")
    with open("trained", "a") as file:
        file.write(os.environ["RISINGSEARCH_ARM"] + f" {epoch}\\n")
    print(json.dumps({"epoch": epoch, "score": len(seen.read_text().split())}))
"""
URL = "memory://sweeps/first"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Work in a folder with the script, and with an empty store."""
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(TRAIN)
    yield tmp_path
    fsspec.filesystem("memory").store.clear()


def sweep(**changes):
    described = {
        "command": [sys.executable, "-SE", "train.py"],
        "parameters": {"a": {"type": "int", "low": 1, "high": 99}},
        "budget": 10,
        "candidates": 4,
        "seed": 0,
        "max_epochs": 4,
        "checkpoints": URL,
    }
    return checked_sweep(described | changes, "sweep.yaml")


def seen_by(checkpoint):
    return (checkpoint / "deep" / "seen").read_text().split()


def trained():
    return Path("trained").read_text().splitlines()


class TestRunning:
    def test_all_directories_are_in_the_store(self):
        result, checkpoint = run_sweep(sweep(), Path("run"))
        assert result.n_epochs == 10
        assert len(seen_by(checkpoint)) == result.best_epoch
        assert not Path("run", "checkpoints").exists()
        assert fsspec.filesystem("memory").find("/sweeps/first")

    def test_what_is_on_disk_is_not_loaded_from_there(self, monkeypatch):
        loaded = []
        get = ObjectStore.get
        monkeypatch.setattr(
            ObjectStore,
            "get",
            lambda self, name: loaded.append(name) or get(self, name),
        )
        run_sweep(sweep(), Path("run"))
        assert len(loaded) == 1  # the best state, for the result

    def test_another_machine_goes_on_without_the_folders(self):
        run_sweep(sweep(), Path("run"))
        shutil.rmtree(Path("run", ARMS))
        result, checkpoint = run_sweep(sweep(), Path("run"))  # nothing to train
        assert len(seen_by(checkpoint)) == result.best_epoch
        assert len(trained()) == 10
        result, checkpoint = resume_sweep(Path("run"), 4)
        assert result.n_epochs == 14
        assert len(trained()) == len(set(trained())) == 14
        assert len(seen_by(checkpoint)) == result.best_epoch

    def test_folders_of_another_time_are_replaced(self):
        run_sweep(sweep(), Path("run"))
        for path in Path("run", ARMS).glob("arm-*/epoch-*/deep/seen"):
            path.write_text("1 2 3 4 5 6 7")
        result, checkpoint = resume_sweep(Path("run"), 4)
        assert result.best_score <= 4.0
        assert len(seen_by(checkpoint)) == result.best_epoch

    def test_a_best_state_that_is_lost_is_said_and_all_else_is_there(self):
        whole, _ = run_sweep(sweep(), Path("run"))
        lost = f"arm-{whole.best_arm:06d}-epoch-{whole.best_epoch:06d}.ckpt"
        files = fsspec.filesystem("memory")
        [path] = [path for path in files.find("/") if path.endswith(lost)]
        files.pipe_file(path, b"forged")
        with pytest.warns(RuntimeWarning, match="best arm is not loaded"):
            result, _ = run_sweep(sweep(), Path("run"))
        assert result.best_score == whole.best_score


class TestRefused:
    def test_secrets_are_not_shown(self):
        with pytest.raises(InvalidParameterError) as caught:
            sweep(checkpoints="s3://me:secret@bucket/run")
        assert "credentials are taken from the environment" in str(caught.value)
        assert "secret" not in str(caught.value)

    @pytest.mark.parametrize("changes", [{"resume": False}, {"launcher": "slurm"}])
    def test_scripts_that_do_not_resume_from_there(self, changes):
        with pytest.raises(InvalidParameterError, match="leave out one of the two"):
            sweep(**changes)

    def test_a_run_that_has_its_checkpoints_elsewhere(self):
        run_sweep(sweep(), Path("run"))
        with pytest.raises(RunDirError, match=f"begun with checkpoints: {URL}"):
            run_sweep(sweep(checkpoints=None), Path("run"))
        run_sweep(sweep(checkpoints=None), Path("local"))
        with pytest.raises(RunDirError, match="leave that out to resume it"):
            run_sweep(sweep(), Path("local"))

    def test_a_store_that_lacks_all_of_them(self):
        run_sweep(sweep(), Path("run"))
        with pytest.raises(SetupError, match="holds no checkpoints"):
            run_sweep(sweep(checkpoints="memory://sweeps/second"), Path("run"))

    def test_a_link_that_leads_nowhere_elsewhere(self, here):
        own = ArchivedTrainable(["true"], here / "arms")
        own.arms[7] = 0
        run = own.start({}, 7)
        run.epoch = 1
        own.folder_of(run).mkdir(parents=True)
        own.folder_of(run).joinpath("data").symlink_to("/etc")
        with pytest.raises(ScriptError, match=r"files/data.* is a link to an absolute"):
            own.save(run, str(here / "state"))


def test_links_within_a_directory_come_back(here):
    own = ArchivedTrainable(["true"], here / "arms")
    own.arms[7] = 0
    run = own.start({"lr": 0.5}, 7)
    run.epoch = 3
    folder = own.folder_of(run)
    folder.mkdir(parents=True)
    folder.joinpath("epoch-3").write_text("weights")
    folder.joinpath("last").symlink_to("epoch-3")
    own.save(run, str(here / "state"))
    shutil.rmtree(here / "arms")
    again = ArchivedTrainable(["true"], here / "arms").load(str(here / "state"))
    assert again == run
    assert os.readlink(folder / "last") == "epoch-3"
    assert folder.joinpath("last").read_text() == "weights"
