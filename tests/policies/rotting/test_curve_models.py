"""The models that the policies are given."""

import math

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies.rotting.cto import DCTOUCB
from risingsearch.policies.rotting.curve_models import plateau_models


def test_plateau_models_are_those_of_the_paper():
    models = plateau_models(30_000)
    assert models.shape == (7, 30_000)
    assert np.unique(models[2, :400], return_counts=True)[1].tolist()[::-1] == [
        99,
        100,
        100,
        100,
        1,
    ]
    assert models[0, 99] == 2**-0.1
    assert models[6, 29_999] == pytest.approx(301**-0.4)


CREATE = [DCTOUCB.create_cto_sim, DCTOUCB.create, DCTOUCB.create_sim]


@pytest.mark.parametrize("create", CREATE)
@pytest.mark.parametrize(
    "models", [[], [[]], [0.5, 0.4], [[0.5, 0.4], [0.5]], [[0.5, math.nan]], "steep"]
)
def test_models_are_a_table_of_finite_numbers(create, models):
    with pytest.raises(InvalidParameterError, match="models must be a table of finite"):
        create(2, 2, models=models)


@pytest.mark.parametrize("create", CREATE)
def test_models_must_cover_all_pulls_of_an_arm(create):
    models = np.ones((2, 8))
    assert create(2, 20, 8, models=models).models.shape == (8, 2)
    with pytest.raises(InvalidParameterError, match=r"cover the 9 pulls .* after 8"):
        create(2, 20, 9, models=models)
    with pytest.raises(InvalidParameterError, match=r"cover the 20 pulls .* after 8"):
        create(2, 20, models=models)
