"""Explanations: where every arm stands, and why it is not in training."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import OPENED, PRIOR, Arm, ArmList
from risingsearch.scheduling.arm_table import ArmTable
from risingsearch.scheduling.policy_adapter import PolicyAdapter


def explain(
    arms: ArmTable,
    policy: PolicyAdapter,
    trust: Mapping[str, float],
    why: str | None,
    over: str | None,
) -> ArmList:
    """Return all arms; ``why`` nothing starts, and the search is ``over``, if so."""
    policy.refresh()
    opened = np.flatnonzero(arms.charged).tolist()
    indices = dict(zip(opened, policy.explain(opened), strict=True))
    reasons = [(row["arm"], row["reason"]) for row in arms.history]
    reasons += [(why.job.arm, why.reason) for why in arms.decisions.values()]
    opened_as = dict(reversed(reasons))  # by arm, the first reason
    reached = None  # by the best arm after each of its epochs
    if over and arms.best_arm is not None:
        reached = np.maximum.accumulate(arms.curve(arms.best_arm))
    failures = {row["arm"]: row["failure"] for row in arms.history if "failure" in row}
    likes = {arm: proposal.like for arm, proposal in arms.proposals.items()}
    all_arms = [
        Arm(
            arm=arm,
            status=arms.status(arm),
            epochs=int(arms.epochs[arm]),
            charged=int(arms.charged[arm]),
            last_score=float(arms.last[arm]),
            best_score=float(arms.best[arm]),
            best_epoch=int(arms.best_epoch[arm]),
            failures=int(arms.failures[arm]),
            reason=_reason(
                arms,
                arm,
                failures.get(arm),
                policy,
                why,
                over,
                reached,
            )
            + _origin(opened_as.get(arm, OPENED), likes.get(arm, ())),
            index=indices.get(arm, {}),
            trust_in_prior=dict(trust) if opened_as.get(arm) == PRIOR else {},
            like=likes.get(arm, ()),
        )
        for arm in range(len(arms.charged))
    ]
    return ArmList(all_arms, "maximize" if arms.sign > 0 else "minimize")


def _origin(opened_as: str, like: Sequence[int]) -> str:
    """Return how an arm was opened, if not in order, and which others it is like."""
    how = f"; {opened_as}"
    numbers = ", ".join(map(str, like))
    said = f"; resembles arm{'s' * (len(like) > 1)} {numbers}" if like else ""
    return said if opened_as == OPENED else how + said


def _reason(
    arms: ArmTable,
    arm: int,
    failure: str | None,
    policy: PolicyAdapter,
    why: str | None,
    over: str | None,
    reached: NDArray[np.float64] | None,
) -> str:
    match arms.status(arm):
        case "unopened":
            return f"not opened: {why}" if why else "not opened yet"
        case "running":
            return "in training"
        case "failed":
            return f"retired: {failure or 'score is not finite'}"
        case "finished":
            early = f"ended before its last epoch{arms.why_ended.get(arm, '')}"
            return early if arms.ended[arm] else "has used all its epochs"
    last = arms.history[-1]["arm"]
    best = arms.best_arm
    if last == arm and not (why and arms.in_flight):
        return "trained last"
    if reached is not None and best != arm and arms.best_epoch[arm]:
        return f"paused: {_beside(reached, arms, arm, policy.projection(arm))}; {over}"
    paused = "paused with the best score" if arm == best else "paused"
    return f"{paused}: {why or f'{policy.name} preferred arm {last}'}"


def _beside(
    reached: NDArray[np.float64],
    arms: ArmTable,
    arm: int,
    expected: float,
) -> str:
    """Return how an arm compares with the best one, by its last epoch and later."""
    n = int(arms.epochs[arm])
    score = arms.best[arm]
    best = arms.best_arm
    then = arms.sign * reached[min(n, len(reached)) - 1]
    words = f"{score:.4g} by epoch {n}, where arm {best} had {then:.4g}"
    if arms.best_epoch[best] > n:
        words += f" and later {arms.best[best]:.4g}"
    if expected > arms.sign * score + 1e-9:
        words += f"; {arms.sign * expected:.4g} was expected at its end"
    return words
