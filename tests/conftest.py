import gc
import itertools
import logging
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

# The tests run side by side: a library with a thread per core would keep them waiting.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from xdist.scheduler import LoadScopeScheduling

from risingsearch.policies import POLICIES, policy_info
from risingsearch.search import loop, training, wall_clock
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


# Whole files, and pages of the documentation, that one worker alone imports and runs:
# the first has Ray and its session, the second torch and what is built on it, and the
# third compiles and has MLflow, of which a process's first time takes seconds.
HOMES = (
    (
        "risingsearch/integrations/ray/",
        "tests/benchmarks/adapters/test_ray.py",
        "tests/integrations/ray/",
        "tests/test_coming_from.py",
        "tests/test_examples.py",
    ),
    (
        "risingsearch/integrations/torch/",
        "tests/benchmarks/",
        "tests/integrations/torch/",
        "tests/testing/test_trainables.py",
        *(
            "tests/test_docs.py::test_every_block_runs_and_prints_what_it_shows"
            f"[docs/{page}.md]"
            for page in ("pytorch", "which-knob-when")
        ),
    ),
    (
        "risingsearch/curves/",
        "risingsearch/policies/",
        "risingsearch/simulation/",
        "tests/cli/test_simulate.py",
        "tests/curves/",
        "tests/integrations/trackers/",
        "tests/policies/",
        "tests/priors/test_recipes.py",
        "tests/simulation/",
    ),
)

# They take longest: begun first, none of them is still running when all else is done.
LONG = (
    "tests/integrations/dask/",
    "tests/integrations/optuna/test_processes.py",
    "tests/integrations/optuna/test_sqlite_lock.py",
    "tests/test_notebooks.py",
    "tests/integrations/sklearn/test_processes.py",
    "tests/scripts/test_slurm.py",
    "tests/search/slurm/test_on_a_cluster.py",
    "tests/integrations/trackers/",
    "tests/search/test_object_stores.py",
    "tests/cli/test_sweep",
    "tests/test_docs.py",
    "tests/search/test_killing.py",
    "tests/scripts/test_killing.py",
)


TRIES = 9  # to start Ray, which gives up after 30 s, on a machine that is busy
SESSION = pytest.StashKey[pytest.Session]()


def home_of(place, n_workers):
    """Return the number of the worker that alone runs a path or test, or None."""
    for number, places in enumerate(HOMES):
        if place.startswith(places):
            return number % n_workers
    return None


def number_of(worker):
    """Return the number in the name of a worker."""
    return int(worker.removeprefix("gw"))


def pytest_sessionstart(session):
    """Let the scheduler say how many tests all workers have between them."""
    session.config.stash[SESSION] = session


class NotOfOthers:
    """Leaves to another worker what it alone imports, in this folder and outside."""

    @staticmethod
    def pytest_ignore_collect(collection_path, config):
        own = config.workerinput
        n_workers = own["workercount"]
        place = collection_path.relative_to(config.rootpath).as_posix()
        home = home_of(f"{place}/" if collection_path.is_dir() else place, n_workers)
        here = home in (None, number_of(own["workerid"]) % n_workers)
        return None if here else True


def pytest_configure(config):
    """Register what a conftest's hook would do in its own folder only.

    Workers begin to collect at other folders: else each compiles the same files.
    """
    if not hasattr(config, "workerinput"):
        return
    config.pluginmanager.register(NotOfOthers)
    if config.args == config.getini("testpaths"):
        places = [
            path
            for path in sorted(Path(__file__).parent.iterdir())
            if (path.is_dir() or path.match("test_*.py"))
            and not NotOfOthers.pytest_ignore_collect(path, config)
        ]
        own = config.workerinput
        first = number_of(own["workerid"]) * len(places) // own["workercount"]
        config.args[:1] = map(str, [*places[first:], *places[:first]])


class OneWorkerForAFile(LoadScopeScheduling):
    """Keeps the tests of a file together: one worker imports and sets up for them.

    The pages of the documentation share nothing. A worker begins with what it alone
    has collected, then come the files that take longest, then those of most tests.
    """

    APART = ("tests/test_docs.py",)

    def __init__(self, config, log):
        super().__init__(config, log)
        self.places = {}  # of every worker: the index of each test that it has

    def _split_scope(self, nodeid):
        return nodeid if nodeid.startswith(self.APART) else nodeid.split("::")[0]

    def _first(self, unit):
        """Return what units are sorted by."""
        scope, tests = unit
        long = [scope.startswith(name) for name in LONG]
        rank = long.index(True) if any(long) else len(LONG)
        return home_of(scope, self.numnodes) is None, rank, -len(tests)

    def add_node_collection(self, node, collection):
        self.registered_collections[node] = list(collection)
        self.places[node] = {nodeid: k for k, nodeid in enumerate(collection)}

    def schedule(self):
        if self.collection is None:
            units = {}
            for nodeid in itertools.chain(*self.registered_collections.values()):
                units.setdefault(self._split_scope(nodeid), {})[nodeid] = False
            self.workqueue.update(sorted(units.items(), key=self._first))
            self.collection = [nodeid for unit in units.values() for nodeid in unit]
            self.config.stash[SESSION].testscollected = len(self.collection)
        for _ in range(2):  # a worker is told its next test before it ends this one
            for node in self.nodes:
                self._reschedule(node)

    def _reschedule(self, node):
        if node.shutting_down or self._pending_of(self.assigned_work[node]) > 2:
            return
        for scope, unit in self.workqueue.items():
            home = home_of(scope, self.numnodes)
            if home in (None, number_of(node.gateway.id) % self.numnodes) and all(
                nodeid in self.places[node] for nodeid in unit
            ):
                self.assigned_work[node][scope] = self.workqueue.pop(scope)
                left = [nodeid for nodeid, done in unit.items() if not done]
                node.send_runtest_some([self.places[node][nodeid] for nodeid in left])
                return
        node.shutdown()  # once it has run what it was given


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
    """Let Ctrl-C interrupt; skip what needs a GPU where torch sees none."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ray Tune leaves its own
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("it needs a GPU, and torch sees none on this machine")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """End Ray after the last test of its worker that may need it: it is never idle."""
    ours = [test and home_of(test.nodeid, len(HOMES)) == 0 for test in (item, nextitem)]
    if hasattr(item.config, "workerinput") and ours[0] and not ours[1]:
        import ray

        ray.shutdown()


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
        # Else it starts workers before they are needed, and ends them a second later.
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        patch.setenv("RAY_idle_worker_killing_time_threshold_ms", "3600000")
        patch.setenv("RAY_worker_niceness", "0")  # else they wait for all other tests
        for _ in range(TRIES):
            try:
                ray.init(
                    address="local",
                    num_cpus=2,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
                break
            except Exception as error:  # it has no kind of its own
                if "timed out during startup" not in str(error):
                    raise
                ray.shutdown()
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


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that only a test moves."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = clock.perf_counter = clock.time = lambda: clock.now
    for module in (loop, training, wall_clock):
        monkeypatch.setattr(module, "time", clock)
    return clock
