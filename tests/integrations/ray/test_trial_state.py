"""A function trainable of PyTorch that is paused and resumed."""

import shutil

import pytest
import torch
from ray.tune import Checkpoint
from torch import nn

from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.integrations.ray import TrialState, trial_state


class PausedError(Exception):
    """The end of a slice, as Ray ends it."""


class Session:
    """Stands for Ray in a trial: keeps what is reported, and pauses when told."""

    def __init__(self, folder):
        self.folder = folder
        self.checkpoint = None
        self.reports = []
        self.pauses_after = ()

    def get_checkpoint(self):
        return self.checkpoint

    def report(self, metrics, *, checkpoint):
        self.reports.append(metrics)
        kept = self.folder / str(len(self.reports))
        shutil.copytree(checkpoint.path, kept)
        self.checkpoint = Checkpoint.from_directory(kept)
        if len(self.reports) in self.pauses_after:
            raise PausedError


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Return a function that begins a trial."""

    def begin(name):
        (tmp_path / name).mkdir()
        session = Session(tmp_path / name)
        for verb in ("get_checkpoint", "report"):
            monkeypatch.setattr(trial_state, verb, getattr(session, verb))
        return session

    return begin


def train(n_epochs=6):
    torch.manual_seed(0)
    X, y = torch.randn(32, 4), torch.randn(32, 1)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    slower = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    state = TrialState(net, optimizer, slower)
    for _ in range(state.epochs, n_epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(X), y)
        loss.backward()
        optimizer.step()
        slower.step()
        state.report({"loss": loss.item()})


def test_a_paused_trial_ends_as_if_it_had_not_been(session):
    whole = session("whole")
    train()
    paused = session("paused")
    paused.pauses_after = (2, 3)
    for _ in paused.pauses_after:
        with pytest.raises(PausedError):
            train()
    train()
    assert paused.reports == whole.reports
    assert [report["epoch"] for report in whole.reports] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("objects", [(), (nn.Linear(1, 1), 3)])
def test_what_has_no_state_is_refused(objects, session):
    session("begun")
    with pytest.raises(InvalidParameterError, match="with state_dict and load_state"):
        TrialState(*objects)


def test_other_objects_than_were_saved_are_refused(session):
    session("begun")
    net = nn.Linear(1, 1)
    TrialState(net).report({"loss": 0.5})
    with pytest.raises(RunDirError, match="has 1 states, and TrialState was given"):
        TrialState(net, torch.optim.SGD(net.parameters()))
