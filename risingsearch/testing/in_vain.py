"""A policy inside a scheduler: asked in vain, and led by its events alone."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from risingsearch.errors import PolicyError
from risingsearch.scheduling.replay import Event, ended, extended, replay, told
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.testing.require import require

_RUNS = 4
_STEPS = 40
_SHOWN = 12  # calls in a message


def check_vain_asks(
    build: Callable[[int, int, int], Any], n_arms: int, max_epochs: int
) -> None:
    """Raise an AssertionError where an ask in vain leaves a trace.

    Random searches with several jobs in flight: what is asked, told, failed, ended and
    extended has to lead to the same state again, without the asks that came to nothing.
    """
    for seed in range(_RUNS):
        _Search(build, n_arms, max_epochs, seed).play()


class _Search:
    """A search in random order, and the calls and events that make it up."""

    def __init__(
        self,
        build: Callable[[int, int, int], Any],
        n_arms: int,
        max_epochs: int,
        seed: int,
    ) -> None:
        self.draw = random.Random(seed)
        self.build = build
        self.policy: Any = None
        self.constants: dict[str, Any] = {}
        self.arguments: dict[str, Any] = {
            "n_arms": n_arms,
            "budget": 6 * n_arms + seed,
            "max_epochs": max_epochs,
            "order": "ask" if seed % 2 else "completion",
            "n_jobs": 3 if seed % 2 else None,
            "seed": seed,
        }
        self.search = Scheduler(self._built, **self.arguments)
        self.calls: list[str] = []
        self.events: list[Event] = []

    def _built(self, n_arms: int, horizon: int, max_pulls: int) -> Any:
        self.policy = self.build(n_arms, horizon, max_pulls)
        self.constants = _constants(self.policy)
        return self.policy

    def play(self) -> None:
        """Let things happen, and compare with the replay of the events."""
        happenings = 5 * [self.ask] + 4 * [self.tell]
        happenings += [self.peek, self.end, self.extend]
        try:
            for _ in range(_STEPS):
                self.draw.choice(happenings)()
                self.require_constants()
        except PolicyError as error:
            msg = f"{error} after {self.sequence()}"
            raise AssertionError(msg) from error
        self.check_replay()

    def peek(self) -> None:
        """Look at the next job, which changes nothing."""
        state = self.search.state_dict()
        self.calls.append("peek()")
        self.search.peek()
        self.require_no_trace(state)

    def ask(self) -> None:
        """Ask for a job; where none can start, nothing may have changed."""
        state = self.search.state_dict()
        job = self.search.ask()
        self.calls.append(f"ask() -> {'None' if job is None else f'arm {job.arm}'}")
        if job is None:
            self.require_no_trace(state)

    def tell(self) -> None:
        """Bring a job back: whole, cut short, ended or failed."""
        if not self.search.in_flight:
            return
        job = self.draw.choice(self.search.in_flight)
        kind = self.draw.choice(["tell", "tell", "tell", "cut", "ended", "fail"])
        n = job.n_epochs if kind == "tell" else self.draw.randrange(job.n_epochs)
        scores = [1.0 - 1.0 / (2 + self.draw.random() + k) for k in range(n)]
        event = told(job, scores, self.search.n_asked)
        self.calls.append(f"{kind}(arm {job.arm}, {n} of {job.n_epochs} epochs)")
        if kind == "fail":
            self.events.append(event | {"failure": "broken"})
            self.search.fail(job, "broken", scores)
        else:
            self.events.append(event | ({} if kind == "cut" else {"ended": True}))
            self.search.tell(job, scores, ended=kind != "cut")

    def end(self) -> None:
        """Let an arm end that does not train, now and then."""
        arm = self.draw.randrange(self.search.n_arms)
        if self.search.status(arm) != "running" and self.draw.random() < 0.3:
            self.calls.append(f"end({arm})")
            self.events.append(ended([arm], self.search.n_asked))
            self.search.end(arm)

    def extend(self) -> None:
        """Add to the budget."""
        more = self.draw.randint(1, 5)
        self.calls.append(f"extend({more})")
        self.events.append(extended(more, self.search.n_asked))
        self.search.extend(more)

    def require_no_trace(self, before: dict[str, Any]) -> None:
        """Compare the state with what it was before the last call."""
        require(
            before == self.search.state_dict(),
            f"the last call has left a trace in the state: {self.sequence()}",
        )

    def require_constants(self) -> None:
        """Let nothing change but arrays: only they are part of a state."""
        now = _constants(self.policy)
        changed = [name for name in now if now[name] != self.constants.get(name)]
        require(
            not changed,
            f"{changed} of the policy changed, which no state holds; keep what changes "
            f"in arrays: {self.sequence()}",
        )

    def check_replay(self) -> None:
        """Make the same search of its events alone."""
        again = Scheduler(self.build, **self.arguments)
        try:
            replay(again, self.events)
            while again.n_asked < self.search.n_asked and again.ask() is not None:
                pass
            same = again.state_dict() == self.search.state_dict()
        except Exception as error:
            msg = f"the events cannot be replayed ({error}): {self.sequence()}"
            raise AssertionError(msg) from error
        require(same, f"the events lead to another state: {self.sequence()}")

    def sequence(self) -> str:
        """Return the calls so far, the last ones where they are many."""
        n_left_out = len(self.calls) - _SHOWN
        text = ", ".join(self.calls[-_SHOWN:])
        return text if n_left_out <= 0 else f"{n_left_out} calls, then {text}"


def _constants(policy: Any) -> dict[str, Any]:
    """Return what a policy holds besides its arrays, as far as it can be seen."""
    held = dict(getattr(policy, "__dict__", {}))
    if hasattr(policy, "_asdict"):
        held |= policy._asdict()
    return {
        name: _frozen(value)
        for name, value in held.items()
        if not isinstance(value, np.ndarray)
    }


def _frozen(value: Any) -> Any:
    """Return what shows whether the value has changed in place."""
    try:
        return pickle.dumps(value)
    except Exception:  # what cannot be pickled is a constant as far as can be seen
        return id(value)
