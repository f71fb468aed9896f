import gc
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

# The tests run side by side: a library with a thread per core would keep them waiting.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from xdist.scheduler import LoadScopeScheduling

from risingsearch.policies import POLICIES, policy_info
from risingsearch.simulation import engine, plan

sys.path.insert(0, str(Path(__file__).parent))  # for slurm_cluster

from slurm_cluster import NoSlurmError, started

# The same examples every time. With the oldest core, nothing needs it.
with suppress(ModuleNotFoundError):
    from hypothesis import settings

    settings.register_profile("same", derandomize=True, database=None, deadline=None)
    settings.load_profile("same")

# In the background, or under nohup, they are ignored, and in all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

NEEDED = {
    "reward_range": (-3.0, 3.0),
    "models": [np.linspace(1.0, end, 200).tolist() for end in (0.2, 0.5, 0.9)],
}


def pytest_xdist_auto_num_workers():
    """Run one worker more than there are cores: many tests wait for other processes."""
    return (os.cpu_count() or 1) + 1


class OneWorkerForAFile(LoadScopeScheduling):
    """Keeps the tests of a file together: one worker imports and sets up for them.

    Those of Ray share one session, over all of their files; the pages of the
    documentation share nothing.
    """

    TOGETHER = ("tests/integrations/ray/", "tests/integrations/torch/")
    OF_RAY = ("tests/benchmarks/adapters/test_ray.py", "tests/test_coming_from.py")
    APART = ("tests/test_docs.py",)

    def _split_scope(self, nodeid):
        if nodeid.startswith(self.OF_RAY) and "ray" in nodeid.lower():
            return self.TOGETHER[0]
        for folder in self.TOGETHER:
            if nodeid.startswith(folder):
                return folder
        return nodeid if nodeid.startswith(self.APART) else nodeid.split("::")[0]


def pytest_xdist_make_scheduler(config, log):
    """Replace the way in which ``--dist`` hands out tests."""
    return OneWorkerForAFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave what is imported here out of all collections of garbage.

    They are a quarter of the time without this, and then a second each.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item):
    """Skip what needs a GPU where torch sees none."""
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("it needs a GPU, and torch sees none on this machine")


@pytest.fixture(scope="session")
def live_params():
    """Return a function: the parameters that a live search must give a policy."""

    def params(policy):
        if policy not in POLICIES:
            return {}
        return {name: NEEDED[name] for name in policy_info(policy).needs}

    return params


@pytest.fixture(scope="session")
def ray_address():
    """Start Ray once for all tests; return where it is."""
    import ray

    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        ray.init(
            address="local",
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture
def quiet_optuna():
    """Keep Optuna from logging each trial."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture
def tensorboard_curves():
    """Return a function: all scores by step, by arm, of the one search in a folder.

    A step that was logged twice has two scores.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def curves(folder, metric="score"):
        [search] = folder.iterdir()
        found = {}
        for run in search.glob("arm-*"):
            accumulator = EventAccumulator(str(run), purge_orphaned_data=False)
            accumulator.Reload()
            steps = found[int(run.name.removeprefix("arm-"))] = {}
            scored = metric in accumulator.Tags()["scalars"]  # not all epochs are lost
            for one in accumulator.Scalars(metric) if scored else ():
                steps.setdefault(one.step, []).append(one.value)
        return {arm: steps for arm, steps in found.items() if steps}

    return curves


@pytest.fixture(scope="session")
def started_slurm(tmp_path_factory):
    """Start a Slurm of one node with two slots, or skip where there can be none."""
    try:
        with started(tmp_path_factory.mktemp("slurm")) as cluster:
            yield cluster
    except NoSlurmError as error:
        pytest.skip(str(error))


@pytest.fixture
def slurm_cluster(started_slurm, monkeypatch):
    """Return a real Slurm that this process, and what it starts, submits jobs to."""
    for name, value in started_slurm.environment.items():
        monkeypatch.setenv(name, value)
    yield started_slurm
    started_slurm.cancel_all()


@pytest.fixture
def interpreted(monkeypatch):
    """Simulate without compiling: sooner where the runs are few, and the same bits."""
    monkeypatch.setattr(plan, "loop_for", lambda *_: engine.play)
