"""A study that is killed anywhere: the epoch told is the epoch trained."""

import os
import random
import signal

import optuna
import pytest
from optuna.artifacts import Backoff, FileSystemArtifactStore
from optuna.artifacts.exceptions import ArtifactNotFound

import risingsearch.integrations.optuna as rising

BUDGET, MAX_EPOCHS = 12, 4


class Bucket:
    """A store of objects, each whole or not there."""

    def __init__(self, folder):
        self.folder = folder

    def open_reader(self, artifact_id):
        return (self.folder / artifact_id).open("rb")

    def write(self, artifact_id, content_body):
        part = self.folder / f".{artifact_id}"
        part.write_bytes(content_body.read())
        part.rename(self.folder / artifact_id)

    def remove(self, artifact_id):
        try:
            (self.folder / artifact_id).unlink()
        except FileNotFoundError as error:
            raise ArtifactNotFound from error


STORES = {
    "bucket": Bucket,
    "files": FileSystemArtifactStore,
    "tried again": lambda folder: Backoff(Bucket(folder), min_delay=0.001),
}


def optimize(folder, store, number=-1):
    """Search, and kill this process at the call of that number."""
    calls = iter(range(1000))

    def step():
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def objective(trial):
        arm = rising.arm(trial)
        top = trial.suggest_int("top", 1, 100)
        n_trained = 0
        if arm.checkpoint is not None:
            n_trained = int((arm.checkpoint / "epochs").read_text())
        for epoch in range(arm.from_epoch, MAX_EPOCHS):
            n_trained += 1
            step()
            trial.report(top * n_trained, epoch)
            with arm.save() as saved:
                (saved / "epochs").write_text(str(n_trained))
                step()
            step()
            if trial.should_prune():
                raise optuna.TrialPruned
        return top * n_trained

    (folder / "objects").mkdir(exist_ok=True)
    study = optuna.create_study(
        study_name="killed",
        storage=f"sqlite:///{folder}/study.db",
        direction="maximize",
        load_if_exists=True,
        sampler=rising.RisingSampler(
            BUDGET, MAX_EPOCHS, seed=0, artifact_store=store(folder / "objects")
        ),
        pruner=rising.RisingPruner(),
    )
    study.optimize(objective)
    return study


@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.parametrize("kind", STORES)
def test_the_epoch_told_is_the_epoch_trained(tmp_path, kind):
    number = random.Random(kind).randrange(3, 3 * BUDGET)
    pid = os.fork()
    if pid == 0:
        optimize(tmp_path, STORES[kind], number)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    study = optimize(tmp_path, STORES[kind])
    told = {}
    for trial in study.get_trials():
        attrs, scores = trial.user_attrs, trial.intermediate_values
        if attrs.get("rising:n_epochs"):
            for epoch in range(
                attrs.get("rising:from_epoch", 0),
                attrs.get("rising:given_up", len(scores)),
            ):
                arm = attrs.get("rising:arm", trial.number)
                assert (arm, epoch) not in told
                told[arm, epoch] = scores[epoch] / trial.params["top"]
    assert len(told) == BUDGET
    assert all(trained == epoch + 1 for (_, epoch), trained in told.items())
