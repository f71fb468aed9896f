import pytest

from benchmarks.peers import audit
from benchmarks.peers.jobs import Job, Task
from benchmarks.peers.runners import rising, sklearn
from benchmarks.shared.problems import BUDGET, load


def job(tmp_path, *searches):
    return Job("digits", list(searches), [3, 4], str(tmp_path))


@pytest.fixture
def task(tmp_path):
    X, y, (train, valid) = load("digits")
    few = train[:300], valid[:100]
    return Task(job(tmp_path), 0, tmp_path / "log", X, y, few)


def test_searches_of_this_environment_stay_within_the_budget(task):
    counts = []
    for search in (rising.auto, sklearn.halving, sklearn.in_full):
        task.log.unlink(missing_ok=True)
        search(task)
        counts.append(audit.n_epochs(task.log))
    assert counts == [BUDGET, 264, BUDGET]
