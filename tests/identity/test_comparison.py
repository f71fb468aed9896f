"""Settings are compared by their content, and the first that differs is named."""

import importlib

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from risingsearch.identity.comparison import (
    DIGEST,
    OBJECT,
    OLD_DIGEST,
    adopted,
    described,
    described_parts,
    first_difference,
    named,
)

LONG = np.arange(2000.0)
OTHER = LONG.copy()
OTHER[1000] = 0.5


def scaled(x, by=2.0):
    return x * by


def test_a_difference_is_shown_where_it_is():
    texts = ["x" * 1000 + end for end in ("1" * 500, "2" * 500)]
    saved, given = ({"fingerprint": {"text": text}} for text in texts)
    _, was, now, _ = first_difference(saved, given)
    assert "xx1" in was
    assert "xx2" in now
    saved, given = ({"init": described(one)} for one in (LONG, OTHER))
    name, was, now, _ = first_difference(saved, given)
    assert name == "init"
    assert now == f"{was}, whose content differs"


def test_an_estimator_is_told_from_another_that_its_parameters_do_not_show():
    one, other = StandardScaler(), StandardScaler().set_output(transform="pandas")
    saved, given = ({"estimator": described_parts(each)} for each in (one, other))
    name, *_ = first_difference(saved, given)
    assert name == "estimator.class"


def earlier(described_value):
    """Return a described value as releases saved it that read the bytecode."""
    if isinstance(described_value, dict):
        names = {DIGEST: OLD_DIGEST}
        return {names.get(k, k): earlier(v) for k, v in described_value.items()}
    return described_value[:31] if described_value[-1:] == "+" else described_value


@pytest.mark.parametrize("value", [LONG, {1, 2}, scaled, StandardScaler(), [scaled]])
def test_what_an_earlier_release_saved_is_the_same_value(value):
    now = {"value": [described(value)]}
    saved = earlier(now)
    assert first_difference(adopted(saved, now), now) is None


def test_what_an_earlier_release_saved_of_another_value_differs():
    for was, now in ((LONG, OTHER), (scaled, earlier), ({1, 2}, {1, 3})):
        saved, given = {"value": earlier(described(was))}, {"value": described(now)}
        assert first_difference(adopted(saved, given), given) is not None


def test_a_package_in_a_folder_of_any_name_is_what_an_earlier_release_saved(
    tmp_path, monkeypatch
):
    (tmp_path / "kit_of_scales-1.0.dist-info").mkdir()
    (tmp_path / "kit_of_scales.py").write_text("class Scaler: ...")
    monkeypatch.syspath_prepend(tmp_path)
    now = {"class": named(importlib.import_module("kit_of_scales").Scaler)}
    by_bytecode = {OBJECT: "kit_of_scales.Scaler", OLD_DIGEST: "0" * 32}
    assert first_difference(adopted({"class": by_bytecode}, now), now) is None
