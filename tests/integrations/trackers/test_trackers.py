import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from searching import TRACKERS, a_search, after, scores
from stores import STORES

from risingsearch import MissingDependencyError

kinds = pytest.mark.parametrize("kind", TRACKERS)
pytestmark = [
    # mlflow's own, of SQLAlchemy, and of files that it leaves to be closed
    pytest.mark.filterwarnings("ignore:::sqlalchemy"),
    pytest.mark.filterwarnings("ignore:.*noload"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def once(expected):
    """Return what a store holds that has every score once."""
    return {
        arm: {step: [pytest.approx(score)] for step, score in curve.items()}
        for arm, curve in expected.items()
    }


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=[pytest.mark.slow] * (k == "mlflow")) for k in TRACKERS],
)
def test_killed_and_resumed_every_step_is_logged_once(kind, tmp_path):
    script = Path(__file__).with_name("searching.py")
    # W&B lets child processes share a service, which would know of the killed one's run
    own = {name: value for name, value in os.environ.items() if name != "WANDB_SERVICE"}
    command = [sys.executable, script, kind]
    killed = subprocess.run(command, cwd=tmp_path, env=own, check=False)
    assert killed.returncode == -9
    logged = sum(len(curve) for curve in STORES[kind]().values())
    result = a_search(TRACKERS[kind](), run_dir="run").run()
    assert 0 < logged < result.n_epochs
    found, expected = STORES[kind](), once(scores(result))
    if kind == "wandb":  # its files may lack the last epochs before the end
        known = {arm: {k: expected[arm][k] for k in found[arm]} for arm in found}
        assert found == known
        assert sum(map(len, found.values())) >= result.n_epochs - 6
    else:
        assert found == expected


@kinds
def test_another_run_of_the_same_search_adds_to_it(kind):
    search = a_search(TRACKERS[kind](), after(3, lambda epoch: epoch.stop()))
    before = search.run()
    assert STORES[kind]() == once(scores(before))
    after_all = search.run()
    assert "revived" in after_all.history["reason"]
    assert after_all.n_epochs > before.n_epochs
    assert STORES[kind]() == once(scores(after_all))


@kinds
def test_without_its_package_it_says_what_to_install(kind, monkeypatch):
    monkeypatch.setattr(
        "risingsearch.integrations.trackers.tracker.find_spec", lambda name: None
    )
    with pytest.raises(MissingDependencyError, match=rf"risingsearch\[{kind}\]"):
        a_search(TRACKERS[kind]()).run()


@kinds
def test_it_can_be_pickled(kind):
    tracker = TRACKERS[kind]()
    assert vars(pickle.loads(pickle.dumps(tracker))) == vars(tracker)
