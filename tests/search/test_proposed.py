"""Configurations that are proposed while a search runs, and take an arm's place."""

import json
import shutil
from dataclasses import replace
from typing import ClassVar

import pytest
from kept_search import CANDIDATES, CrashError, Rising, a_search, crashing, facts
from optuna.distributions import IntDistribution
from scipy import stats

from risingsearch.cli import main as cli
from risingsearch.errors import (
    InvalidParameterError,
    PolicyError,
    RunDirError,
    SearchFailedError,
)
from risingsearch.priors.sources import read_prior
from risingsearch.proposers import Proposal, Proposer
from risingsearch.search.search import RisingSearch
from risingsearch.space import Space
from risingsearch.storage.journal import read

SIZED = [one | {"size": (2, 1)} for one in CANDIDATES]
ALIKE = {"policy": "round-robin", "budget": 40, "max_epochs": 5}


class Proposing(Proposer):
    """Proposes another configuration for two of three arms."""

    identity = "proposing"

    def __init__(self):
        self.curves = []

    def propose(self, opened, unopened, rng):
        self.curves.append([curve.tolist() for curve in opened.curves])
        if len(opened.arms) % 3 == 0:
            return None
        top = float(rng.random())
        like = tuple(opened.arms[-2:].tolist())
        params = {"arm": 108 - len(unopened), "top": top, "speed": 2}
        return Proposal(params | {"size": (1, 2)}, like)


def the_search(folder, proposer=None, trainable=None, **options):
    options = {"candidates": SIZED, "proposer": proposer or Proposing()} | options
    return a_search(folder, trainable, **ALIKE | options)


def the_facts(result):
    return [facts(result), repr(result.candidates)]


def test_a_proposal_takes_the_place_of_the_arm_that_is_opened():
    proposer = Proposing()
    search = the_search(None, proposer)
    result = search.run()
    numbers = [params["arm"] for params in result.candidates]
    proposed = [arm for arm in range(8) if numbers[arm] != arm]
    assert sorted(numbers[arm] for arm in proposed) == [101, 102, 104, 105, 107]
    assert {row["own"][0] for row in result.history} == set(numbers)
    arm = result.arms[numbers.index(107)]
    assert len(arm.like) == 2
    assert arm.reason.endswith(f"; resembles arms {arm.like[0]}, {arm.like[1]}")
    assert search.scheduler.proposals.keys() == set(proposed)
    opened = {row["arm"]: row["reason"] for row in reversed(result.history)}
    assert {one for one in opened if opened[one] == "opened as proposed"} == {*proposed}
    said = [one.arm for one in result.arms if "; opened as proposed" in one.reason]
    assert said == proposed
    first = [result.curves[row["arm"]][:1] for row in result.history[:2]]
    assert sorted(proposer.curves[2]) == sorted(first)


@pytest.mark.parametrize("n_jobs", [None, 4])
@pytest.mark.parametrize("at", [1, 5, 17])
def test_a_resumed_search_draws_and_proposes_nothing_again(
    tmp_path, folder, threads, at, n_jobs
):
    options = {} if n_jobs is None else {"executor": threads, "n_jobs": n_jobs}
    expected = the_facts(the_search(tmp_path / "whole", **options).run())
    with pytest.raises(CrashError):
        the_search(folder, callbacks=crashing(at), **options).run()
    for keep_state in (True, False):
        copy = tmp_path / f"copy {keep_state}"
        shutil.copytree(folder, copy)
        if not keep_state:
            (copy / "state.json").unlink(missing_ok=True)
        proposer = Proposing()
        executor = {"executor": threads} if n_jobs else {}
        search = RisingSearch.resume(copy, Rising(), proposer=proposer, **executor)
        assert the_facts(search.run()) == expected
        assert len(proposer.curves) < 8


def test_a_lost_decision_is_made_again(tmp_path, folder):
    expected = the_facts(the_search(tmp_path / "whole").run())
    with pytest.raises(CrashError):
        the_search(folder, callbacks=crashing(4)).run()
    journal = folder / "journal.jsonl"
    *lines, last = journal.read_bytes().splitlines(keepends=True)
    assert b'"params"' in b"".join(lines)
    journal.write_bytes(b"".join(lines) + last[: len(last) // 2])
    assert the_facts(the_search(folder).run()) == expected


def test_state_and_journal_know_the_proposals(folder):
    search = the_search(folder)
    result = search.run()
    events = read(folder / "journal.jsonl").events
    written = {event["job"][0]: event for event in events if "params" in event}
    assert written.keys() == search.scheduler.proposals.keys()
    arm = max(written)
    assert written[arm]["like"] == list(result.arms[arm].like)
    saved = RisingSearch.saved_result(folder)
    assert saved.candidates == result.candidates
    assert [one.like for one in saved.arms] == [one.like for one in result.arms]
    state = json.loads(json.dumps(search.scheduler.state_dict()))
    twin = the_search(folder.parent / "twin")
    twin.scheduler.load_state_dict(state)
    assert twin.scheduler.proposals == search.scheduler.proposals


def test_every_reader_of_a_run_shows_what_was_proposed(folder, capsys):
    result = the_search(folder).run()
    arm = max(arm for arm in range(8) if result.arms[arm].like)
    top = result.candidates[arm]["top"]
    assert cli.main(["export", str(folder), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["param_top"] for row in rows if row["arm"] == arm} == {top}
    assert cli.main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert f"{top:.6g}"[:5] in page
    assert f"resembles arms {result.arms[arm].like[0]}" in page
    [earlier] = read_prior(folder)
    assert top in [params["top"] for params in earlier.params]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Proposal([1]), r"Wrong proposed \[1\], which is no dict"),
        (Proposal({"arm": 1, "top": 0.5, "speed": 1}), "'size' is missing"),
        (Proposal(SIZED[0] | {"sped": 1}), "search: 'sped' is not one of arm, size"),
        (Proposal(SIZED[0], like=(7,)), r"Wrong proposed like=\(7,\), which are not"),
    ],
)
def test_an_invalid_proposal_is_refused_before_its_job_starts(wrong, message):
    class Wrong(Proposer):
        def propose(self, opened, unopened, rng):
            return wrong

    search = the_search(None, Wrong())
    with pytest.raises(PolicyError, match=message):
        search.run()
    assert search.scheduler.n_asked == 0


class TestSpace:
    """A search over a space, whose slots are drawn and may be filled anew."""

    SPACE: ClassVar = {
        "arm": range(50),
        "top": stats.uniform(0.1, 0.8),
        "speed": IntDistribution(1, 4),
        "kind": ["a", Rising],
    }

    def search(self, folder=None, space=SPACE, **options):
        return a_search(folder, candidates=space, **ALIKE | options)

    def proposer(self):
        space, known = Space.of(self.SPACE), self

        class FromSpace(Proposing):
            def propose(self, opened, unopened, rng):
                return Proposal(known.last(space, rng), tuple(opened.arms[-1:]))

        return FromSpace()

    def last(self, space, rng):
        return space.from_unit([*rng.random(3), 0.9])

    def test_slots_are_drawn_by_the_seed(self):
        first, again, other = (self.search(policy="auto", seed=k) for k in (3, 3, 4))
        assert first.candidates == again.candidates != other.candidates
        assert len(first.candidates) == 40
        assert len(self.search().candidates) == 8  # by the policy's rule
        assert len(self.search(n_candidates=7).candidates) == 7
        assert len(self.search(budget="1h").candidates) == 500
        for params in first.candidates:
            assert params.keys() == self.SPACE.keys()
            assert type(params["speed"]) is int
        assert first.run().best_score > 0.1

    @pytest.mark.parametrize("top", [[1, 2, 3], IntDistribution(1, 3)])
    def test_a_space_that_is_drawn_whole_is_a_list(self, folder, top):
        search = self.search(folder, {"top": top, "arm": [0], "speed": [1]})
        assert sorted(params["top"] for params in search.candidates) == [1, 2, 3]
        assert "space" not in read(folder / "journal.jsonl").header["settings"]
        assert RisingSearch.resume(folder, Rising()).run().n_epochs == 15

    def few(self, folder=None, budget=20, **options):
        space = {"arm": [0], "top": IntDistribution(1, 30), "speed": [1]}
        options = {"policy": "auto", "budget": budget, "max_epochs": 4} | options
        return a_search(folder, candidates=space, **options)

    def test_an_extended_search_opens_no_configuration_twice(self, tmp_path, folder):
        whole = self.few(tmp_path / "w")
        whole.run()
        whole.extend(100)
        whole = whole.run()
        opened = [whole.candidates[arm.arm]["top"] for arm in whole.arms if arm.epochs]
        assert sorted(opened) == [*range(1, 31)]
        self.few(folder).run()
        for n in (30, 50, 90):
            search = self.few(folder, callbacks=crashing(n))
            if search.scheduler.budget == 20:
                search.extend(100)
            with pytest.raises(CrashError):
                search.run()
            if n > 30:
                (folder / "state.json").unlink(missing_ok=True)
        again = self.few(folder).run()
        assert facts(again) == facts(whole)
        assert again.candidates == whole.candidates

    @pytest.mark.parametrize("limit", [20, 0])
    def test_what_ends_before_its_first_epoch_is_known(self, limit):
        begun = []

        class Fitting(Rising):
            def train(self, state):
                begun.append(state)
                if state["top"] > limit:
                    raise StopIteration
                return super().train(state)

        search = self.few(trainable=Fitting(), budget=60)
        if limit:
            assert search.run().n_epochs == 60
        else:
            with pytest.raises(SearchFailedError):
                search.run()
            assert len(begun) == 30

    def test_a_proposal_is_of_the_space(self):
        class Wrong(Proposer):
            def propose(self, opened, unopened, rng):
                return Proposal({"arm": 1, "top": 5.0, "speed": 1, "kind": "a"})

        with pytest.raises(PolicyError, match=r"top=5\.0 is not a value of the space"):
            self.search(proposer=Wrong()).run()

    def test_resumed_by_its_arguments_or_its_directory(self, tmp_path, folder):
        options = {"policy": "round-robin", "n_candidates": 8}
        whole = self.search(tmp_path / "w", proposer=self.proposer(), **options).run()
        with pytest.raises(CrashError):
            self.search(
                folder, proposer=self.proposer(), callbacks=crashing(5), **options
            ).run()
        other = tmp_path / "other"
        shutil.copytree(folder, other)
        shown = RisingSearch.saved_result(folder)
        assert any("Rising" in params["kind"] for params in shown.candidates)
        (other / "state.json").unlink(missing_ok=True)
        by_arguments = self.search(folder, proposer=self.proposer(), **options).run()
        assert facts(by_arguments) == facts(whole)
        assert by_arguments.candidates == whole.candidates
        found = RisingSearch.resume(other, Rising(), proposer=self.proposer()).run()
        assert facts(found) == facts(whole)
        assert found.candidates == whole.candidates
        assert any(params["kind"] is Rising for params in found.candidates)

    def test_what_is_shown_is_what_was_found(self, folder):
        found = self.search(folder, policy="auto").run()
        shown = RisingSearch.saved_result(folder)
        arms, in_search = (
            [replace(arm, params={}) for arm in result.arms]
            for result in (shown, found)
        )
        assert repr(arms) == repr(in_search)
        assert shown.left_out

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"top": stats.uniform(0.1, 0.9)}, r"space\.top\.of"),
            ({"speed": IntDistribution(1, 5)}, r"space\.speed\.high=4, .*=5"),
            ({"new": [1]}, r"space\.new=None"),
        ],
    )
    def test_another_space_is_refused_by_name(self, folder, change, message):
        self.search(folder)
        with pytest.raises(RunDirError, match=message):
            self.search(folder, space=self.SPACE | change)
        with pytest.raises(RunDirError, match=r"with seed=3, .*with seed=4"):
            self.search(folder, seed=4)
        with pytest.raises(RunDirError, match="with space="):
            self.search(folder, space=[{"arm": 0, "top": 0.5, "speed": 1}])

    def test_a_number_of_candidates_is_for_a_space(self):
        with pytest.raises(InvalidParameterError, match="n_candidates is for a space"):
            a_search(None, n_candidates=3)
        with pytest.raises(InvalidParameterError, match="the space is empty"):
            self.search(space={})

    def test_what_is_enqueued_may_have_any_parameter_of_the_space(self):
        parts = [{"arm": [0], "top": stats.uniform(), "speed": [1]}]
        parts += [{"arm": [0], "top": stats.uniform(), "speed": [1], "rare": [3]}]
        known = {"arm": 0, "top": 0.5, "speed": 1, "rare": 3}
        search = self.search(space=parts, enqueue=[known], n_candidates=1)
        assert known in search.candidates
        with pytest.raises(InvalidParameterError, match="'other' is not one of"):
            self.search(space=parts, enqueue=[known | {"other": 1}])

    def test_what_is_enqueued_keeps_its_configuration(self):
        known = {"arm": 1, "top": 0.9, "speed": 1, "kind": "a"}
        search = self.search(proposer=self.proposer(), enqueue=[known], n_candidates=8)
        result = search.run()
        [arm] = search.scheduler._decider.options.enqueue
        assert result.candidates[arm] == known
        assert set(search.scheduler.proposals) == set(range(9)) - {arm}
