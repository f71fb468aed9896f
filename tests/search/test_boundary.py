"""Results that no search can save are failures of their arms."""

import math
from decimal import Decimal

import numpy as np
import pytest
from kept_search import Rising, a_search

from risingsearch import Budget, Functions
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.search.search import RisingSearch


@pytest.mark.parametrize(
    "result", [{"score": 1e308}, {"own": 0.5}, b"1"], ids=["score", "none", "bytes"]
)
def test_what_cannot_be_saved_is_the_arms_failure(result, folder):
    search = a_search(folder, Rising(arm_2_epoch_2=result), budget=40)
    done = search.run()
    [failed] = done.failures
    assert failed.job.arm == 2
    assert isinstance(failed.failure, InvalidParameterError)
    assert len(str(failed.failure)) < 500
    assert done.arms[2].status == "failed"
    assert math.isfinite(done.best_score)
    again = RisingSearch.resume(folder, Rising()).result()
    assert repr(again.arms) == repr(done.arms)
    assert again.n_epochs == done.n_epochs == 40


@pytest.mark.parametrize(
    ("metrics", "kept"),
    [
        ({"own": {3}}, {"own": "{3}"}),
        ({"own": 10**5000}, {"own": "an int that is too large to be shown"}),
        ({"own": [b"1", 2]}, {"own": "[b'1', 2]"}),
        ({"own": 1j}, {"own": "1j"}),
        ({"own": np.array([1, 2])}, {"own": "array([1, 2])"}),
        ({1: 2}, {"1": 2}),
        ({"own": {1: 2}}, {"own": "{1: 2}"}),
        ({"own": math.nan}, {"own": math.nan}),
    ],
    ids=range(8),
)
@pytest.mark.filterwarnings("ignore:the metric")
def test_what_only_informs_is_kept_as_text(metrics, kept, folder):
    trainable = Rising(arm_2_epoch_2={"score": 0.5, **metrics})
    assert not a_search(folder, trainable, budget=40).run().failures
    again = RisingSearch.resume(folder, Rising()).result()
    [row] = [row for row in again.history if (row["arm"], row["epoch"]) == (2, 2)]
    assert {name: row[name] for name in kept} == pytest.approx(kept, nan_ok=True)


@pytest.mark.parametrize(
    ("name", "given", "plain"),
    [
        ("budget", np.int64(20), 20),
        ("budget", Budget(hours=np.float32(0.5)), "30min"),
        ("seed", np.uint32(7), 7),
        ("error_score", np.float32(0.5), 0.5),
        ("timeout", Decimal(1000), 1000.0),
        ("deterministic", np.True_, True),
        ("policy", np.str_("round-robin"), "round-robin"),
        ("policy_params", {"c": np.float64(0.5)}, {"c": 0.5}),
        ("epoch_costs", np.ones(4), [1.0] * 4),
        ("enqueue", np.array([1]), [1]),
        ("candidates", [{"top": np.float64(0.5)}], [{"top": 0.5}]),
    ],
)
def test_a_search_begun_with_other_types_of_numbers_continues(
    tmp_path, name, given, plain
):
    def begin(value):
        arguments = {"budget": 9, "max_epochs": 4, "seed": 0, "run_dir": tmp_path}
        arguments |= {"candidates": [{"top": 0.1}, {"top": 0.2}], name: value}
        if name == "policy_params":
            arguments["policy"] = "ucb1"
        candidates = arguments.pop("candidates")
        return RisingSearch(Functions(dict, len), candidates, **arguments)

    begin(given)
    begin(plain)
    RisingSearch.resume(tmp_path, Functions(dict, len))


@pytest.mark.parametrize(
    "value", [10**5000, Decimal("0.1"), 1j, np.longdouble(1)], ids=type
)
def test_numbers_that_json_does_not_know_are_kept_among_candidates(tmp_path, value):
    def begin(one):
        return RisingSearch(
            Functions(dict, len), [{"top": one}], budget=2, seed=0, run_dir=tmp_path
        )

    begin(value)
    [candidate] = RisingSearch.resume(tmp_path, Functions(dict, len)).candidates
    assert candidate == {"top": value}
    with pytest.raises(RunDirError, match=r"with candidates\[0\].top="):
        begin(value + 1)
