"""Results in the order of the decisions: the same run in any order of finishing."""

from contextlib import suppress
from dataclasses import replace

from risingsearch.errors import PolicyError
from risingsearch.json_values import Json
from risingsearch.scheduling.decisions import Decider
from risingsearch.scheduling.events import Started
from risingsearch.scheduling.ledger import Result


class InOrder:
    """Holds results back from a decider, and hands them over in order.

    Decision ``k`` sees exactly the results of decisions ``1 .. k - n_jobs``, and of the
    next ones, one by one, if nothing can start without them. To the decider, a job is
    in flight until its result is handed over. A scheduler uses this in place of the
    decider, or the decider itself, which applies every result at once.
    """

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._held: dict[int, Result] = {}  # by the id of the job

    @property
    def in_flight(self) -> dict[int, Started]:
        """The decisions to start the jobs that were not told, by their ids."""
        jobs = self._decider.in_flight.items()
        return {job: decision for job, decision in jobs if job not in self._held}

    @property
    def _n_seen(self) -> int:
        """Results handed over, which is also the id of the job that is next."""
        return self._decider.arms.n_asked - len(self._decider.in_flight)

    def _hand_over(self, job: int) -> None:
        self._decider.tell(self._held.pop(job))

    def start(self, decision: Started) -> None:
        """Start a job, and note how many results its decision has seen."""
        self._decider.start(replace(decision, seen=self._n_seen))

    def repeat(self, decision: Started) -> None:
        """Start a job that was decided before, after the results that it had seen."""
        while self._n_seen < (decision.seen or 0) and self._n_seen in self._held:
            self._hand_over(self._n_seen)
        self._decider.repeat(decision)

    def tell(self, result: Result) -> None:
        """Hold the result of a job."""
        self._held[result.job.id] = result

    def follow_up(self) -> None:
        """Hand over the results that the next decision has to see, or waits for."""
        decider = self._decider
        decider.follow_up()
        with suppress(PolicyError):  # the next decision raises it
            while self._n_seen in self._held and self._has_room():
                if decider.select() is not None:
                    break
                self._hand_over(self._n_seen)

    def _has_room(self) -> bool:
        """Return whether a worker is free."""
        n_jobs = self._decider.arms.n_jobs or 1
        return len(self._decider.in_flight) - len(self._held) < n_jobs

    def hand_over_all(self) -> None:
        """Hand over all results, whether they are due or not."""
        for job in sorted(self._held):
            self._hand_over(job)

    def state_dict(self) -> Json:
        """Return everything as JSON values."""
        state = self._decider.state_dict()
        state["arms"]["held"] = [result.to_json() for result in self._held.values()]
        return state

    def load_state_dict(self, state: Json) -> None:
        """Restore the values of ``state_dict``; after an error it is of no use."""
        self._decider.load_state_dict(state)
        results = map(Result.from_json, state["arms"]["held"])
        self._held = {result.job.id: result for result in results}
