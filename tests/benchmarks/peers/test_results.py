import numpy as np
import pytest

from benchmarks.peers import results
from benchmarks.peers.audit import Event
from benchmarks.peers.jobs import Run
from benchmarks.peers.results import OWN, AgainstPeers, Result
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


def test_curve_is_the_best_score_by_epochs_and_seconds():
    found = result(OWN, [0.3, 0.2, 0.5], each=2)
    assert found.curve.tolist() == [[2, 0.5, 0.3], [4, 1.5, 0.3], [6, 2.5, 0.5]]
    assert (found.n_epochs, found.n_configurations) == (6, 3)


def test_best_counts_what_was_seen_by_then():
    found = result(OWN, [0.3, 0.2, 0.5], each=2)
    assert [found.best(n) for n in (2, 5, 6)] == [0.3, 0.3, 0.5]
    assert found.best() == 0.5
    assert np.isnan(found.best(1))


def test_what_is_trained_after_the_budget_does_not_count():
    late = result("peer", [0.5, 0.9], each=BUDGET)
    [row] = results.rows([late])
    assert (row["score"], row["score in the end"]) == (0.5, 0.9)
    assert row["audited epochs"] == 2 * BUDGET


def test_margins_are_at_the_same_epochs_and_seeds():
    own = [result(OWN, [0.5, 0.6, 0.9]), result(OWN, [0.7], seed=1)]
    peer = [result("peer", [0.4, 0.7]), result("peer", [0.7], seed=2)]
    assert results.margins(own, peer) == pytest.approx([-0.1])


def test_comparisons_leave_out_what_failed():
    found = [
        result(OWN, [0.5]),
        result("peer", [0.4]),
        result("broken", [], error="it broke"),
        result(OWN, [0.5], problem="synth", error="it broke"),
        result("peer", [0.4], problem="synth"),
    ]
    [compared] = results.compare_with_peers(found)
    assert (compared.problem, list(compared.differences)) == ("digits", ["peer"])


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


def test_level_is_at_least_the_best():
    found = against("digits", level=[0.1, -0.1], other=[0.1, 0.1])
    assert found.at_least_best


def test_worst_is_below_everybody():
    assert against("digits", a=[-0.1], b=[-0.2]).worst
    assert not against("digits", a=[-0.1], b=[0.0]).worst


def test_clearly_best_is_above_the_interval():
    assert against("digits", a=[0.10, 0.11, 0.12]).clearly_best
    assert not against("digits", a=[0.10, 0.11, 0.12], b=[0.0, 0.1, 0.2]).clearly_best
    assert not against("digits", one_seed=[0.1]).clearly_best


def test_what_is_not_clear_is_said():
    found = against("digits", a=[0.10, 0.11, 0.12], b=[-0.1, -0.2])
    assert found.clearly() == "clearly above 1 of 2; -0.1500 ± 0.6353 against b"


def test_bars_hold_when_all_is_well():
    found = [against(name, peer=[0.10, 0.11, 0.12]) for name in PROBLEMS]
    assert verdicts(found) == ["holds", "holds", "holds"]


def test_bars_fail_when_it_is_behind():
    found = [against(name, peer=[-0.10, -0.11, -0.12]) for name in PROBLEMS]
    assert verdicts(found) == ["does not hold", "does not hold", "does not hold"]


def test_three_of_four_are_enough():
    ahead = [against(name, peer=[0.1, 0.2]) for name in PROBLEMS[:3]]
    behind = against(PROBLEMS[3], peer=[-0.1, -0.2], other=[0.1, 0.2])
    assert verdicts([*ahead, behind]) == ["holds", "holds", "does not hold"]


def test_bars_are_open_while_problems_are_missing():
    assert verdicts([]) == ["not decided"] * 3
    [row, *_] = results.verdicts([against("digits", peer=[0.1])])
    assert (row["came out"], row["verdict"]) == ("on 1 of 1: digits", "not decided")


def test_bars_are_decided_as_soon_as_nothing_can_change_them():
    behind = [against(name, a=[-0.1], b=[0.1]) for name in PROBLEMS[:2]]
    assert verdicts(behind)[0] == "does not hold"
    assert verdicts([against("digits", a=[-0.1])])[1] == "does not hold"


def test_table_names_failures():
    found = [
        result("peer", [0.4], seed=0),
        result("peer", [], seed=1, error="exit code 1: it broke"),
        result("absent", [], error="not installed: no such package"),
    ]
    first, second = results.table(found)
    assert (first["mean"], first["failed"]) == (
        "0.4000",
        "1 of 2: exit code 1: it broke",
    )
    assert (second["mean"], second["audited epochs"]) == ("-", "-")
    assert second["failed"] == "1 of 1: not installed: no such package"


def test_table_shows_mean_and_worst_seed():
    found = [result("peer", [0.4]), result("peer", [0.8, 0.1], seed=1)]
    [row] = results.table(found)
    assert (row["mean"], row["worst seed"]) == ("0.6000", "0.4000")
    assert (row["audited epochs"], row["tried"]) == ("1 to 2", "1 to 2")
