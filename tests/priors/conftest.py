import pytest

from risingsearch import Functions, RisingSearch
from tests.search.example_search import start

CANDIDATES = [{"top": top, "kind": kind} for top in (0.9, 0.5, 0.7) for kind in "ab"]


def train(state):
    if state["kind"] == "b" and state["top"] == 0.5:
        raise ValueError("no such kind")
    state["epochs"] += 1
    score = state["top"] * (1 - 0.5 ** state["epochs"])
    return {"score": score, "loss": 1 - score}


@pytest.fixture
def make_search():
    """Return a function: a search over curves, of which one arm fails."""

    def make(candidates=CANDIDATES, budget=30, **options):
        options = {"max_epochs": 8, "policy": "cure-ucb", "seed": 0} | options
        return RisingSearch(
            Functions(start, train), candidates, budget=budget, **options
        )

    return make


@pytest.fixture
def curves_by_params():
    """Return a function: the curves of an earlier search by the text of parameters."""

    def of(earlier):
        pairs = zip(earlier.params, earlier.curves, strict=True)
        return {str(dict(params)): curve.tolist() for params, curve in pairs}

    return of
