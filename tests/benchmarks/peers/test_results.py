from benchmarks.peers import results
from benchmarks.peers.audit import Event
from benchmarks.peers.jobs import Run
from benchmarks.peers.results import Result
from benchmarks.shared.problems import BUDGET


def result(search, scores, *, seed=0, problem="digits", error="", each=1):
    """Return a run that had these scores, after ``each`` epochs each."""
    events = []
    for n, score in enumerate(scores):
        moment = 100.0 + n
        events += [Event(moment, f"c{n}", k + 1, None) for k in range(each)]
        events.append(Event(moment + 0.5, f"c{n}", each, score))
    run = Run(search, problem, seed, "", 100.0, float(len(scores)), None, error)
    return Result(run, events)


def test_what_is_trained_after_the_budget_does_not_count():
    late = result("peer", [0.5, 0.9], each=BUDGET)
    [row] = results.rows([late])
    assert (row["score"], row["score in the end"]) == (0.5, 0.9)
    assert row["audited epochs"] == 2 * BUDGET
