"""A search follows the number of workers, where that changes."""

import subprocess
import sys
from concurrent.futures import Future

import pytest
from example_search import start

from risingsearch.errors import InvalidParameterError
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.search.training import Workers, run_task


def train(state):
    state["epochs"] += 1
    return state["top"] * (1 - 0.5 ** state["epochs"])


def a_search(executor, **options):
    defaults = {"policy": "round-robin", "budget": 24, "max_epochs": 6, "seed": 0}
    candidates = [{"top": 0.5 + arm / 20} for arm in range(10)]
    return RisingSearch(
        Functions(start, train), candidates, executor=executor, **defaults | options
    )


class Growing(Workers):
    """Finishes its jobs only where as many are in flight as there should be."""

    def __init__(self, *numbers):
        super().__init__(is_elastic=True)
        self.numbers = list(numbers)
        self.waiting = []
        self.most = 0
        self.n_rests = 0

    @property
    def n_workers(self):
        if len(self.waiting) == self.numbers[0] and len(self.numbers) > 1:
            self.numbers.pop(0)  # comes while the search waits
        elif len(self.waiting) == self.numbers[0]:
            for future, trainable, task in self.waiting:
                future.set_result(run_task(trainable, task))
            self.waiting.clear()
        return self.numbers[0]

    def train(self, trainable, task):
        future = Future()
        self.waiting.append((future, trainable, task))
        self.most = max(self.most, len(self.waiting))
        return future

    def release_idle(self):
        self.n_rests += 1


class Empty(Workers):
    """Has no workers yet."""

    n_workers = 0

    def train(self, trainable, task):
        raise AssertionError


def test_workers_that_join_are_used_while_all_others_are_busy():
    workers = Growing(2, 4)
    result = a_search(workers).run()
    assert workers.most == 4
    assert result.n_epochs == 24
    assert workers.n_rests == 1


def test_an_order_that_is_fixed_needs_a_fixed_number():
    with pytest.raises(InvalidParameterError, match="has no workers yet"):
        a_search(Empty(is_elastic=True), deterministic=True)


def test_a_search_begun_on_workers_that_change_goes_on_anywhere(tmp_path):
    a_search(Growing(4), run_dir=tmp_path, callbacks=[lambda epoch: epoch.stop()]).run()
    result = RisingSearch.resume(tmp_path, Functions(start, train)).run()
    assert result.n_epochs == 24
    assert RisingSearch.saved_result(tmp_path).history == result.history


def test_a_search_loads_no_cluster():
    code = (
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from risingsearch import Functions, RisingSearch\n"
        "train = Functions(lambda params, seed: {}, lambda state: 0.5)\n"
        "with ThreadPoolExecutor(2) as threads:\n"
        "    RisingSearch(train, [{}], budget=2, executor=threads).run()\n"
        "print({'dask', 'distributed'} & sys.modules.keys())\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("given", ["dask", 4, object])
def test_what_runs_nothing_is_refused(given):
    with pytest.raises(InvalidParameterError, match=r"executor must be .*Dask client"):
        a_search(given, n_jobs=2)
