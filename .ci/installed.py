"""What an installation must do where nothing but the core is installed."""

import importlib.util
import sys
from pathlib import Path

before = set(sys.modules)
import risingsearch  # noqa: E402

loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
assert loaded <= {"__future__", "risingsearch"}, loaded
checkout = Path(__file__).resolve().parents[1] / "risingsearch"
package = Path(risingsearch.__file__).resolve().parent
assert package != checkout, "this is the checkout's, not what was installed"
assert importlib.util.find_spec("sklearn") is None


def start(params, seed):
    """Return a model before its first epoch."""
    return {"weight": 0.0, **params}


def train(model):
    """Train the model for an epoch; return its score."""
    model["weight"] += model["rate"] * (1 - model["weight"])
    return model["weight"]


search = risingsearch.RisingSearch(
    risingsearch.Functions(start, train),
    candidates=[{"rate": rate} for rate in (0.1, 0.5, 0.9)],
    budget=12,
    seed=0,
)
found = search.run().best_params
assert found == {"rate": 0.9}, found

message = ""
try:
    risingsearch.RisingSearchCV  # noqa: B018
except risingsearch.MissingDependencyError as error:
    message = str(error)
assert 'pip install "risingsearch[sklearn]"' in message, message
