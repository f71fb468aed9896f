import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from benchmarks.shared import problems
from benchmarks.shared.late_bloomers import WarmedNetwork


@pytest.mark.parametrize("name", problems.PROBLEMS)
def test_every_problem_has_sixty_configurations(name):
    found = problems.candidates(name)
    assert len({problems.label(settings) for settings in found}) == 60
    kinds = [settings["kind"] for settings in found]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(
        problems.space(name), 30
    )


def test_labels_do_not_depend_on_the_order():
    first = {"kind": "network", "width": 16, "alpha": None}
    assert problems.label(first) == "kind=network,width=16"
    assert problems.label(dict(reversed(first.items()))) == problems.label(first)


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


def test_reviews_come_from_a_file(tmp_path):
    labels = np.arange(90) % 2
    np.savez(tmp_path / "rows.npz", X=np.eye(90, dtype=np.float32), y=labels)
    X, y, (train, valid) = problems.load("imdb", str(tmp_path / "rows.npz"))
    assert (len(train), len(valid)) == (60, 30)
    assert X.dtype == np.float32
    assert y[valid].sum() == 15


@pytest.mark.parametrize(
    ("name", "kind", "model"),
    [
        ("digits", "linear", SGDClassifier),
        ("imdb", "network", MLPClassifier),
        ("late-bloomers", "deep", WarmedNetwork),
    ],
)
def test_models_are_made_from_their_settings(name, kind, model):
    settings = next(s for s in problems.candidates(name) if s["kind"] == kind)
    assert isinstance(problems.make_model(settings, 0), model)
