"""A search on disk survives whatever ends its process, and ends as if nothing had."""

import json
import math
import os
import pickle
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from kept_search import (
    CANDIDATES,
    CrashError,
    Rising,
    a_search,
    crashed,
    crashing,
    facts,
    files,
    whole,
)

from risingsearch.errors import (
    InvalidParameterError,
    RunDirError,
    SetupError,
    WorkerError,
)
from risingsearch.policies.base import arm_arrays
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.search import run_log
from risingsearch.search.arguments import SAVED
from risingsearch.search.run import FIRST_DEFAULTS, earlier_failure
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.storage.journal import Journal, create, read
from risingsearch.storage.run_directory import JOURNAL, STATE


class OwnError(Exception):
    def __init__(self, n, what):
        super().__init__(n, what)
        self.n, self.what = n, what

    def __str__(self):
        return f"{self.n} {self.what}"


class TestGoingOn:
    @pytest.mark.parametrize("at", [1, 9, 20])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"deterministic": False},
            {"policy": "asha"},
            {"policy": "random", "shuffle": False},
            {"epochs_per_job": 4, "direction": "minimize"},
            {"max_epochs": None, "policy": "cure-ucb"},
        ],
    )
    def test_it_ends_as_if_it_had_never_stopped(self, tmp_path, folder, options, at):
        expected = whole(tmp_path, **options)
        trainable = Rising()
        crashed(folder, trainable, at, **options)
        result = a_search(folder, trainable, **options).run()
        assert facts(result) == facts(expected)
        assert result.best_state() == expected.best_state()
        assert max(Counter(trainable.trained).values()) == 1

    @pytest.mark.parametrize("n_workers", [1, 2])
    def test_with_workers(self, tmp_path, folder, n_workers):
        with ThreadPoolExecutor(n_workers) as executor:
            expected = whole(tmp_path, executor=executor)
            crashed(folder, executor=executor)
            result = a_search(folder, executor=executor).run()
        assert facts(result) == facts(expected)

    def test_what_workers_began_one_process_ends(self, tmp_path, folder, threads):
        expected = whole(tmp_path, executor=threads)
        crashed(folder, executor=threads)
        assert facts(RisingSearch.resume(folder, Rising()).run()) == facts(expected)

    def test_a_finished_search_runs_nothing(self, folder):
        expected = a_search(folder).run()
        trainable = Rising()
        for result in (
            RisingSearch.resume(folder, trainable).run(),
            a_search(folder, trainable).run(),
        ):
            assert facts(result) == facts(expected)
            assert result.best_state() == expected.best_state()
            assert repr(result.history) == repr(expected.history)
        assert not trainable.trained

    @pytest.mark.parametrize("at", [8, 20, 30])
    def test_after_an_extension(self, tmp_path, folder, at):
        whole_search = a_search(tmp_path / "whole")
        whole_search.run()
        whole_search.extend(10)
        expected = whole_search.run()
        trainable = Rising()
        if at > 24:
            search = a_search(folder, trainable)
            search.run()
            search.extend(10)
            search.callbacks = crashing(at)
            with pytest.raises(CrashError):
                search.run()
        else:
            crashed(folder, trainable, at)
            search = RisingSearch.resume(folder, trainable)
            search.run()
            RisingSearch.resume(folder, trainable).extend(10)
        result = a_search(folder, trainable).run()
        assert facts(result) == facts(expected)
        assert result.n_epochs == 34
        assert max(Counter(trainable.trained).values()) == 1

    def test_without_a_seed_every_arm_keeps_its_own(self, folder):
        trainable = Rising()
        crashed(folder, trainable, seed=None)
        seeds = []
        for again in (a_search, RisingSearch.resume):
            options = {"seed": None} if again is a_search else {}
            search = again(folder, trainable, **options)
            seeds.append([search.seed_of(arm) for arm in range(8)])
        assert seeds[0] == seeds[1]
        result = search.run()
        assert result.n_epochs == len(set(trainable.trained)) == len(trainable.trained)
        other = a_search(folder.with_name("other"), seed=None)
        assert [other.seed_of(arm) for arm in range(8)] != seeds[0]

    def test_candidates_may_hold_objects(self, tmp_path, folder):
        candidates = [{**params, "rate": Fraction(1, 3)} for params in CANDIDATES]
        expected = whole(tmp_path, candidates=candidates)
        crashed(folder, candidates=candidates)
        search = RisingSearch.resume(folder, Rising())
        assert search.candidates == candidates
        assert facts(search.run()) == facts(expected)
        assert a_search(folder, candidates=candidates).run().n_epochs == 24

    def test_a_policy_that_is_an_object_is_given_again(self, tmp_path, folder):
        expected = whole(tmp_path, policy=RoundRobin.create)
        crashed(folder, policy=RoundRobin.create)
        with pytest.raises(InvalidParameterError, match="give policy"):
            RisingSearch.resume(folder, Rising())
        search = RisingSearch.resume(folder, Rising(), policy=RoundRobin.create)
        assert facts(search.run()) == facts(expected)

    @pytest.mark.parametrize("at", [3, 17])
    def test_a_policy_that_holds_a_list_is_replayed(
        self, tmp_path, folder, monkeypatch, at
    ):
        monkeypatch.setattr(run_log, "FEWEST_EVENTS", 8)
        options = {"policy": Listing, "shuffle": False}
        expected = a_search(tmp_path / "whole", **options)
        expected.run()
        crashed(folder, at=at, **options)
        search = a_search(folder, **options)
        assert facts(search.run()) == facts(expected.result())
        for one in (search, expected):
            one.extend(6)
        assert facts(search.run()) == facts(expected.run())


class Listing(NamedTuple):
    """Chooses by the hash of all rewards, which it keeps in a list."""

    available: object
    pulls_left: object
    horizon: object
    pulls: object
    memory: list

    @classmethod
    def create(cls, n_arms, horizon, max_pulls):
        return cls(*arm_arrays(n_arms, horizon, max_pulls), memory=[])

    def select(self, t, rng):
        free = np.flatnonzero(self.available)
        return int(free[hash(tuple(self.memory)) % len(free)])

    def update(self, t, arm, reward, rng):
        self.pulls[arm] += 1
        self.memory.append(reward)


class Loaded(dict):
    """State of an arm; if there is an error, that of arm 2 cannot be loaded."""

    error: ClassVar = None

    def __init__(self, values):
        super().__init__(values)
        if self.error is not None and self["arm"] == 2:
            raise self.error

    def __reduce__(self):
        return Loaded, (dict(self),)


class ByPickle(Rising):
    def start(self, params, seed):
        return Loaded(super().start(params, seed))


class ByHooks(Rising):
    def save(self, state, path):
        Path(path).write_text(json.dumps(state))

    def load(self, path):
        return Loaded(json.loads(Path(path).read_text()))


@pytest.mark.parametrize("trainable", [ByPickle(), ByHooks()])
class TestStatesThatCannotBeLoaded:
    @pytest.mark.parametrize("max_failures", [0, 1])
    def test_the_arm_fails_alone_as_in_a_worker(
        self, tmp_path, threads, monkeypatch, trainable, max_failures
    ):
        options = {"policy": "round-robin", "n_jobs": 1, "max_failures": max_failures}
        results = []
        for name, executor in (("here", None), ("threads", threads)):
            options["executor"] = executor
            crashed(tmp_path / name, trainable, at=14, **options)
            with monkeypatch.context() as patch:
                patch.setattr(Loaded, "error", KeyError("layer"))
                results.append(a_search(tmp_path / name, trainable, **options).run())
        assert facts(results[0]) == facts(results[1])
        assert results[0].n_epochs == 24
        [arm] = [arm for arm in results[0].arms if arm.status == "failed"]
        assert (arm.arm, arm.failures) == (2, max_failures + 1)
        assert str(results[0].failures[-1].failure) == "'layer'"

    def test_a_setup_that_is_wrong_ends_the_search(
        self, tmp_path, folder, monkeypatch, trainable
    ):
        expected = whole(tmp_path, trainable, policy="round-robin")
        crashed(folder, trainable, at=14, policy="round-robin")
        with monkeypatch.context() as patch:
            patch.setattr(Loaded, "error", SetupError("the disk is gone"))
            for _ in range(2):
                with pytest.raises(SetupError, match="the disk is gone"):
                    a_search(folder, trainable, policy="round-robin").run()
        assert facts(a_search(folder, trainable, policy="round-robin").run()) == facts(
            expected
        )


RETRIED = {"max_failures": 1, "shuffle": False, "policy": "round-robin"}


class TestArmsThatFailOrEnd:
    def events(self):
        return {
            "arm_1_epoch_2": ValueError("too hot"),
            "arm_2_epoch_3": StopIteration,
            "arm_3_epoch_2": math.nan,
            "arm_4_epoch_1": ValueError("too cold"),
        }

    @pytest.mark.parametrize("at", range(1, 29, 3))
    def test_each_keeps_its_failures_and_its_end(self, tmp_path, folder, at):
        options = {**RETRIED, "budget": 30}
        expected = whole(tmp_path, Rising(**self.events()), **options)
        trainable = Rising(**self.events())
        crashed(folder, trainable, at, **options)
        result = a_search(folder, trainable, **options).run()
        assert facts(result) == facts(expected)
        assert Counter(trainable.trained).most_common(1)[0][1] <= 2
        assert [str(r.failure) for r in result.failures] == [
            str(r.failure) for r in expected.failures
        ]

    def test_a_retry_goes_on_from_the_last_good_epoch(self, folder):
        class Once(Rising):
            def train(self, state):
                again = (1, 3) in self.trained
                self.events = {} if again else {"arm_1_epoch_3": ValueError("once")}
                return super().train(state)

        trainable = Once()
        options = {**RETRIED, "budget": 40}

        def crash(epoch):
            if epoch.failure is not None:
                raise CrashError

        with pytest.raises(CrashError):
            a_search(folder, trainable, callbacks=[crash], **options).run()
        result = RisingSearch.resume(folder, trainable).run()
        assert Counter(trainable.trained)[1, 3] == 2
        assert Counter(trainable.trained)[1, 2] == 1
        assert len(result.curves[1]) > 3
        assert all(map(math.isfinite, result.curves[1]))

    @pytest.mark.filterwarnings("ignore:the code has changed")  # OwnError is here
    @pytest.mark.parametrize(
        "failure",
        [
            ValueError("too hot"),
            WorkerError("gone"),
            OSError("no room"),
            subprocess.SubprocessError("ended"),
            KeyError("lr"),
            OwnError(3, "steps"),
        ],
    )
    def test_a_failure_of_before_keeps_its_type(self, folder, failure):
        options = {"max_failures": 0, "shuffle": False, "policy": "round-robin"}
        crashed(folder, Rising(arm_1_epoch_1=failure), 4, **options)
        for result in (
            RisingSearch.resume(folder, Rising()).result(),
            RisingSearch.saved_result(folder),
        ):
            [report] = result.failures
            assert isinstance(report.failure, type(failure))
            assert type(report.failure).__name__ == type(failure).__name__
            assert str(report.failure) == str(failure)

    def test_a_failure_of_an_unknown_type_keeps_its_name(self):
        failure = earlier_failure("too hot", "Overheated", "not.loaded")
        assert repr(failure) == "Overheated('too hot')"
        assert repr(pickle.loads(pickle.dumps(failure))) == "Overheated('too hot')"
        assert (
            repr(earlier_failure("x", "sys", "risingsearch.search.run")) == "sys('x')"
        )

    def test_raise_stops_at_the_failure_and_the_next_run_goes_on(self, folder):
        options = {"error_score": "raise", "shuffle": False, "policy": "round-robin"}
        trainable = Rising(arm_2_epoch_1=ValueError("too hot"))
        with pytest.raises(ValueError, match="too hot"):
            a_search(folder, trainable, **options).run()
        result = a_search(folder, trainable, **options).run()
        assert result.n_epochs == 24
        assert result.arms[2].status == "failed"


class TestASetupThatIsWrong:
    """What every arm needs is missing: no arm is to blame."""

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_the_search_stops_and_goes_on_once_it_is_mended(
        self, tmp_path, folder, n_jobs
    ):
        trainable = Rising(arm_2_epoch_2=SetupError("the disk is gone"))
        options = {"deterministic": True, "n_jobs": n_jobs}
        with ThreadPoolExecutor(2) as threads:
            executor = None if n_jobs is None else threads
            options["executor"] = executor
            expected = a_search(tmp_path / "whole", **options).run()
            search = a_search(folder, trainable=trainable, **options)
            for _ in range(2):
                with pytest.raises(SetupError, match="the disk is gone"):
                    search.run()
                assert not search.result().failures
            trainable.events.clear()
            assert facts(search.run()) == facts(expected)

    def test_without_a_directory_the_job_trains_again(self):
        trainable = Rising(arm_2_epoch_2=SetupError("the disk is gone"))
        search = RisingSearch(
            trainable, CANDIDATES, budget=24, max_epochs=6, policy="round-robin", seed=0
        )
        with pytest.raises(SetupError, match="the disk is gone"):
            search.run()
        trainable.events.clear()
        assert search.run().n_epochs == 24
        assert Counter(trainable.trained).pop((2, 2)) == 2
        assert len(set(trainable.trained)) == 24


class TestArguments:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("budget", 25),
            ("seed", 4),
            ("policy", "asha"),
            ("proposer", None),
            ("max_epochs", 7),
            ("deterministic", False),
            ("error_score", 0.0),
            ("max_failures", 1),
            ("policy_params", {"kept_share": 0.5}),
            ("candidates", [*CANDIDATES[:-1], {**CANDIDATES[-1], "speed": 9}]),
        ],
    )
    def test_another_one_is_refused_by_name(self, folder, name, value):
        crashed(folder)
        before = files(folder)
        with pytest.raises(RunDirError, match=rf"\b{name}\b.*give the same arguments"):
            a_search(folder, **{name: value})
        assert files(folder) == before

    def test_those_that_may_differ(self, tmp_path, folder):
        expected = whole(tmp_path)
        crashed(folder)
        seen = []
        result = a_search(
            folder, progress=True, callbacks=[seen.append], max_checkpoint_bytes=10**6
        ).run()
        assert facts(result) == facts(expected)
        assert seen

    def test_the_fingerprint_is_kept(self, folder):
        crashed(folder, fingerprint={"data": "ab12"})
        for fingerprint in (None, {"data": "cd34"}):
            with pytest.raises(RunDirError, match="holds a search with data="):
                a_search(folder, fingerprint=fingerprint)
        assert RisingSearch.resume(folder, Rising()).run().n_epochs == 24

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"fingerprint": {"data": object()}}, "fingerprint is saved as JSON"),
            ({"candidates": [{"f": lambda: None}]}, "candidates .* pickled"),
        ],
    )
    def test_what_cannot_be_saved_is_refused_before_anything_is_made(
        self, folder, option, message
    ):
        with pytest.raises(InvalidParameterError, match=message):
            a_search(folder, **option)
        assert not folder.exists()

    def test_there_has_to_be_a_search_to_resume(self, tmp_path, folder):
        with pytest.raises(RunDirError, match="does not exist: name the run directory"):
            RisingSearch.resume(folder, Rising())
        assert not folder.exists()


def test_a_forked_process_does_not_write_into_the_search_of_its_parent(folder):
    said, pids = folder / "said", []

    def fork(epoch):
        if epoch.number == 3:
            pids.append(os.fork())

    search = a_search(folder, callbacks=[fork])
    try:
        result = search.run()
    except BaseException as error:
        said.write_text(f"{type(error).__name__}: {error}")
        raise
    finally:
        if pids == [0]:
            os._exit(0)
        os.waitpid(pids[0], 0)
    assert "RunDirError: the search in" in said.read_text()
    assert "forked" in said.read_text()
    assert result.history == a_search(folder).run().history
    assert result.history["score"] == a_search(None).run().history["score"]


@pytest.mark.parametrize("kept", [True, False])
def test_threads_cannot_share_a_search(folder, kept):
    refusals = []

    def elsewhere(call):
        def refused():
            with pytest.raises(InvalidParameterError, match="another thread runs") as e:
                call()
            refusals.append(e.value)

        other = threading.Thread(target=refused)
        other.start()
        other.join()

    def share(epoch):
        if epoch.number == 3:
            for call in (
                search.run,
                partial(search.extend, 3),
                partial(search.resize, 2),
            ):
                elsewhere(call)

    search = a_search(folder if kept else None, callbacks=[share])
    assert search.run().n_epochs == 24
    assert len(refusals) == 3


class TestJournalsOfOtherReleases:
    @pytest.mark.parametrize("name", FIRST_DEFAULTS.keys() - {"max_epochs", "seed"})
    def test_an_argument_that_is_missing_has_its_first_default(self, folder, name):
        options = {"budget": 10, "max_epochs": 4, "seed": 0, "run_dir": folder}
        candidates = [{"top": top / 5} for top in range(5)]
        trainable = Functions(lambda params, seed: params, lambda params: params["top"])

        def made():
            return RisingSearch(trainable, candidates, **options)

        expected = made().run()
        rewritten(folder, lambda settings: settings.pop(name))
        again = made().result()
        assert facts(again) == facts(RisingSearch.saved_result(folder))
        assert again.history["score"] == expected.history["score"]
        assert RisingSearch.resume(folder, trainable).run().n_epochs == 10

    def test_every_argument_has_a_first_default(self):
        assert set(FIRST_DEFAULTS) == {*SAVED} - {"budget"}

    def test_an_unknown_argument_is_named(self, folder):
        a_search(folder).run()
        rewritten(folder, lambda settings: settings.update(warmth=None))
        for opened in (
            lambda: a_search(folder),
            lambda: RisingSearch.resume(folder, Rising()),
            lambda: RisingSearch.saved_result(folder),
        ):
            with pytest.raises(RunDirError, match=r"'warmth' .* use the release"):
                opened()

    @pytest.mark.parametrize("has_state", [True, False])
    def test_an_unknown_event_is_named(self, folder, has_state):
        a_search(folder).run()
        if not has_state:
            (folder / STATE).unlink()
        path = folder / JOURNAL
        Journal(path, read(path)).append({"event": "warmed", "jobs": []})
        for opened in (
            lambda: a_search(folder),
            lambda: RisingSearch.saved_result(folder),
        ):
            with pytest.raises(RunDirError, match=r"'warmed', .* use the release"):
                opened()

    def test_a_failed_job_without_its_charge_has_cost_all_its_epochs(self, folder):
        options = {"policy": "round-robin", "shuffle": False, "max_failures": 0}
        options |= {"epochs_per_job": 3}
        a_search(folder, Rising(arm_1_epoch_2=ValueError("x")), **options).run()
        events = read(folder / JOURNAL).events
        [failed] = [event for event in events if event["event"] == "failed"]
        assert failed.pop("charged") == 2
        before = RisingSearch.saved_result(folder).arms[1].charged
        rewritten(folder, events=events[: events.index(failed) + 1])
        result = RisingSearch.saved_result(folder)
        assert (before, result.arms[1].charged, result.arms[1].epochs) == (2, 3, 1)


def rewritten(folder, change=lambda settings: None, events=None):
    """Write a journal anew, with other settings or events, without a state."""
    path = folder / JOURNAL
    header, recorded, _ = read(path)
    change(header["settings"])
    create(path, header)
    journal = Journal(path, read(path))
    for event in recorded if events is None else events:
        journal.append(event)
    (folder / STATE).unlink(missing_ok=True)
