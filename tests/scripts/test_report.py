"""A script says what it has reached in one line of JSON."""

import json

import numpy as np
import pytest

from risingsearch import report
from risingsearch.errors import InvalidParameterError


def test_numbers_of_any_kind(capsys):
    report(
        np.float32(0.5),
        epoch=np.int64(3),
        loss=np.float32(0.25),
        n_rows=np.int64(7),
        norm=float("inf"),
    )
    line = json.loads(capsys.readouterr().out)
    assert line == {"epoch": 3, "score": 0.5, "loss": 0.25, "n_rows": 7, "norm": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "good"}, "score must be a number; got 'good'"),
        ({"epoch": 0}, "epoch must be a whole number of at least 1; got 0"),
        ({"epoch": 1.5}, "epoch must be a whole number"),
        ({"name": "adam"}, "name must be a number; got 'adam'"),
    ],
)
def test_what_is_no_number(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        report(**{"score": 0.5, "epoch": 1} | options)
