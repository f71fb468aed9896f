"""Explanations: where every arm stands, and why it is not in training."""

from collections.abc import Mapping, Sequence

import numpy as np

from risingsearch.arms import OPENED_BY_PRIOR, Arm, ArmList
from risingsearch.scheduling.arm_table import ArmTable
from risingsearch.scheduling.policy_adapter import PolicyAdapter


def explain(
    arms: ArmTable, policy: PolicyAdapter, trust: Mapping[str, float], why: str | None
) -> ArmList:
    """Return all arms; ``why`` says why nothing starts, if that is so."""
    policy.refresh()
    opened = np.flatnonzero(arms.charged).tolist()
    indices = dict(zip(opened, policy.explain(opened), strict=True))
    reasons = [(row["arm"], row["reason"]) for row in arms.history]
    reasons += [(why.job.arm, why.reason) for why in arms.decisions.values()]
    by_prior = {arm for arm, reason in reasons if reason == OPENED_BY_PRIOR}
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
            reason=_reason(arms, arm, failures.get(arm), policy.name, why)
            + _resemblance(likes.get(arm, ())),
            index=indices.get(arm, {}),
            trust_in_prior=dict(trust) if arm in by_prior else {},
            like=likes.get(arm, ()),
        )
        for arm in range(len(arms.charged))
    ]
    return ArmList(all_arms, "maximize" if arms.sign > 0 else "minimize")


def _resemblance(like: Sequence[int]) -> str:
    several = "arms" if len(like) > 1 else "arm"
    numbers = ", ".join(map(str, like))
    return f"; resembles {several} {numbers}" if like else ""


def _reason(
    arms: ArmTable, arm: int, failure: str | None, policy: str, why: str | None
) -> str:
    match arms.status(arm):
        case "unopened":
            return f"not opened: {why}" if why else "not opened yet"
        case "running":
            return "in training"
        case "failed":
            return f"retired: {failure or 'score is not finite'}"
        case "finished":
            early = arms.ended[arm]
            return "ended before its last epoch" if early else "has used all its epochs"
    last = arms.history[-1]["arm"]
    if last == arm and not (why and arms.in_flight):
        return "trained last"
    paused = "paused with the best score" if arm == arms.best_arm else "paused"
    return f"{paused}: {why or f'{policy} preferred arm {last}'}"
