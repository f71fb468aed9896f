"""Arms of scripts that cannot resume, once their processes have ended."""

from dataclasses import replace

from risingsearch.arms import Arm
from risingsearch.search.results import SearchResult

MADE_ROOM = "its process made room for those of better arms (max_alive)"
HAS_ENDED = "its process has ended"


def with_ended_arms(result: SearchResult) -> SearchResult:
    """Return the result of a search whose processes are gone: no arm is paused."""
    return replace(result, arms=[_as_it_is(arm) for arm in result.arms])


def _as_it_is(arm: Arm) -> Arm:
    if arm.status not in ("paused", "running"):
        return arm
    reason = f"ended before its last epoch: {HAS_ENDED}"
    return replace(
        arm,
        status="finished",
        reason=reason,
    )


def was_cut_short(arm: Arm) -> bool:
    """Whether the process of an arm was ended, which leaves no whole checkpoint."""
    return arm.reason.endswith((MADE_ROOM, HAS_ENDED))
