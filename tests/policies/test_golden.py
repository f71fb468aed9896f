"""Golden runs: a change of what any policy does is seen as a change of data.

To record some anew after an intended change:
python tests/policies/test_golden.py NAME [NAME ...]
"""

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

from risingsearch.policies import list_policies, make_policy
from risingsearch.policies.base import play_alone

GOLDEN = Path(__file__).parents[1] / "golden"
N_ARMS, HORIZON, MAX_PULLS = 4, 60, 20
NAMES = [info.name for info in list_policies()]


def noisy_concave_rewards():
    end = np.array([0.60, 0.90, 0.70, 0.80])[:, None]
    half = np.array([1.0, 6.0, 2.0, 4.0])[:, None]
    n = np.arange(1, MAX_PULLS + 1)
    noise = np.random.default_rng(2026).normal(0.0, 0.02, (N_ARMS, MAX_PULLS))
    return end * n / (n + half) + noise


def trajectory(name):
    """Return round, arm and reward of every pull of a short seeded run."""
    rewards = noisy_concave_rewards()
    rows = []

    def reward(arm, n, t):
        rows.append((t, arm, float(rewards[arm, n - 1])))
        return rows[-1][2]

    play_alone(make_policy(name, N_ARMS, HORIZON, MAX_PULLS), reward, HORIZON, seed=7)
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_run_is_the_recorded_one(name):
    with (GOLDEN / f"{name}.csv").open(newline="") as file:
        recorded = list(csv.DictReader(file))
    run = trajectory(name)
    assert [arm for _, arm, _ in run] == [int(row["arm"]) for row in recorded]
    assert [t for t, _, _ in run] == [int(row["t"]) for row in recorded]
    assert [reward for _, _, reward in run] == pytest.approx(
        [float(row["reward"]) for row in recorded], rel=0, abs=1e-12
    )


def test_nothing_is_recorded_for_policies_that_are_gone():
    assert sorted(path.stem for path in GOLDEN.glob("*.csv")) == NAMES


def record(name):
    rows = trajectory(name)
    with (GOLDEN / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("t", "arm", "reward"))
        writer.writerows(rows)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(name)
