import numpy as np
import pytest

from benchmarks.shared import problems


@pytest.mark.parametrize("name", problems.PROBLEMS)
def test_every_problem_has_sixty_configurations(name):
    found = problems.candidates(name)
    assert len({problems.label(settings) for settings in found}) == 60
    kinds = [settings["kind"] for settings in found]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(
        problems.space(name), 30
    )


@pytest.mark.parametrize(
    ("name", "n_train", "n_valid"),
    [("digits", 1347, 450), ("synth", 15_000, 5_000), ("late-bloomers", 4000, 4000)],
)
def test_split_is_the_same_every_time(name, n_train, n_valid):
    X, y, (train, valid) = problems.load(name)
    assert (len(train), len(valid)) == (n_train, n_valid)
    assert sorted([*train, *valid]) == list(range(len(X)))
    assert np.bincount(y[valid]).min() > 0
    again = problems.load(name)[2]
    assert np.array_equal(train, again[0])
    assert np.array_equal(valid, again[1])
