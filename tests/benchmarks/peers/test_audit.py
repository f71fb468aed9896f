import pytest
from sklearn.datasets import load_digits

from benchmarks.peers import audit
from benchmarks.peers.audit import AuditedClassifier

X, Y = load_digits(return_X_y=True)
X, Y = X[:200] / 16.0, Y[:200]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def classifier(log, **settings):
    linear = {"kind": "linear", "alpha": 1e-4, "rate": 0.1, "penalty": "l2"}
    return AuditedClassifier(str(log), **(linear | settings))


def test_every_epoch_and_every_score_is_an_event(log):
    model = classifier(log).partial_fit(X, Y).partial_fit(X, Y)
    accuracy = model.score(X, Y)
    events = audit.read(log)
    assert [(event.epoch, event.score) for event in events] == [
        (1, None),
        (2, None),
        (2, accuracy),
    ]
    assert {event.configuration for event in events} == {
        "alpha=0.0001,kind=linear,penalty=l2,rate=0.1"
    }
    assert audit.n_epochs(log) == 2
