"""What matters is found, what does not matter is not, and few arms say nothing."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from risingsearch import InvalidParameterError
from risingsearch.plotting.importance import (
    FEWEST_ARMS,
    MOST_ARMS,
    parameter_importance,
)


def made_up(score, n=100, seed=0, epochs=1, direction="maximize"):
    """Return a search whose arms end at ``score``, with noise of its own."""
    rng = np.random.default_rng(seed)
    candidates = [
        {
            "rate": float(10 ** rng.uniform(-4, 0)),
            "depth": int(rng.integers(1, 9)),
            "kind": str(rng.choice(["a", "b", "c"])),
            "flag": bool(rng.random() < 0.5),
        }
        for _ in range(n)
    ]
    curves = {}
    for arm, params in enumerate(candidates):
        top = score(params) + 0.1 * rng.normal()
        n_epochs = epochs if isinstance(epochs, int) else int(rng.integers(*epochs))
        curves[arm] = [top * (1 - 0.5 ** (k + 1)) for k in range(n_epochs)]
    arms = [SimpleNamespace(status="paused") for _ in candidates]
    return SimpleNamespace(
        candidates=candidates, curves=curves, arms=arms, direction=direction
    )


def by_name(result):
    return {one.name: one for one in parameter_importance(result).parameters}


def rate(params):
    return 0.9 - 0.1 * (math.log10(params["rate"]) + 2) ** 2


def together(params):
    """What the rate does depends on the kind; on average it does nothing."""
    sign = {"a": 1, "b": -1, "c": 0}[params["kind"]]
    return 0.3 * sign * (math.log10(params["rate"]) + 2)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("epochs", [1, (1, 30)])
def test_the_parameter_that_matters_is_found(epochs, direction):
    sign = 1 if direction == "maximize" else -1
    found = by_name(made_up(lambda p: 2 + sign * rate(p), epochs=epochs,
                            direction=direction))  # fmt: skip
    assert next(iter(found)) == "rate"
    assert found["rate"].low > 0.2
    assert all(found[name].low <= 0 for name in ("depth", "kind", "flag"))


def test_what_matters_only_together_is_found():
    found = by_name(made_up(together))
    assert found["rate"].low > 0.2
    assert found["kind"].low > 0.2
    assert found["depth"].low <= 0 <= found["depth"].high


def test_where_nothing_matters_the_intervals_hold_zero():
    misses = sum(
        not one.low <= 0 <= one.high
        for seed in range(20)
        for one in by_name(made_up(lambda _: 0.5, n=40, seed=seed)).values()
    )
    assert misses <= 4  # of 80, at a level of 95 %


def test_the_share_lies_in_its_interval():
    for one in by_name(made_up(rate, n=40)).values():
        assert one.low <= one.share <= one.high


def test_arms_are_compared_after_as_many_epochs_as_both_have_trained():
    """How long an arm has trained is no merit of its parameters."""
    result = made_up(lambda _: 0.5, n=80)
    for arm, params in enumerate(result.candidates):
        longer = 20 if params["flag"] else 1
        (first,) = result.curves[arm]
        result.curves[arm] = [first + 0.05 * k for k in range(longer)]
    assert by_name(result)["flag"].low <= 0


def test_an_arm_that_fails_is_worse_than_all_others():
    result = made_up(lambda _: 0.5)
    for arm, params in enumerate(result.candidates):
        if params["rate"] > 0.05:
            result.curves[arm] = [math.nan]
            result.arms[arm].status = "failed"
    assert by_name(result)["rate"].low > 0.2


def test_a_parameter_that_some_arms_lack_is_judged_by_that_too():
    result = made_up(lambda p: 0.5 + 0.5 * p["flag"])
    for params in result.candidates:
        if not params.pop("flag"):
            params["extra"] = 1.0
    assert by_name(result)["extra"].low > 0.2


def test_what_is_no_result_is_refused():
    with pytest.raises(InvalidParameterError, match=r"as search.result\(\); got "):
        parameter_importance(object())


def test_few_arms_say_nothing():
    found = parameter_importance(made_up(rate, n=FEWEST_ARMS - 1))
    assert found.parameters == []
    assert found.n_arms == FEWEST_ARMS - 1
    assert found.reason.startswith(f"it takes {FEWEST_ARMS} arms")
    assert parameter_importance(made_up(rate, n=FEWEST_ARMS)).reason is None


def test_equal_scores_say_nothing():
    result = made_up(rate)
    result.curves = {arm: [0.5] for arm in result.curves}
    assert parameter_importance(result).parameters == []


def test_a_single_parameter_can_matter():
    result = made_up(rate)
    result.candidates = [{"rate": params["rate"]} for params in result.candidates]
    assert by_name(result)["rate"].low > 0.2


def test_what_does_not_vary_or_is_never_the_same_is_not_judged():
    result = made_up(rate)
    for k, params in enumerate(result.candidates):
        params |= {"seed": 1, "name": f"run {k}"}
    found = parameter_importance(result)
    assert found.unjudged == ["seed", "name"]
    assert {one.name for one in found.parameters} == {"rate", "depth", "kind", "flag"}


def test_of_very_many_arms_some_are_compared():
    found = parameter_importance(made_up(rate, n=MOST_ARMS + 50))
    assert (found.n_arms, found.n_opened) == (MOST_ARMS, MOST_ARMS + 50)
    assert found.parameters[0].name == "rate"
