"""What the recorded searches train; all of it exact arithmetic, so that bits agree."""

from sklearn.base import BaseEstimator, ClassifierMixin

from risingsearch.errors import ScriptError


def height(params, epoch):
    """Return the score of a configuration after so many epochs."""
    top, speed = params["top"], params["speed"]
    return top * epoch / (epoch + 8.0 - speed)


class Rising:
    """Rises to ``top``; a configuration with ``breaks_at`` fails once at that epoch."""

    def start(self, params, seed):
        return {**params, "epoch": 0}

    def train(self, state):
        state["epoch"] += 1
        if state["epoch"] == state.get("breaks_at"):
            raise ScriptError("broken")
        return {"score": height(state, state["epoch"]), "twice": 2 * state["epoch"]}


class LastUnopened:
    """Proposes the unopened arm with the highest number."""

    def propose(self, opened, unopened, rng):
        return int(unopened[-1])


class Counting(ClassifierMixin, BaseEstimator):
    """Says the class that it was built for, rightly more often the longer it trains."""

    def __init__(self, speed=1):
        self.speed = speed

    def partial_fit(self, X, y, classes=None):
        if not hasattr(self, "n_epochs_"):
            self.classes_, self.n_epochs_ = sorted(classes), 0
        self.n_epochs_ += 1
        return self

    def fit(self, X, y):
        return self.partial_fit(X, y, classes=set(y))

    def predict(self, X):
        known = 1 + self.speed * self.n_epochs_
        return [int(row[0]) if i < known else -1 for i, row in enumerate(X)]
