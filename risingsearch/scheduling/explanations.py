"""Why each arm is where it is, in words."""

from __future__ import annotations

from risingsearch.arms import Arm
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.decisions import Decider


def explained(
    records: ArmRecords, decider: Decider, policy_name: str, *, n_in_flight: int
) -> list[Arm]:
    """Return where every arm stands, why, and the parts of its index."""
    waits_for_results = decider.waiting and n_in_flight > 0
    return [
        Arm(
            arm=arm,
            status=records.status(arm),
            epochs=int(records.epochs[arm]),
            charged=int(records.charged[arm]),
            last_score=float(records.last[arm]),
            best_score=float(records.best[arm]),
            best_epoch=int(records.best_epoch[arm]),
            failures=int(records.failures[arm]),
            reason=_reason(
                records, arm, policy_name, waits_for_results=waits_for_results
            ),
            index=decider.index(arm),
        )
        for arm in range(len(records.charged))
    ]


def _reason(
    records: ArmRecords, arm: int, policy_name: str, *, waits_for_results: bool
) -> str:
    status = records.status(arm)
    if status == "unopened":
        return "not opened: the policy opens arms when it sees fit"
    if status == "running":
        return "in training"
    if status == "failed":
        return f"retired: {records.last_failure(arm)}"
    if status == "finished":
        return "ended by itself" if records.ended[arm] else "has used all its epochs"
    if waits_for_results:
        return f"paused: {policy_name} waits for what is in training"
    if not records.history:
        return "paused"
    last = records.history[-1]["arm"]
    return (
        "trained last" if last == arm else f"paused: {policy_name} preferred arm {last}"
    )
