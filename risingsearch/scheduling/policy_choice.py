"""Which policy a search runs, with which parameters, over how many arms."""

from collections.abc import Mapping
from typing import NamedTuple

from risingsearch.arms import Configuration, Params
from risingsearch.budget import Budget, in_words
from risingsearch.checks import checked_int, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import policy_info, recommended_arms, resolve_policy

IN_TIME = 500
"""Configurations drawn under a budget in time; those never opened cost nothing."""

SHORTEST_LOOK = "shortest_look"
"""The parameter of a policy that says how long it looks at a new arm at least."""


class PolicyChoice(NamedTuple):
    """The policy of a search, and the number of arms that suits it."""

    name: str
    parameters: Params
    n_opened: int  # arms that the budget is best spread over
    n_candidates: int  # arms to choose these from: more where some are proposed

    @property
    def proposes(self) -> bool:
        """Whether some of the arms that are opened are proposed."""
        return self.n_candidates > self.n_opened


def choose_policy(
    policy: str,
    budget: int | Budget,
    max_epochs: int | None,
    n_arms: int | None = None,
    *,
    parameters: Mapping[str, object] | None = None,
    min_epochs: int = 1,
    epochs_per_job: int | None = None,
) -> PolicyChoice:
    """Return the policy that a name stands for, and how many arms are opened."""
    params = checked_params(parameters)
    min_epochs = checked_int("min_epochs", min_epochs, 1)
    horizon, limit = horizon_and_limit(budget, max_epochs, n_arms or 1)
    name = resolve_policy(policy)
    look = max(min_epochs, epochs_per_job or 1)
    if look > 1 and SHORTEST_LOOK in policy_info(name).parameters:
        params = {SHORTEST_LOOK: look} | params
    n_opened = recommended_arms(policy, horizon, limit, **params)
    chosen = PolicyChoice(name, params, n_opened, n_opened)
    if policy != "auto" or (n_arms is not None and n_arms <= chosen.n_opened):
        return chosen
    more = params | {"opening_share": 1.0}
    return chosen._replace(n_candidates=recommended_arms(name, horizon, limit, **more))


def horizon_and_limit(
    budget: int | Budget, max_epochs: int | None, n_arms: int
) -> tuple[int, int]:
    """Return the rounds that a policy plans for, and the epochs of one arm."""
    epochs = Budget.of(budget).epochs
    if max_epochs is None:
        if epochs is None:
            given = Budget.of(budget)
            kind = in_words(given.unit)
            if given.is_wall_clock:
                kind = "time (or a timeout alone)"
            raise InvalidParameterError(
                f"a budget in {kind} needs max_epochs: "
                "how many epochs one arm can use at most"
            )
        return epochs, epochs
    limit = checked_int("max_epochs", max_epochs, 1)
    return epochs or n_arms * limit, limit


def checked_params(params: object) -> Params:
    """Return a copy of a policy's parameters; raise an error if they are invalid."""
    if not isinstance(params, Mapping | None):
        raise InvalidParameterError(
            f"policy_params must be a dict of parameters; got {shown(params)}"
        )
    return dict(params or {})


def recommended_candidates(
    policy: object,
    budget: int | Budget,
    max_epochs: int | None,
    policy_params: Configuration | None,
    min_epochs: int = 1,
    epochs_per_job: int | None = None,
    **_: object,
) -> int:
    """Return how many configurations the policy's own rule asks for, if it is known."""
    epochs = Budget.of(budget).epochs
    if epochs is None or not isinstance(policy, str):
        return min(IN_TIME, epochs or IN_TIME)
    return choose_policy(
        policy,
        budget,
        max_epochs,
        parameters=policy_params,
        min_epochs=min_epochs,
        epochs_per_job=epochs_per_job,
    ).n_candidates
