"""Results that no search can save are failures of their arms."""

import math

import pytest
from kept_search import Rising, a_search

from risingsearch.errors import InvalidParameterError
from risingsearch.search.search import RisingSearch


@pytest.mark.parametrize(
    "result",
    [
        {"score": 0.5, "own": 10**5000},
        {"score": 0.5, "own": {3}},
        {"score": 0.5, 1: 2},
        {"score": 1e308},
        b"1",
    ],
    ids=["digits", "set", "key", "score", "bytes"],
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
