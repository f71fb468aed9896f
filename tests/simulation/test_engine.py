import importlib
import inspect
import math
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from risingsearch.curves.base import fresh, pull_limits
from risingsearch.curves.noise import Noise, make_noise, noisy
from risingsearch.curves.rested import CurveTable
from risingsearch.errors import PolicyError
from risingsearch.policies import AUTO, WAIT, list_policies, make_policy
from risingsearch.policies.base import arm_arrays, least_pulled
from risingsearch.simulation import engine
from risingsearch.simulation.engine import loop_for, new_record, play

ROUNDS = 4_000


def rising():
    """Five concave arms with Gaussian noise."""
    n = np.arange(1, ROUNDS + 1)
    half = np.array([10.0, 80.0, 300.0, 800.0, 1800.0])[:, None]
    end = np.array([0.5, 0.6, 0.7, 0.85, 0.95])[:, None]
    return CurveTable.create(end * n / (n + half), 0.05, "best-arm")


def rotting():
    """Four falling arms of different lengths, with Bernoulli rewards."""
    n = np.arange(1, ROUNDS + 1)
    means = np.exp(-n / np.array([160.0, 600.0, 1800.0, 6_000.0])[:, None])
    means[1, 1200:] = np.nan
    means[2, 1800:] = np.nan
    return CurveTable.create(means, "bernoulli", "greedy")


KNOTS = [1, 1000, 2400, ROUNDS]
DRIFT = [
    [0.2, 0.5, 0.6, 0.9],
    [0.7, 0.4, 0.6, 0.9],
    [0.1, 0.8, 0.5, 0.9],
    [0.6, 0.6, 0.4, 0.9],
]


class Scene(NamedTuple):
    """All three in one class, for which a policy is compiled once."""

    risen: np.ndarray  # (n_arms, ROUNDS), means by pull
    drifted: np.ndarray  # (n_arms, ROUNDS), what is added by round
    pulls: np.ndarray
    noise: Noise

    @classmethod
    def of_table(cls, table):
        still = np.zeros((table.n_arms, ROUNDS))
        return cls(table.means, still, table.pulls, table.noise)

    @classmethod
    def of_drift(cls):
        rounds = np.arange(1, ROUNDS + 1)
        drift = np.array(
            [np.interp(rounds, KNOTS, means) for means in zip(*DRIFT, strict=True)]
        )
        limits = np.full(len(drift), ROUNDS)
        return cls(np.zeros_like(drift), drift, limits, make_noise("gaussian", 0.2))

    @property
    def n_arms(self):
        return len(self.pulls)

    def mean(self, arm, n, t):
        return self.risen[arm, n - 1] + self.drifted[arm, t - 1]

    def draw(self, mean, arm, n, t, rng):
        return noisy(self.noise, mean, 1.0, rng)


SCENES = {
    "rising": Scene.of_table(rising()),
    "rotting": Scene.of_table(rotting()),
    "restless": Scene.of_drift(),
}


def run(loop, policy, environment, rounds=ROUNDS, checkpoints=(), seed=3):
    """Play one run and return everything that it leaves behind."""
    rng = np.random.default_rng(seed)
    policy.pulls_left[:] = pull_limits(environment, rounds)
    marks = np.array(checkpoints, dtype=np.int64)
    record = new_record(marks, environment.n_arms, rounds)
    with np.errstate(over="ignore", invalid="ignore"):
        loop(policy, fresh(environment), rounds, rng, record)
    return {
        "played": record.n_played[0],
        "pulls": record.pulls,
        "reward": record.reward,
        "found": record.best_mean,
        "arms": record.arms,
        "rewards": record.rewards.view(np.int64),  # bit for bit
        "generator": str(rng.bit_generator.state),
        "policy": [value for value in policy if isinstance(value, np.ndarray)],
    }


# That environments are compiled to the same bits is shown in tests/curves.
@pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != AUTO))
        for name in (info.name for info in list_policies())
    ],
)
def test_compiled_and_interpreted_runs_are_identical(name, scene):
    def make():
        return make_policy(name, scene.n_arms, ROUNDS)

    loop = loop_for(make(), fresh(scene), compiled=True)
    checkpoints = (1, 77, ROUNDS // 2, ROUNDS)
    compiled = run(loop, make(), scene, checkpoints=checkpoints)
    interpreted = run(play, make(), scene, checkpoints=checkpoints)
    assert compiled["played"] == compiled["pulls"].sum() > 0
    for part, value in interpreted.items():
        np.testing.assert_equal(compiled[part], value, err_msg=part)


class OneByOne(NamedTuple):
    """Round-robin, with ``stint`` pulls at a time."""

    available: np.ndarray
    pulls_left: np.ndarray
    horizon: np.ndarray
    pulls: np.ndarray
    stint: int

    @classmethod
    def create(cls, n_arms, horizon, max_pulls=None, *, stint=1):
        return cls(*arm_arrays(n_arms, horizon, max_pulls), stint)

    def select(self, t, rng):
        return least_pulled(self.available, self.pulls, 2**62)

    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1


class InSlices(OneByOne):
    def slice_length(self, arm):
        return self.stint


def test_reward_is_the_sum_of_means_and_found_the_mean_of_the_highest_reward():
    table = np.array([[0.1, 0.5, 0.2], [0.3, 0.4, 0.9]])
    environment = CurveTable.create(table)
    seen = run(play, OneByOne.create(2, 6), environment, 6, (1, 2, 3, 6))
    assert seen["arms"].tolist() == [0, 1, 0, 1, 0, 1]
    assert seen["reward"] == pytest.approx([0.1, 0.4, 0.9, 2.4])
    assert seen["found"] == pytest.approx([0.1, 0.3, 0.5, 0.9])


def test_an_arm_ends_with_its_curve_even_within_a_slice():
    table = np.array([[1.0, 1.0, np.nan, np.nan], [1.0, 1.0, 1.0, 1.0]])
    environment = CurveTable.create(table)
    seen = run(play, InSlices.create(2, 9, stint=3), environment, 9, (9,))
    assert seen["arms"].tolist() == [0, 0, 1, 1, 1, 1, -1, -1, -1]
    assert seen["played"] == 6
    assert seen["reward"].tolist() == [6.0]


def test_a_policy_that_stops_leaves_the_rest_unplayed():
    class Stops(OneByOne):
        def select(self, t, rng):
            return WAIT if t > 2 else 0

    environment = CurveTable.create(np.ones((2, 9)))
    seen = run(play, Stops.create(2, 9), environment, 9, (1, 9))
    assert seen["played"] == 2
    assert seen["reward"].tolist() == [1.0, 2.0]


class Chooses(OneByOne):
    """Chooses the arm ``stint``, available or not."""

    def select(self, t, rng):
        return self.stint


@pytest.mark.parametrize("compiled", [True, False])
def test_an_arm_that_is_not_there_is_refused(compiled):
    table = np.array([[1.0, 1.0, np.nan], [1.0, 1.0, 1.0]])
    environment = CurveTable.create(table)
    loop = loop_for(Chooses.create(2, 3), environment, compiled)
    assert run(loop, Chooses.create(2, 3, stint=1), environment, 3)["played"] == 3
    for arm in (0, 2, -(2**40)):  # the first has ended after two pulls
        with pytest.raises(PolicyError, match="must return an available arm or WAIT"):
            run(loop, Chooses.create(2, 3, stint=arm), environment, 3)


@pytest.mark.parametrize("stint", [0, -1])
def test_an_empty_slice_is_refused(stint):
    environment = CurveTable.create(np.ones((2, 9)))
    with pytest.raises(PolicyError, match="slice_length must return at least 1"):
        run(play, InSlices.create(2, 9, stint=stint), environment, 9)


def test_a_run_ends_when_its_arms_are_ended_from_outside():
    class Ended(OneByOne):
        def update(self, t, arm, reward, rng):
            self.pulls[arm] += 1
            if t == 5:
                self.pulls_left[:] = 1

    environment = CurveTable.create(np.ones((2, 50)))
    seen = run(play, Ended.create(2, 50), environment, 50, (50,))
    assert seen["played"] == 7
    assert seen["reward"].tolist() == [7.0]


def test_a_class_and_its_helpers_may_stand_in_a_function():
    last = 4

    def chosen(t):
        return min(last, t)

    class Within(OneByOne):
        def select(self, t, rng):
            return chosen(t)

    loop = loop_for(Within.create(5, 9), rising(), compiled=True)
    seen = run(loop, Within.create(5, 9), rising(), 9)
    assert seen["arms"].tolist() == [1, 2, 3, 4, 4, 4, 4, 4, 4]


class Kept(OneByOne):
    pass


def test_without_a_folder_to_keep_it_in_the_loop_is_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    loop = loop_for(Kept.create(5, 9), rising(), compiled=True)
    assert run(loop, Kept.create(5, 9), rising(), 9)["played"] == 9


class Sorts(OneByOne):
    def select(self, t, rng):
        return sorted({0: t})[0]


class Ordinary:
    def __init__(self):
        self.available = np.ones(5, dtype=bool)
        self.pulls_left = np.full(5, ROUNDS)

    def select(self, t, rng):
        return 0

    def update(self, t, arm, reward, rng):
        pass


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Sorts.create(5, ROUNDS), "numba cannot compile Sorts in CurveTable"),
        (Ordinary(), "Ordinary is not a NamedTuple"),
    ],
)
def test_what_cannot_be_compiled_is_interpreted_and_the_reason_given_once(
    policy, reason, recwarn
):
    with pytest.raises(PolicyError, match=reason):
        loop_for(policy, rising(), compiled=True)
    assert loop_for(policy, rising(), None) is play
    assert loop_for(policy, rising(), None) is play
    assert [reason in str(w.message) for w in recwarn] == [True]


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from risingsearch.errors import MissingDependencyError
from risingsearch.simulation import simulate
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        result = simulate("cure-ucb", "two-arm", 500, seed=1)
print(result.regret[0, 0])
print([str(w.message) for w in caught])
try:
    simulate("cure-ucb", "two-arm", 500, compiled=True)
except MissingDependencyError as error:
    print(error)
"""


def test_without_numba_the_same_run_is_interpreted_and_said_so_once():
    from risingsearch.simulation import simulate

    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA],
        capture_output=True,
        text=True,
        check=True,
    )
    regret, said, refused = done.stdout.splitlines()
    assert float(regret) == simulate("cure-ucb", "two-arm", 500, seed=1).regret[0, 0]
    assert said.count("slower") == 1
    assert "numba is not installed" in said
    assert "risingsearch[sim]" in refused


def test_a_numba_that_cannot_be_imported_is_not_called_absent(tmp_path):
    (tmp_path / "numba.py").write_text("raise ImportError('numba needs NumPy 0.1')")
    script = (
        "from risingsearch.simulation import simulate\n"
        "simulate('random', 'two-arm', 9, compiled=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    message = "numba is installed, but cannot be imported: numba needs NumPy 0.1"
    assert message in done.stderr


HEAD = """
from typing import NamedTuple
import numpy as np
from risingsearch.policies.base import arm_arrays, least_pulled
"""
FILES = {
    "base.py": HEAD + inspect.getsource(OneByOne).replace("OneByOne", "Base"),
    "helpers.py": "def chosen(t):\n    return 0\n",
    "constants.py": "OFFSET = 0\n",
    "settings.py": "STEP = 0\n",
    "edited.py": """
import settings
from base import Base
from constants import OFFSET
from helpers import chosen
class Edited(Base):
    def select(self, t, rng):
        return chosen(t) + OFFSET + settings.STEP
""",
}
EDITS = [
    ("base.py", "+= 1", "+= 2"),
    ("helpers.py", "return 0", "return 2"),
    ("constants.py", "0", "2"),
    ("settings.py", "0", "2"),
    ("edited.py", "chosen(t)", "chosen(t + 1)"),
]
PULLS = """
import numpy as np
from risingsearch.curves.rested import CurveTable
from risingsearch.simulation import simulate
from edited import Edited
result = simulate(Edited, CurveTable.create(np.ones((3, 5))), 5, compiled=True)
print(result.pulls[0].tolist())
"""


def output(script, folder):
    done = subprocess.run(
        [sys.executable, "-B", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_an_edited_policy_is_compiled_anew(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert output(PULLS, tmp_path) == "[5, 0, 0]"
    (tmp_path / "helpers.py").write_text("def chosen(t):\n    return 2\n")
    assert output(PULLS, tmp_path) == "[0, 0, 5]"


def test_what_a_policy_inherits_calls_and_names_is_part_of_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def digest():
        for name, text in FILES.items():
            (tmp_path / name).write_text(text)
        for name in FILES:
            monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
        importlib.invalidate_caches()
        return engine._digest(importlib.import_module("edited").Edited, CurveTable)

    seen = {digest(), digest()}
    assert len(seen) == 1
    for name, old, new in EDITS:
        assert old in FILES[name]
        monkeypatch.setitem(FILES, name, FILES[name].replace(old, new))
        seen.add(digest())
    assert len(seen) == 1 + len(EDITS)


def test_infinite_sums_are_no_error():
    environment = CurveTable.create(np.full((2, 50), 1e308))
    seen = run(play, make_policy("cure-ucb", 2, 50), environment, 50, (50,))
    assert math.isinf(seen["reward"][0])
