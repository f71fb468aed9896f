"""A scheduler as JSON values, to resume later as if never interrupted.

The keys are those of the first release that saved schedulers; they are part of files on
users' disks and stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from risingsearch.errors import RunDirError
from risingsearch.scheduling.arm_records import ArmRecords
from risingsearch.scheduling.decisions import Decider, Draws
from risingsearch.scheduling.jobs import Jobs
from risingsearch.scheduling.ledger import Ledger
from risingsearch.scheduling.policy_adapter import PolicyAdapter

STATE_VERSION = 2
EARLIER = "earlier_searches"
"""Key: the searches a proposer learns from, by name; states may lack it."""


@dataclass
class SavedState:
    """The parts of a scheduler that are saved together."""

    _policy: PolicyAdapter
    _records: ArmRecords
    _budget: Ledger
    _jobs: Jobs
    _decider: Decider
    _draws: Draws

    def to_json(self, identity: dict[str, Any]) -> dict[str, Any]:
        """Return everything as JSON values, with what tells searches apart."""
        self._policy.refresh(self._jobs.rounds)
        return {
            "version": STATE_VERSION,
            "search": identity,
            "ledger": self._budget.state_dict(),
            "standings": self._records.state_dict(),
            "policy": self._policy.state_dict(),
            "rng": self._draws.start,
            **self._jobs.state_dict(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore all but the budget, for whose horizon the policy is built anew."""
        self._records.load_state_dict(state["standings"])
        self._policy.load_state_dict(state["policy"])
        self._draws.load(state["rng"])
        self._jobs.load_state_dict(state)
        self._decider.forget()


def check_identity(state: dict[str, Any], identity: dict[str, Any]) -> None:
    """Raise a RunDirError where a state is of another version or another search."""
    if state.get("version") != STATE_VERSION:
        msg = (
            f"this state has version {state.get('version')!r}, this release reads "
            f"version {STATE_VERSION}: load it with the release that saved it"
        )
        raise RunDirError(msg)
    for name, mine in identity.items():
        saved = state["search"].get(name)
        if name == EARLIER and saved is None:
            continue  # it does not say: its proposer's name has to do
        if saved != mine:
            msg = (
                f"this state was saved with {name}={saved!r}, the scheduler has "
                f"{name}={mine!r}: make it with the same arguments"
            )
            raise RunDirError(msg)
