"""What is saved as JSON comes back as it was, types included."""

import json
import math
from typing import Any

import numpy as np
import pytest

from risingsearch.json_values import as_json, from_json


def saved(value: Any) -> Any:
    return from_json(json.loads(json.dumps(as_json(value), allow_nan=False)))


@pytest.mark.parametrize(
    "value",
    [
        {"score": 0.1, "arm": 1, "reason": "opened", "cost": None, "live": True},
        [math.inf, -math.inf, 1e308, 5, "nan"],
        {"rows": [{"score": -math.inf}, []]},
        {"sizes": (64, (32, 16)), "rate": np.float64(0.1), "n": np.int64(2)},
        {"text": np.str_("adam"), "flag": np.bool_(False), "small": np.float32(0.1)},
        {"$float": "a parameter of that name", "other": 1},
        {"$tuple": [1]},
    ],
)
def test_values_keep_their_types(value: Any) -> None:
    back = saved(value)
    assert back == value
    assert repr(back) == repr(value)


def test_nan_comes_back() -> None:
    [value] = saved([math.nan])
    assert math.isnan(value)


@pytest.mark.parametrize("value", [object(), {1: 2}, [np.longdouble(1)], {1, 2}])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="JSON"):
        as_json(value)
