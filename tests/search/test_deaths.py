"""A configuration that kills its process fails; others, and interrupts, do not."""

import math
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from types import SimpleNamespace

import pytest
from deadly import CANDIDATES, GUILTY, INNOCENT, Deadly, trained
from kept_search import Rising, a_search, facts, whole
from killing import forked

from risingsearch.errors import SearchFailedError, SetupError, WorkerError
from risingsearch.search.gpus import GpuPool
from risingsearch.search.search import RisingSearch
from risingsearch.storage.journal import read

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes fork"),
    pytest.mark.filterwarnings("ignore:the code has changed"),
]


def deadly_search(trainable, **options):
    given = {"policy": "round-robin", "budget": 18, "max_epochs": 4, "seed": 0}
    return RisingSearch(trainable, CANDIDATES, shuffle=False, **given | options)


def check_only_the_guilty_failed(result, max_failures, folder, attempts):
    assert result.n_epochs == 18
    assert [arm.arm for arm in result.arms if arm.status == "failed"] == [GUILTY]
    assert result.arms[GUILTY].failures == max(attempts, max_failures + 1)
    assert result.arms[GUILTY].charged == 2
    (failure,) = result.failures
    assert "killed its process in epoch 2" in str(failure.failure)
    counts = Counter(trained(folder))
    assert counts.pop((GUILTY, 2)) == attempts
    return counts


@pytest.fixture(params=["n_jobs", "GpuPool"])
def workers(request, monkeypatch):
    if request.param == "n_jobs":
        yield {"n_jobs": 2}
        return
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with GpuPool() as pool:
        yield {"executor": pool}


@pytest.mark.parametrize(("with_run_dir", "max_failures"), [(True, 0), (False, 1)])
def test_in_worker_processes(tmp_path, workers, with_run_dir, max_failures):
    options = {"run_dir": tmp_path / "run"} if with_run_dir else {}
    search = deadly_search(
        Deadly(tmp_path), max_failures=max_failures, **options, **workers
    )
    counts = check_only_the_guilty_failed(
        search.run(), max_failures, tmp_path, max_failures + 1
    )
    assert set(counts.values()) == {1}
    if with_run_dir and "n_jobs" in workers:
        again = RisingSearch.resume(tmp_path / "run", search.trainable)
        assert facts(again.run())[:3] == facts(search.result())[:3]


@pytest.mark.parametrize("max_failures", [0, 2])
def test_in_the_process_of_the_search(tmp_path, max_failures):
    search = {"run_dir": tmp_path / "run", "max_failures": max_failures}
    attempts = max(2, max_failures + 1)
    for _ in range(attempts):
        assert not forked(lambda: deadly_search(Deadly(tmp_path), **search).run())
    result = deadly_search(Deadly(tmp_path), **search).run()
    counts = check_only_the_guilty_failed(result, max_failures, tmp_path, attempts)
    assert set(counts.values()) == {1}
    assert RisingSearch.saved_result(tmp_path / "run").n_epochs == 18


def test_in_an_executor_of_the_caller_the_next_search_knows(tmp_path):
    trainable = Deadly(tmp_path, together=True)

    def search(executor):
        return deadly_search(
            trainable, executor=executor, n_jobs=2, run_dir=tmp_path / "run"
        )

    for _ in range(2):
        said = "cannot be replaced: give n_jobs without an executor"
        with (
            ProcessPoolExecutor(2) as executor,
            pytest.raises(SearchFailedError, match=said),
        ):
            search(executor).run()
    with ProcessPoolExecutor(2) as executor:
        result = search(executor).run()
    counts = check_only_the_guilty_failed(result, 0, tmp_path, 2)
    assert counts.pop((INNOCENT, 2)) == 2
    assert set(counts.values()) == {1}


def test_with_error_score_raise_it_is_raised(tmp_path):
    search = deadly_search(Deadly(tmp_path), n_jobs=2, error_score="raise")
    with pytest.raises(WorkerError, match="arm 3 killed its process"):
        search.run()


class UsesGpu(Deadly):
    """Fails in each epoch after an error of the GPU in the same process."""

    is_usable = True

    def __init__(self, folder, error):
        super().__init__(folder)
        self.error = error

    def train(self, state):
        arm, epoch = state["arm"], state["epochs"] + 1
        if (arm, epoch) == (GUILTY, 2) or not UsesGpu.is_usable:
            UsesGpu.is_usable = "of memory" in self.error or "ordinal" in self.error
            if self.error == "nan":
                return math.nan
            raise RuntimeError(self.error)
        return super().train(state)


ERRORS = [
    "CUDA error: device-side assert triggered",
    "CUDA error: an illegal memory access was encountered\nCompile with `...`",
    "HIP error: the operation cannot be performed",
    "CUDA out of memory. Tried to allocate 2 GiB",
    "CUDA error: out of memory",
]


def check_the_guilty_failed_alone(result):
    assert [arm.arm for arm in result.arms if arm.status == "failed"] == [GUILTY]
    assert result.n_epochs == 18


@pytest.mark.parametrize("error", ERRORS)
def test_a_worker_that_cannot_use_its_gpu_is_replaced(tmp_path, error):
    search = deadly_search(UsesGpu(tmp_path, error), n_jobs=2, deterministic=True)
    result = search.run()
    check_the_guilty_failed_alone(result)


@pytest.fixture
def torch(monkeypatch):
    """Have a torch that finds out at the next use of its second GPU."""

    def synchronize(device):
        if device == 1 and not UsesGpu.is_usable:
            raise RuntimeError

    cuda = SimpleNamespace(
        is_initialized=lambda: True,
        device_count=lambda: 3,
        memory_reserved=lambda device: device == 1,
        synchronize=synchronize,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))


LOST = ["CUDA error: unspecified launch failure", "this batch is bad", "nan"]


@pytest.mark.parametrize("error", [*ERRORS[:3], *LOST])
def test_a_process_that_cannot_use_its_gpu_ends_the_run(
    tmp_path, monkeypatch, request, error
):
    if error in LOST:
        request.getfixturevalue("torch")
    monkeypatch.setattr(UsesGpu, "is_usable", True)
    trainable = UsesGpu(tmp_path, error)
    with pytest.raises(SetupError, match=r"(?s)^arm 3 has failed \(.*, and this proc"):
        deadly_search(trainable, run_dir=tmp_path / "run").run()
    UsesGpu.is_usable = True  # as in a new process
    result = RisingSearch.resume(tmp_path / "run", trainable).run()
    check_the_guilty_failed_alone(result)


@pytest.mark.usefixtures("torch")
def test_an_error_that_leaves_the_gpu_usable_is_an_ordinary_failure(tmp_path):
    trainable = UsesGpu(tmp_path, "CUDA error: invalid device ordinal")
    check_the_guilty_failed_alone(deadly_search(trainable).run())


def test_in_an_executor_of_the_caller_a_lost_gpu_ends_the_run(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor:
        search = deadly_search(UsesGpu(tmp_path, ERRORS[0]), executor=executor)
        with pytest.raises(SetupError, match="its worker process cannot use the GPU"):
            search.run()


@pytest.mark.parametrize(
    "error",
    [
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with ...",
        "CUDA error: initialization error",
        "Unable to handle autograd's threading in combination with fork-based "
        "multiprocessing.",
    ],
)
def test_a_process_that_was_forked_after_cuda_began_ends_the_run(tmp_path, error):
    search = deadly_search(UsesGpu(tmp_path, error))
    with pytest.raises(SetupError, match=r"give a GpuPool as executor, or call multi"):
        search.run()


OTHERS_CONTINUE = pytest.mark.filterwarnings("ignore:the code has changed")
"""A trainable of another file continues the search."""


class Killed(Rising):
    """Is killed in an epoch, or told to terminate, or interrupted twice."""

    def __init__(self, at, *signals):
        super().__init__()
        self.at, self.signals = at, signals

    def train(self, state):
        result = super().train(state)
        if len(self.trained) == self.at:
            for number in self.signals:
                os.kill(os.getpid(), number)
        return result


TERMINATED = [(signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)]


@OTHERS_CONTINUE
@pytest.mark.parametrize("signals", TERMINATED)
def test_an_interrupt_is_no_failure(tmp_path, folder, signals):
    def interrupted():
        try:
            a_search(folder, Killed(4, *signals), epochs_per_job=2).run()
        finally:
            os._exit(0)

    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            interrupted()
        os.waitpid(pid, 0)
    events = [event["event"] for event in read(folder / "journal.jsonl").events]
    assert events.count("released") == 3
    assert "died" not in events
    expected = whole(tmp_path, epochs_per_job=2)
    assert facts(a_search(folder, epochs_per_job=2).run()) == facts(expected)


@OTHERS_CONTINUE
def test_killed_once_it_ends_as_if_it_had_not_been(tmp_path, folder):
    assert not forked(lambda: a_search(folder, Killed(9, signal.SIGKILL)).run())
    assert facts(a_search(folder).run()) == facts(whole(tmp_path))


@OTHERS_CONTINUE
def test_threads_that_were_killed_with_an_arm_train_on(tmp_path, folder):
    def killed():
        with ThreadPoolExecutor(3) as threads:
            a_search(folder, Killed(9, signal.SIGKILL), executor=threads).run()

    assert not forked(killed)
    with ThreadPoolExecutor(3) as threads:
        result = a_search(folder, executor=threads).run()
        expected = whole(tmp_path, executor=threads)
    assert facts(result) == facts(expected)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("workers", ["n_jobs=2", "executor=pool"])
def test_no_worker_process_outlives_the_process_of_the_search(
    tmp_path, number, workers
):
    """The pipe is at its end when no worker holds it open."""
    program = tmp_path / "program.py"
    program.write_text(
        "import contextlib, os, time\n"
        "from risingsearch import Functions, GpuPool, RisingSearch\n"
        "def train(state):\n"
        "    os.write(1, f'{os.getpid()}\\n'.encode())\n"
        "    time.sleep(3600)\n"
        "def start(params, seed):\n"
        "    return 0\n"
        "if __name__ == '__main__':\n"
        f"    pool = GpuPool() if 'pool' in '{workers}' else None\n"
        "    RisingSearch(Functions(start, train), [{'a': 1}, {'a': 2}], budget=2, "
        f"{workers}).run()\n"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "0,1"}
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as search:
        assert search.stdout.readline() != search.stdout.readline()
        search.send_signal(number)
        assert search.stdout.read() == b""


@pytest.mark.parametrize("workers", ["fork", "spawn", "forkserver", "GpuPool"])
def test_nor_does_one_that_starts_when_the_search_has_been_killed(tmp_path, workers):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, os, signal, time\n"
        "from risingsearch import GpuPool\n"
        "from risingsearch.search.processes import OwnProcesses\n"
        "def wait():\n"
        "    while True:\n"
        "        try:\n"
        "            os.kill(int(os.environ['SEARCH']), 0)\n"
        "        except ProcessLookupError:\n"
        "            break\n"
        "        time.sleep(0.01)\n"
        "if __name__ == '__main__':\n"
        "    os.environ['SEARCH'] = str(os.getpid())\n"
        "    os.register_at_fork(after_in_child=wait)\n"
        f"    if '{workers}' == 'GpuPool':\n"
        "        pool = GpuPool()\n"
        "    else:\n"
        f"        multiprocessing.set_start_method('{workers}')\n"
        "        OwnProcesses(1).start()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "else:\n"
        "    wait()\n"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "0"}
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as search:
        search.wait()
        assert search.stdout.read() == b""


def test_a_script_that_no_worker_can_import_is_told_how(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from risingsearch import Functions, GpuPool, RisingSearch\n"
        "pool = GpuPool(max_workers=1)\n"
        "RisingSearch(Functions(dict, len), [{}], budget=1, executor=pool).run()\n"
    )
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "0"}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "SetupError: a worker process has ended before its first job" in done.stderr
