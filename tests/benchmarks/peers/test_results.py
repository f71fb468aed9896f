import numpy as np

from benchmarks.peers import results
from benchmarks.peers.audit import Event
from benchmarks.peers.jobs import Run
from benchmarks.peers.results import AgainstPeers, Result
from benchmarks.shared.problems import BUDGET, PROBLEMS


def result(search, scores, *, seed=0, problem="digits", error="", each=1):
    """Return a run that had these scores, after ``each`` epochs each."""
    events = []
    for n, score in enumerate(scores):
        moment = 100.0 + n
        events += [Event(moment, f"c{n}", k + 1, None) for k in range(each)]
        events.append(Event(moment + 0.5, f"c{n}", each, score))
    run = Run(search, problem, seed, "", 100.0, float(len(scores)), None, error)
    return Result(run, events)


def against(problem, **differences):
    return AgainstPeers(problem, {k: np.array(v) for k, v in differences.items()})


def verdicts(found):
    return [row["verdict"] for row in results.verdicts(found)]


def test_what_is_trained_after_the_budget_does_not_count():
    late = result("peer", [0.5, 0.9], each=BUDGET)
    [row] = results.rows([late])
    assert (row["score"], row["score in the end"]) == (0.5, 0.9)
    assert row["audited epochs"] == 2 * BUDGET


def test_closest_peer_decides():
    found = against("digits", far=[0.2, 0.3], near=[0.02, -0.01])
    assert found.closest == "near"
    assert found.at_least_best
    assert not found.worst
    assert found.row() == {
        "problem": "digits",
        "not below": "2 of 2",
        "best peer": "near",
        "RisingSearchCV above it by": "+0.0050 ± 0.1906",
    }


def test_bars_hold_when_all_is_well():
    found = [against(name, peer=[0.10, 0.11, 0.12]) for name in PROBLEMS]
    assert verdicts(found) == ["holds", "holds", "holds"]


def test_bars_fail_when_it_is_behind():
    found = [against(name, peer=[-0.10, -0.11, -0.12]) for name in PROBLEMS]
    assert verdicts(found) == ["does not hold", "does not hold", "does not hold"]
