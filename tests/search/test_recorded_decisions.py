"""Recorded decisions win: a policy may change between two processes of a search."""

import json

import pytest
from kept_search import facts

from risingsearch.cli.main import main
from risingsearch.errors import RunDirError
from risingsearch.policies.tuning import looks_then_slope
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.storage.journal import Journal, create, read

CANDIDATES = [{"top": 0.5 + i / 60, "slow": 1 + (i * 7) % 13} for i in range(30)]


class Counting:
    """Rises slowly to its top; after so many epochs the process is interrupted."""

    def __init__(self, epochs=None):
        self.trained = []
        self.epochs = epochs

    def start(self, params, seed):
        return {"epochs": 0, **params}

    def train(self, state):
        if len(self.trained) == self.epochs:
            raise KeyboardInterrupt
        state["epochs"] += 1
        self.trained.append((state["top"], state["epochs"]))
        return state["top"] * (1 - 1 / (state["epochs"] + state["slow"]))


def a_search(run_dir=None, trainable=None):
    return RisingSearch(
        trainable or Counting(),
        CANDIDATES,
        budget=150,
        max_epochs=20,
        seed=0,
        run_dir=run_dir,
    )


@pytest.fixture
def change(monkeypatch):
    """Change the default policy as a later release may."""

    def change():
        monkeypatch.setattr(looks_then_slope, "climbs", lambda policy, rung: False)

    return change


STATES = pytest.mark.parametrize("with_state", [True, False])


def interrupted(run_dir, *, with_state, epochs=90):
    trainable = Counting(epochs)
    with pytest.raises(KeyboardInterrupt):
        a_search(run_dir, trainable).run()
    if not with_state:
        (run_dir / "state.json").unlink(missing_ok=True)
    return trainable.trained


def test_the_change_makes_another_search(change):
    before = a_search().run()
    change()
    assert a_search().run().history["arm"] != before.history["arm"]


@STATES
def test_the_same_release_continues_as_if_never_interrupted(folder, with_state):
    whole = a_search().run()
    interrupted(folder, with_state=with_state)
    assert facts(RisingSearch.resume(folder, Counting()).run()) == facts(whole)


@STATES
def test_another_release_continues_from_what_was_recorded(folder, change, with_state):
    trained = interrupted(folder, with_state=with_state)
    before = facts(RisingSearch.saved_result(folder))
    change()
    assert facts(RisingSearch.saved_result(folder))[:3] == before[:3]
    trainable = Counting()
    resumed = RisingSearch.resume(folder, trainable)
    assert facts(resumed.result())[:3] == before[:3]
    result = resumed.run()
    assert result.n_epochs == 150
    n_told = len(before[0])
    assert facts(result)[0][:n_told] == before[0]
    assert not set(trained[:n_told]) & set(trainable.trained)
    assert facts(a_search(folder).run()) == facts(result)


@STATES
@pytest.mark.parametrize("epochs", [90, None])
def test_another_release_shows_what_was_recorded(
    folder, change, with_state, epochs, capsys
):
    if epochs is None:
        a_search(folder).run()
    else:
        interrupted(folder, with_state=with_state)
    if not with_state:
        (folder / "state.json").unlink(missing_ok=True)

    def shown():
        said = []
        for command in ("status", "export"):
            assert main([command, str(folder), *["--json"][: command == "status"]]) == 0
            said.append(capsys.readouterr().out)
        assert main(["report", str(folder)]) == 0
        capsys.readouterr()
        status = json.loads(said[0])
        return said[1], {name: status[name] for name in ("best_score", "epochs")}

    before = shown()
    change()
    assert shown() == before


def test_a_decision_is_on_disk_before_its_job_runs(folder):
    seen = []

    def train(state):
        seen.append(read(folder / "journal.jsonl").events[-1])
        return 0.5

    trainable = Functions(lambda params, seed: {}, train)
    result = RisingSearch(
        trainable, CANDIDATES, budget=9, max_epochs=3, seed=0, run_dir=folder
    ).run()
    assert {event["event"] for event in seen} == {"started"}
    assert [event["reason"] for event in seen] == result.history["reason"]
    assert [event["job"][0] for event in seen] == result.history["arm"]


@pytest.mark.parametrize(
    "change",
    [
        *({"like": like} for like in ("ab", 3, [[1]], [-1], [1.5])),
        *({"instead_of": arm} for arm in (-1, "x", 1.0)),
        *({"params": params} for params in ([1], 3, "ab")),
        *({"parts": parts} for parts in ({"arm": "x"}, [1], None)),
        *({"reason": reason} for reason in (7, ["x"], None)),
        *({"seen": seen} for seen in ("x", -1)),
        *({"clock": clock} for clock in (1e308, "x", [])),
        {"seconds": [1e308]},
    ],
)
def test_a_forged_event_is_refused_however_it_is_looked_at(folder, change):
    interrupted(folder, with_state=False, epochs=5)
    journal = folder / "journal.jsonl"
    header, events, _ = read(journal)
    create(journal, header)
    log = Journal(journal, read(journal))
    at = int(change.keys() <= {"clock", "seconds"})  # of a result
    for event in (*events[:at], events[at] | change):
        log.append(event)
    for look in (RisingSearch.saved_result, lambda at: a_search(at, Counting())):
        with pytest.raises(RunDirError, match="no release has written"):
            look(folder)


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_result_of_another_job_than_its_saved_state_has_is_refused(folder, number):
    a_search(folder, Counting()).run()
    journal = folder / "journal.jsonl"
    header, events, _ = read(journal)
    create(journal, header)
    log = Journal(journal, read(journal))
    results = [event for event in events if event["event"] == "result"]
    results[2]["job"][number] += 50
    for event in events:
        log.append(event)
    with pytest.raises(RunDirError, match="no release has written"):
        a_search(folder, Counting())


def test_so_is_code_that_no_release_has_noted(folder):
    interrupted(folder, with_state=False, epochs=5)
    journal = folder / "journal.jsonl"
    header, _, _ = read(journal)
    create(journal, header | {"code": header["code"] | {"callbacks": [1]}})
    with pytest.raises(RunDirError, match="no release has written"):
        a_search(folder, Counting())
