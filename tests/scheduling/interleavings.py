"""Searches lived through in random order, each drawn from a policy and a seed."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scheduler_runs import INFOS, Gambler, saved

from risingsearch.budget import Budget
from risingsearch.errors import JobError, PolicyError
from risingsearch.policies import WAIT
from risingsearch.policies.base import arm_arrays, least_pulled
from risingsearch.scheduling.proposers import GaussianProcessProposer
from risingsearch.scheduling.replay import (
    Event,
    ended,
    extended,
    flushed,
    replay,
    started,
    told,
)
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.testing.require import require

# ------------------------------------------------------------------ policies of users


class Scribbler(NamedTuple):
    """Counts in its arrays how often it was asked, and goes by that, WAIT included."""

    available: NDArray[np.bool_]
    pulls_left: NDArray[np.int64]
    horizon: NDArray[np.float64]
    pulls: NDArray[np.int64]
    asked: NDArray[np.int64]  # (1,)
    seen: NDArray[np.float64]  # (n_arms,), what pulls_left and horizon were last

    @classmethod
    def create(cls, n_arms: int, horizon: int, max_pulls: int | None) -> Scribbler:
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            asked=np.zeros(1, dtype=np.int64),
            seen=np.zeros(n_arms),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        self.asked[0] += 1
        self.seen[:] = self.pulls_left + self.horizon + rng.random()
        busy = (self.pulls_left > 0) & ~self.available
        if busy.any() and self.asked[0] % 3 == 0:
            return WAIT
        free = np.flatnonzero(self.available)
        return int(free[int(self.asked[0] + self.seen[free[0]]) % len(free)])

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        self.pulls[arm] += 1

    def slice_length(self, arm: int) -> int:
        return 1 + int(self.asked[0]) % 3

    def explain(self, arm: int) -> dict[str, float]:
        self.asked[0] += 1
        return {"asked": float(self.asked[0])}


class TantrumError(Exception):
    """What a moody policy raises."""


class Mood:
    """Lets a policy raise in one of its next calls."""

    calls_left = math.inf
    error: type[BaseException] = TantrumError

    def pass_by(self) -> None:
        self.calls_left -= 1
        if self.calls_left <= 0:
            raise self.error


MOOD = Mood()


class Moody(NamedTuple):
    """Takes turns, scribbles, and raises half way when in the mood."""

    available: NDArray[np.bool_]
    pulls_left: NDArray[np.int64]
    horizon: NDArray[np.float64]
    pulls: NDArray[np.int64]
    scribbled: NDArray[np.float64]  # (1,)
    last: NDArray[np.float64]  # (n_arms, 2), the last reward of every arm, twice

    @classmethod
    def create(cls, n_arms: int, horizon: int, max_pulls: int | None) -> Moody:
        return cls(
            *arm_arrays(n_arms, horizon, max_pulls),
            scribbled=np.zeros(1),
            last=np.zeros((n_arms, 2)),
        )

    def select(self, t: int, rng: np.random.Generator) -> int:
        self.scribbled[0] += rng.random()
        MOOD.pass_by()
        if self.scribbled[0] % 1.0 < 0.2 and not self.available.all():
            return WAIT
        return least_pulled(self.available, self.pulls, 10**9)

    def update(self, t: int, arm: int, reward: float, rng: np.random.Generator) -> None:
        self.scribbled[0] += reward
        self.last[arm] = reward
        MOOD.pass_by()
        self.pulls[arm] += 1

    def slice_length(self, arm: int) -> int:
        MOOD.pass_by()
        return 1 + int(self.scribbled[0]) % 3

    def explain(self, arm: int) -> dict[str, float]:
        MOOD.pass_by()
        return {"scribbled": self.scribbled[0]}

    def projection(self, arm: int) -> float:
        MOOD.pass_by()
        return self.scribbled[0]


USERS = {policy.__name__: policy.create for policy in (Gambler, Scribbler, Moody)}
POLICIES: dict[str, str | Callable[..., Any]] = {name: name for name in INFOS} | USERS


class AnyUnopened:
    """Proposes by chance, or not."""

    def propose(
        self, opened: Any, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int | None:
        return None if rng.random() < 0.3 else int(rng.choice(unopened))


# ------------------------------------------------------------------------ what is drawn


class Case(NamedTuple):
    """A search and all that happens to it; ``check`` runs it again."""

    policy: str
    seed: int

    def check(self, params: dict[str, Any]) -> None:
        """Live through it, and check all that a search may rely on."""
        story = Story(self, params)
        try:
            story.live()
            story.check_replays()
        except Exception as error:
            error.add_note(f"{self} with {story.arguments} after {story.calls}")
            raise


def arguments(draw: random.Random, policy: str) -> dict[str, Any]:
    """Return the arguments of a scheduler."""
    n_arms = draw.choice([1, 2, 3, 4, 6, 9, 13, 24])
    n_jobs = draw.choice([None, 1, 2, 3, 4, 8, 16, 64])
    drawn: dict[str, Any] = {
        "policy": POLICIES[policy],
        "n_arms": n_arms,
        "budget": draw.randint(1, 10 + 2 * n_arms),
        "max_epochs": draw.choice([None, *range(1, 10)]),
        "epochs_per_job": draw.choice([None, None, None, 1, 2, 4]),
        "direction": draw.choice(["maximize", "minimize"]),
        "order": draw.choice(["completion", "ask"]),
        "n_jobs": n_jobs,
        "error_score": draw.choice([None, None, 0.25]),
        "max_failures": draw.choice([0, 0, 1, 3]),
        "score_range": draw.choice([None, (-3.0, 3.0)]),
        "opening_order": draw.sample(range(n_arms), n_arms),
        "proposer": draw.choice([None, AnyUnopened()]),
        "seed": draw.randrange(100),
    }
    if n_arms > 9 and draw.random() < 0.1:
        features = [[arm / n_arms] for arm in range(n_arms)]
        drawn["proposer"] = GaussianProcessProposer(features)
    if draw.random() < 0.5:
        drawn |= knobs(draw, drawn)
    if policy == "Moody":
        # In ask order a result is told, and later recorded: two transitions.
        drawn["order"] = "completion"
    needs_epochs = policy in INFOS and INFOS[policy].plans_rounds
    if not needs_epochs and draw.random() < 0.25:
        drawn["budget"] = Budget(cost=float(drawn["budget"]))
        drawn["max_epochs"] = drawn["max_epochs"] or 9
    return drawn


def knobs(draw: random.Random, drawn: dict[str, Any]) -> dict[str, Any]:
    """Return what an arm is promised, and when the search ends early."""
    n_arms, budget = drawn["n_arms"], drawn["budget"]
    min_epochs = draw.randint(1, min(drawn["max_epochs"] or budget, budget, 4))
    n_first = draw.randint(0, min(n_arms, budget // min_epochs, 3))
    return {
        "min_epochs": min_epochs,
        "enqueue": draw.sample(range(n_arms), n_first),
        "patience": draw.choice([None, 3, 8]),
        "target_score": draw.choice([None, 1.0]),
    }


def a_score(draw: random.Random, arm: int, epoch: int) -> float:
    """Return the next score of an arm: a noisy rise, or what is no score."""
    if draw.random() < 0.05:
        return draw.choice([math.nan, math.inf, -math.inf, 0.0, -1e6, 1e6])
    return (1 + arm % 5 / 5) * (1 - 0.9**epoch) + 0.3 * draw.random()


LOOKS: dict[str, Callable[[Scheduler], Any]] = {
    "peek": Scheduler.peek,
    "done": lambda search: search.done,
    "stop_reason": lambda search: search.stop_reason,
    "explain": Scheduler.explain,
    "statuses": Scheduler.statuses,
    "history": lambda search: search.history,
    "expected_end": lambda search: search.expected_end(search.n_arms - 1),
}


def require_same(was: Any, now: Any, what: str) -> None:
    """Fail where two states differ, and say in which of their parts."""
    if was != now:
        parts = [name for name in was if was[name] != now[name]]
        raise AssertionError(f"{what}: {parts}")


# ----------------------------------------------------------------------- what is lived


class Story:
    """One search in random order, with the events that it wrote down."""

    def __init__(self, case: Case, params: dict[str, Any]) -> None:
        self.draw = random.Random(f"{case.policy} {case.seed}")
        self.arguments = arguments(self.draw, case.policy) | {"policy_params": params}
        self.search = self.scheduler()
        self.eager = self.draw.random() < 0.5  # asks until nothing can start
        self.events: list[Event] = []
        self.calls: list[str] = []
        self.known: dict[str, Any] | None = None  # the state, since nothing happened
        self.saved: tuple[int, dict[str, Any]] = 0, saved(self.search)
        self.trained = [0] * self.search.n_arms
        self.charged = 0
        self.is_moody = case.policy == "Moody"

    def scheduler(self, state: dict[str, Any] | None = None) -> Scheduler:
        made = Scheduler(**self.arguments)
        if state is not None:
            made.load_state_dict(state)
        return made

    # ---- what happens

    def live(self) -> None:
        """Let so much happen, chosen by chance."""
        happenings = [self.ask] * 6 + [self.tell] * 5 + [self.look] * 4
        happenings += [self.reload, self.start, self.end, self.extend, self.flush]
        for _ in range(self.draw.randint(8, 30)):
            self.draw.choice(happenings)()
            self.check_budget()

    def ask(self) -> None:
        while (job := self.safely("ask")) is not None:
            assert job.from_epoch == self.trained[job.arm], "told twice, or never"
            self.events.append(started(self.search, job))
            if not self.eager:
                return

    def tell(self) -> None:
        if not self.search.in_flight:
            return
        job = self.draw.choice(self.search.in_flight)
        kind = self.draw.choice(["all", "all", "all", "ended", "cut", "failed"])
        n_scores = job.n_epochs if kind == "all" else self.draw.randint(0, job.n_epochs)
        scores = [
            a_score(self.draw, job.arm, job.from_epoch + k) for k in range(n_scores)
        ]
        event = told(job, scores, "broken" if kind == "failed" else None)
        cost = None
        if self.search.unit != "epochs" or self.draw.random() < 0.2:
            cost = event["elapsed"] = self.draw.random() * 2
        self.trained[job.arm] += n_scores
        self.charged += job.n_epochs if kind == "failed" else n_scores
        if kind == "failed":
            self.events.append(event)
            self.safely("fail", job, "broken", scores, cost)
        else:
            is_over = kind != "cut"
            self.events.append(event | ({"ended": True} if is_over else {}))
            self.safely("tell", job, scores, cost, ended=is_over)

    def look(self) -> None:
        name = self.draw.choice(list(LOOKS))
        self.calls.append(name)
        self.state()
        with self.in_a_mood() as raised:
            LOOKS[name](self.search)
        self.require_no_trace(f"{name} left a trace {raised}")

    def reload(self) -> None:
        self.calls.append("reload")
        state = saved(self.search)
        self.search, self.known = self.scheduler(state), None
        require_same(state, saved(self.search), "a loaded state is another")
        if self.draw.random() < 0.5:
            self.saved = len(self.events), state

    def start(self) -> None:
        arm = self.draw.randrange(self.search.n_arms)
        try:
            job = self.safely("start", arm, self.draw.choice([None, 1]))
        except JobError:
            return
        self.events.append(started(self.search, job))

    def end(self) -> None:
        arm = self.draw.randrange(self.search.n_arms)
        if self.search.status(arm) != "running" and self.draw.random() < 0.5:
            self.events.append(ended([arm]))
            self.safely("end", arm)

    def extend(self) -> None:
        more: int | Budget = self.draw.randint(1, 6)
        if self.search.unit != "epochs":
            more = Budget(cost=float(more))
        self.events.append(extended(more))
        self.safely("extend", more)

    def flush(self) -> None:
        self.events.append(flushed())
        self.safely("flush")

    # ---- what holds

    def safely(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method; what raises changes nothing, and can be called again.

        An ask that comes to nothing changes nothing either.
        """
        self.calls.append(f"{name}{args}")
        call = getattr(self.search, name)
        if self.is_moody or name == "ask":
            self.state()
        answer = None
        with self.in_a_mood() as raised:
            answer = call(*args, **kwargs)
        if raised:
            self.require_no_trace(f"{raised} left a trace")
            answer = call(*args, **kwargs)
        if name == "ask" and answer is None:
            self.require_no_trace("an ask in vain left a trace")
        else:
            self.known = None
        return answer

    def state(self) -> dict[str, Any]:
        """Return the state, as it was after the last thing that happened."""
        if self.known is None:
            self.known = self.search.state_dict()
        return self.known

    def require_no_trace(self, what: str) -> None:
        """Compare the state with what it was before a call."""
        require_same(self.state(), self.search.state_dict(), what)

    @contextmanager
    def in_a_mood(self) -> Iterator[list[BaseException]]:
        """Let the moody policy raise now and then; the error has to name it."""
        raised: list[BaseException] = []
        if not self.is_moody or self.draw.random() < 0.7:
            yield raised
            return
        MOOD.calls_left = self.draw.randint(1, 4)
        MOOD.error = self.draw.choice([TantrumError, KeyboardInterrupt])
        try:
            yield raised
        except PolicyError as error:
            names = "Moody" in str(error) and isinstance(error.__cause__, TantrumError)
            require(
                names, f"{error!r} from {error.__cause__!r} does not say who raised"
            )
            raised.append(error)
        except KeyboardInterrupt as error:
            raised.append(error)
        finally:
            MOOD.calls_left = math.inf

    def check_budget(self) -> None:
        """No more is spent and reserved than there is."""
        reserved = sum(job.n_epochs for job in self.search.in_flight)
        assert self.search.n_epochs <= self.charged, "epochs were told twice"
        if self.search.unit == "epochs":
            left = self.search.budget - self.charged - reserved
            assert left >= 0, f"{-left} epochs too many are reserved"

    def check_replays(self) -> None:
        """The events alone lead to the same state, from the start or from later on."""
        state = saved(self.search)
        events = json.loads(json.dumps(self.events))
        n_before, half_way = self.saved
        for search, rest in (
            (self.scheduler(), events),
            (self.scheduler(half_way), events[n_before:]),
        ):
            replay(search, rest)
            require_same(state, saved(search), "the replay ends elsewhere")
            assert repr(search.history) == repr(self.search.history), "other history"
