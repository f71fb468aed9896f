"""A search on disk survives whatever ends its process, and ends as if nothing had."""

import errno
import itertools
import json
import math
import os
import resource
import shutil
import signal
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path

import pytest

from risingsearch.arms import Budget
from risingsearch.errors import (
    CheckpointError,
    EarlierFailureError,
    InvalidParameterError,
    JournalError,
    RisingSearchError,
    RunDirError,
    SearchFailedError,
    SetupError,
    StateError,
)
from risingsearch.policies.stationary.baselines import RoundRobin
from risingsearch.search import search as search_module
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.storage import checkpoints
from risingsearch.storage.journal import read

CANDIDATES = [
    {"arm": i, "top": round(0.5 + 0.4 * math.sin(7 * i), 3), "speed": 1 + i % 4}
    for i in range(8)
]
ENOSPC, EROFS = errno.ENOSPC, errno.EROFS


class CrashError(Exception):
    """Ends a process, as far as the directory can tell."""


class Rising:
    """Counts its epochs; fails, ends, or goes on in an arm and epoch as it is told."""

    def __init__(self, **events):
        self.trained = []
        self.events = events

    def start(self, params, seed):
        return {"epochs": 0, "noise": seed % 97 / 970, **params}

    def train(self, state):
        arm, epoch = state["arm"], state["epochs"] + 1
        event = self.events.get(f"arm_{arm}_epoch_{epoch}")
        if event is StopIteration:
            raise event
        self.trained.append((arm, epoch))
        if isinstance(event, BaseException):
            raise event
        state["epochs"] = epoch
        if event is not None:
            return event
        score = state["top"] * (1 - state["speed"] / (state["speed"] + epoch))
        return {"score": score + state["noise"], "own": (arm, epoch)}


class Peaked(Rising):
    """Arm 0 is best at its second epoch, all else is worse."""

    def train(self, state):
        result = super().train(state)
        peak = state["arm"] == 0 and state["epochs"] == 2
        return {**result, "score": 9.0 if peak else result["score"]}


def a_search(folder, trainable=None, candidates=CANDIDATES, **options):
    defaults = {"budget": 24, "max_epochs": 6, "seed": 3, "order": "ask"}
    return RisingSearch(
        trainable or Rising(), candidates, run_dir=folder, **defaults | options
    )


def crashing(at):
    def callback(search, report):
        if len(search.result().history) >= at:
            raise CrashError

    return [callback]


def crashed(folder, trainable=None, at=11, **options):
    """Run a search until so many epochs are told."""
    with pytest.raises(CrashError):
        a_search(folder, trainable, callbacks=crashing(at), **options).run()


def facts(result):
    """Return what does not differ between a search and the same one in pieces."""
    rows = [
        {name: repr(value) for name, value in row.items() if name != "seconds"}
        for row in result.history
    ]
    best = [result.best_params, result.best_score, result.best_epoch]
    ends = [result.n_epochs, result.n_calls, result.stop_reason]
    return [rows, best, ends, repr(result.arms)]


def whole(tmp_path, trainable=None, **options):
    return a_search(tmp_path / "whole", trainable, **options).run()


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in Path(folder).rglob("*")
        if path.is_file() and path.name != "lock"
    }


def kept(folder):
    """Return the epochs of every arm that have a checkpoint."""
    epochs = {}
    for path in sorted(Path(folder, "checkpoints").iterdir()):
        _, arm, _, epoch = path.stem.split("-")
        epochs.setdefault(int(arm), []).append(int(epoch))
    return epochs


def n_told(folder):
    """Return how many epochs are in the journal."""
    events = read(Path(folder, "journal.jsonl")).events
    return sum(len(event["scores"]) for event in events if event["event"] == "told")


def damage(folder, arm, epoch):
    path = Path(folder, "checkpoints", f"arm-{arm:06d}-epoch-{epoch:06d}.ckpt")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def threads():
    with ThreadPoolExecutor(2) as executor:
        yield executor


@pytest.fixture(scope="module")
def processes():
    # A spawned process imports this module by the name that pytest gave it.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[__name__.count(".")])
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
            yield executor


class TestGoingOn:
    @pytest.mark.parametrize("at", [1, 2, 9, 15, 20])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"order": "completion"},
            {"policy": "asha"},
            {"policy": "random", "shuffle": False},
            {"slice": 4, "direction": "minimize"},
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

    @pytest.mark.parametrize("at", [1, 8, 16, 20])
    def test_resume_needs_the_trainable_alone(self, tmp_path, folder, at):
        expected = whole(tmp_path)
        trainable = Rising()
        crashed(folder, trainable, at)
        result = RisingSearch.resume(folder, trainable).run()
        assert facts(result) == facts(expected)
        assert max(Counter(trainable.trained).values()) == 1

    def test_again_and_again(self, tmp_path, folder):
        expected = whole(tmp_path)
        trainable = Rising()
        for at in range(1, 21):
            search = RisingSearch.resume if folder.exists() else a_search
            with pytest.raises(CrashError):
                search(folder, trainable, callbacks=crashing(at)).run()
        assert facts(RisingSearch.resume(folder, trainable).run()) == facts(expected)
        assert max(Counter(trainable.trained).values()) == 1

    def test_what_is_known_can_be_seen_before_it_goes_on(self, folder):
        crashed(folder, at=11)
        search = RisingSearch.resume(folder, Rising())
        assert len(search.result().history) == 11
        assert search.result().best_state()["epochs"] == search.result().best_epoch

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

    def test_with_processes(self, tmp_path, folder, processes):
        expected = whole(tmp_path, executor=processes)
        crashed(folder, executor=processes)
        result = RisingSearch.resume(folder, Rising(), executor=processes).run()
        assert facts(result) == facts(expected)
        assert result.best_state() == expected.best_state()

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

    def test_under_a_budget_in_seconds(self, folder):
        options = {"budget": Budget(seconds=60), "max_epochs": 4}
        trainable = Rising()
        crashed(folder, trainable, **options)
        search = RisingSearch.resume(folder, trainable)
        before = search.scheduler.spent
        assert before > 0
        result = search.run()
        assert search.scheduler.spent > before
        assert result.n_epochs == len(trainable.trained) == 4 * len(CANDIDATES)
        assert RisingSearch.resume(folder, trainable).scheduler.spent == (
            search.scheduler.spent
        )

    def test_the_seconds_of_every_epoch_are_kept(self, folder):
        result = a_search(folder).run()
        again = RisingSearch.resume(folder, Rising()).result()
        assert again.history["seconds"] == result.history["seconds"]

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

    def test_states_go_through_the_hooks_of_the_trainable(self, tmp_path, folder):
        rising = Rising()

        def save(state, path):
            Path(path).write_text(json.dumps(state))

        def load(path):
            return json.loads(Path(path).read_text())

        hooked = Functions(rising.start, rising.train, save, load)
        expected = whole(tmp_path)
        crashed(folder, hooked)
        result = RisingSearch.resume(folder, hooked).run()
        assert facts(result) == facts(expected)
        assert result.best_state() == expected.best_state()

    def test_a_clock_that_goes_backwards_changes_nothing(
        self, tmp_path, folder, monkeypatch
    ):
        expected = whole(tmp_path)
        crashed(folder)
        earlier = itertools.count(1e8, -1000)
        monkeypatch.setattr(time, "time", lambda: next(earlier))
        began = time.perf_counter()
        usual = time.perf_counter
        monkeypatch.setattr(time, "perf_counter", lambda: usual() - began)
        for path in folder.rglob("*"):
            os.utime(path, (2e9, 2e9))
        assert facts(a_search(folder).run()) == facts(expected)

    @pytest.mark.parametrize("slice", [3, 6, 50])
    @pytest.mark.parametrize("where", ["here", "threads"])
    def test_with_large_slices(self, tmp_path, folder, slice, where, request):
        executor = None if where == "here" else request.getfixturevalue(where)
        options = {"slice": slice, "budget": 40, "executor": executor}
        expected = whole(tmp_path, **options)
        crashed(folder, at=14, **options)
        assert facts(a_search(folder, **options).run()) == facts(expected)

    def test_beside_the_search_without_a_directory_nothing_differs(self, folder):
        assert facts(a_search(folder).run()) == facts(a_search(None).run())


RETRIED = {"max_failures": 1, "shuffle": False, "policy": "round-robin"}


class TestArmsThatFailOrEnd:
    def events(self):
        return {
            "arm_1_epoch_2": ValueError("too hot"),
            "arm_2_epoch_3": StopIteration,
            "arm_3_epoch_2": math.nan,
            "arm_4_epoch_1": ValueError("too cold"),
        }

    @pytest.mark.parametrize("at", range(1, 29))
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

        def crash(search, report):
            if report.failure is not None:
                raise CrashError

        with pytest.raises(CrashError):
            a_search(folder, trainable, callbacks=[crash], **options).run()
        result = RisingSearch.resume(folder, trainable).run()
        assert Counter(trainable.trained)[1, 3] == 2
        assert Counter(trainable.trained)[1, 2] == 1
        assert len(result.curves[1]) > 3
        assert all(map(math.isfinite, result.curves[1]))

    def test_a_failure_of_before_is_left_as_text(self, folder):
        options = {"max_failures": 0, "shuffle": False, "policy": "round-robin"}
        crashed(folder, Rising(arm_1_epoch_1=ValueError("too hot")), 4, **options)
        [report] = RisingSearch.resume(folder, Rising()).result().failures
        assert isinstance(report.failure, EarlierFailureError)
        assert str(report.failure) == "too hot"

    def test_when_all_have_failed_it_says_so_again(self, folder):
        events = {f"arm_{i}_epoch_1": ValueError("too hot") for i in range(8)}
        for _ in range(2):
            with pytest.raises(SearchFailedError, match="too hot"):
                a_search(folder, Rising(**events)).run()

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
        options = {"order": "ask", "n_jobs": n_jobs}
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

    def test_without_a_directory_what_is_in_flight_is_charged(self):
        trainable = Rising(arm_2_epoch_2=SetupError("the disk is gone"))
        search = RisingSearch(
            trainable, CANDIDATES, budget=24, max_epochs=6, policy="round-robin", seed=0
        )
        with pytest.raises(SetupError, match="the disk is gone"):
            search.run()
        assert search.run().n_epochs == 24


class TestArguments:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("budget", 25),
            ("budget", Budget(seconds=9)),
            ("seed", 4),
            ("seed", None),
            ("policy", "asha"),
            ("policy", RoundRobin.create),
            ("proposer", None),
            ("max_epochs", 7),
            ("n_jobs", 2),
            ("order", "completion"),
            ("objective", "sum"),
            ("slice", 2),
            ("direction", "minimize"),
            ("error_score", 0.0),
            ("max_failures", 1),
            ("score_range", (0.0, 2.0)),
            ("shuffle", False),
            ("candidates", [*CANDIDATES[:-1], {**CANDIDATES[-1], "speed": 9}]),
            ("candidates", CANDIDATES[:-1]),
            ("candidates", [*CANDIDATES[:-1], {"arm": 7, "top": Fraction(1, 2)}]),
        ],
    )
    def test_another_one_is_refused_by_name(self, folder, threads, name, value):
        crashed(folder)
        before = files(folder)
        options = {name: value}
        if name == "n_jobs":
            options["executor"] = threads
        if isinstance(value, Budget):
            options["max_epochs"] = 6
        with pytest.raises(StateError, match=rf"\b{name}\b.*give the same arguments"):
            a_search(folder, **options)
        assert files(folder) == before

    def test_those_that_may_differ(self, tmp_path, folder):
        expected = whole(tmp_path)
        crashed(folder)
        seen = []
        result = a_search(
            folder,
            progress=True,
            callbacks=[lambda search, report: seen.append(report)],
            max_checkpoint_bytes=10**6,
        ).run()
        assert facts(result) == facts(expected)
        assert seen

    def test_parameters_of_the_policy(self, folder):
        crashed(folder, policy="asha", policy_params={"eta": 3})
        with pytest.raises(StateError, match="policy_params"):
            a_search(folder, policy="asha", policy_params={"eta": 4})
        assert RisingSearch.resume(folder, Rising()).run().n_epochs > 11

    def test_the_identity_is_kept(self, folder):
        crashed(folder, identity={"data": "ab12"})
        for identity in (None, {"data": "cd34"}):
            with pytest.raises(StateError, match="identity"):
                a_search(folder, identity=identity)
        assert RisingSearch.resume(folder, Rising()).run().n_epochs == 24

    @pytest.mark.parametrize(
        ("option", "message"),
        [
            ({"identity": {"data": object()}}, "identity is saved as JSON"),
            ({"candidates": [{"f": lambda: None}]}, "candidates .* pickled"),
        ],
    )
    def test_what_cannot_be_saved_is_refused_before_anything_is_made(
        self, folder, option, message
    ):
        with pytest.raises(InvalidParameterError, match=message):
            a_search(folder, **option)
        assert not folder.exists()

    def test_metrics_that_are_no_json_are_refused_and_nothing_is_lost(
        self, tmp_path, folder
    ):
        class Odd(Rising):
            def train(self, state):
                result = super().train(state)
                odd = len(self.trained) == 9
                return {**result, "own": object()} if odd else result

        with pytest.raises(InvalidParameterError, match=r"metrics .* saved as JSON"):
            a_search(folder, Odd()).run()
        result = a_search(folder).run()
        assert facts(result) == facts(whole(tmp_path))

    def test_there_has_to_be_a_search_to_resume(self, tmp_path, folder):
        with pytest.raises(JournalError, match="holds no search"):
            RisingSearch.resume(folder, Rising())
        assert not folder.exists()


TO_THE_END = {"policy": "round-robin", "budget": 48}


class TestDamagedCheckpoints:
    """An arm goes on from its last checkpoint that is whole."""

    def latest(self, folder):
        """Return an arm that has two checkpoints and trains on, and their epochs."""
        search = RisingSearch.resume(folder, Rising())
        best = search.result().best_arm
        for arm, epochs in kept(folder).items():
            status = search.scheduler.status(arm)
            if len(epochs) == 2 and status == "paused" and arm != best:
                return arm, epochs
        raise AssertionError

    @pytest.fixture
    def stopped(self, folder):
        crashed(folder, at=26, **TO_THE_END)
        return folder

    def test_from_the_previous_one_uncharged(self, tmp_path, stopped):
        expected = whole(tmp_path, **TO_THE_END)
        arm, (previous, last) = self.latest(stopped)
        damage(stopped, arm, last)
        trainable = Rising()
        search = RisingSearch.resume(stopped, trainable)
        message = rf"damaged.*arm {arm} trains again from epoch {previous} to {last}, "
        with pytest.warns(RuntimeWarning, match=message):
            result = search.run()
        assert facts(result) == facts(expected)
        again = [epoch for of, epoch in trainable.trained if of == arm]
        assert again == list(range(previous + 1, 7))

    def test_from_the_start_when_both_are_damaged(self, tmp_path, stopped):
        expected = whole(tmp_path, **TO_THE_END)
        arm, (previous, last) = self.latest(stopped)
        damage(stopped, arm, previous)
        damage(stopped, arm, last)
        trainable = Rising()
        search = RisingSearch.resume(stopped, trainable)
        with pytest.warns(RuntimeWarning, match=f"arm {arm} .* from epoch 0 to {last}"):
            result = search.run()
        assert facts(result) == facts(expected)
        again = [epoch for of, epoch in trainable.trained if of == arm]
        assert again == list(range(1, 7))

    def test_from_the_start_when_all_files_are_gone(self, tmp_path, stopped):
        expected = whole(tmp_path, **TO_THE_END)
        shutil.rmtree(stopped / "checkpoints")
        with pytest.warns(RuntimeWarning, match="cannot be read"):
            result = RisingSearch.resume(stopped, Rising()).run()
        assert facts(result) == facts(expected)

    def test_in_a_worker(self, tmp_path, folder, threads):
        options = {**TO_THE_END, "executor": threads}
        expected = whole(tmp_path, **options)
        crashed(folder, at=26, **options)
        for arm, epochs in kept(folder).items():
            damage(folder, arm, max(epochs))
        with pytest.warns(RuntimeWarning, match="which is not charged"):
            result = a_search(folder, **options).run()
        assert facts(result) == facts(expected)

    def test_with_large_slices(self, tmp_path, folder):
        options = {**TO_THE_END, "slice": 2}
        expected = whole(tmp_path, **options)
        crashed(folder, at=26, **options)
        arm, (previous, last) = self.latest(folder)
        assert last - previous == 2
        damage(folder, arm, last)
        with pytest.warns(RuntimeWarning, match=f"from epoch {previous} to {last}"):
            result = a_search(folder, **options).run()
        assert facts(result) == facts(expected)

    def test_the_best_one_is_missed_when_it_is_asked_for(self, folder):
        expected = a_search(folder, Peaked(), shuffle=False).run()
        assert expected.best_epoch == 2
        damage(folder, expected.best_arm, expected.best_epoch)
        result = RisingSearch.resume(folder, Peaked()).run()
        assert facts(result) == facts(expected)
        with pytest.raises(CheckpointError, match="damaged"):
            result.best_state()

    def test_one_of_another_version_is_not_trained_over(self, stopped, monkeypatch):
        arm, (_, last) = self.latest(stopped)
        monkeypatch.setattr(checkpoints, "VERSION", 2)
        store = checkpoints.DirectoryStore(stopped / "checkpoints")
        key = checkpoints.Key(arm, last)
        store.save(key, b"weights of the future")
        monkeypatch.undo()
        with pytest.raises(StateError, match="version 2, this release reads version 1"):
            RisingSearch.resume(stopped, Rising()).run()
        assert b"weights of the future" in store.path(key).read_bytes()


class TestDamagedJournal:
    def test_a_last_line_torn_at_any_byte_is_trained_again(self, tmp_path, folder):
        crashed(folder, at=13)
        expected = facts(whole(tmp_path))
        journal = folder / "journal.jsonl"
        content = journal.read_bytes()
        before = files(folder)
        last = content.rindex(b"\n", 0, -1) + 1
        for end in range(last, len(content)):
            torn = tmp_path / "torn"
            shutil.rmtree(torn, ignore_errors=True)
            shutil.copytree(folder, torn)
            os.truncate(torn / "journal.jsonl", end)
            n_left = n_told(torn)
            trainable = Rising()
            search = a_search(torn, trainable)
            assert (torn / "journal.jsonl").read_bytes() == content[:last]
            if end % 16 == last % 16:  # they are all the same by now
                assert facts(search.run()) == expected
                assert len(trainable.trained) == 24 - n_left
        assert files(folder) == before

    def test_a_bit_flipped_in_the_middle_is_named(self, folder):
        crashed(folder)
        journal = folder / "journal.jsonl"
        content = bytearray(journal.read_bytes())
        at = len(content) // 2
        content[at] ^= 1
        journal.write_bytes(content)
        line = content.count(b"\n", 0, at) + 1
        begin = content.rindex(b"\n", 0, at) + 1
        before = files(folder)
        for again in (
            lambda: a_search(folder),
            lambda: RisingSearch.resume(folder, Rising()),
        ):
            with pytest.raises(JournalError, match=rf"line {line}, .* byte {begin}:"):
                again()
        assert files(folder) == before

    def test_the_advice_leads_to_the_same_result(self, tmp_path, folder):
        expected = a_search(folder, **TO_THE_END).run()
        journal = folder / "journal.jsonl"
        content = bytearray(journal.read_bytes())
        at = len(content) // 2
        content[at] ^= 1
        journal.write_bytes(content)
        os.truncate(journal, content.rindex(b"\n", 0, at) + 1)
        with pytest.warns(RuntimeWarning) as warned:
            result = RisingSearch.resume(folder, Rising()).run()
        assert "decisions are made again" in str(warned[0].message)
        assert facts(result) == facts(expected)
        assert result.best_state() == expected.best_state()


class TestSavedState:
    @pytest.fixture(autouse=True)
    def often(self, monkeypatch):
        monkeypatch.setattr(search_module, "FEWEST_EVENTS", 4)

    def test_it_spares_decisions_and_changes_none(self, tmp_path, folder):
        expected = whole(tmp_path)
        crashed(folder)
        assert (folder / "state.json").exists()
        assert facts(a_search(folder).run()) == facts(expected)

    def test_without_it_the_result_is_the_same(self, tmp_path, folder):
        expected = whole(tmp_path)
        crashed(folder)
        (folder / "state.json").unlink()
        assert facts(a_search(folder).run()) == facts(expected)

    @pytest.mark.parametrize(
        "damaged",
        [
            lambda content: b"",
            lambda content: content[:-1],
            lambda content: content.replace(b"1", b"2"),
            lambda content: b"\xff" * 99,
        ],
    )
    def test_a_damaged_one_is_a_warning_and_the_result_is_the_same(
        self, tmp_path, folder, damaged
    ):
        expected = whole(tmp_path)
        crashed(folder)
        path = folder / "state.json"
        path.write_bytes(damaged(path.read_bytes()))
        with pytest.warns(RuntimeWarning, match="decisions are made again"):
            search = a_search(folder)
        assert facts(search.run()) == facts(expected)

    @pytest.mark.parametrize("at", [5, 13, 22])
    def test_with_workers(self, tmp_path, folder, threads, at):
        expected = whole(tmp_path, executor=threads)
        crashed(folder, at=at, executor=threads)
        assert facts(a_search(folder, executor=threads).run()) == facts(expected)


@contextmanager
def failing(at, error):
    """Let the write of that number fail, once."""
    numbers = itertools.count()

    def wrapped(write):
        def call(*args, **kwargs):
            if next(numbers) == at:
                raise error
            return write(*args, **kwargs)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "unlink"):
            patch.setattr(os, name, wrapped(getattr(os, name)))
        yield
    failing.n_writes = next(numbers)


def n_writes(work):
    with failing(-1, None):
        work()
    return failing.n_writes


SMALL = {"budget": 12, "candidates": CANDIDATES[:4], "max_epochs": 4}


class TestWritesThatFail:
    """The disk is full, or Ctrl-C comes, in the middle of any write."""

    errors = pytest.mark.parametrize(
        ("error", "raised"),
        [
            (OSError(ENOSPC, os.strerror(ENOSPC)), RunDirError),
            (OSError(EROFS, os.strerror(EROFS)), RunDirError),
            (KeyboardInterrupt(), KeyboardInterrupt),
        ],
        ids=["full", "read-only", "interrupted"],
    )

    @errors
    @pytest.mark.parametrize("anew", [False, True], ids=["same object", "new object"])
    @pytest.mark.parametrize("n_workers", [0, 2])
    def test_it_goes_on(self, tmp_path, error, raised, anew, n_workers):
        with ThreadPoolExecutor(max(1, n_workers)) as executor:
            options = {**SMALL, "executor": executor if n_workers else None}
            expected = facts(whole(tmp_path, **options))
            for at in range(
                n_writes(lambda: a_search(tmp_path / "counted", **options).run())
            ):
                folder = tmp_path / str(at)
                search = None
                failed = False
                trainable = Rising()
                try:
                    with failing(at, error):
                        search = a_search(folder, trainable, **options)
                        search.run()
                except raised:
                    failed = True
                assert failed or at > 40
                if search is None or anew:
                    search = a_search(folder, trainable, **options)
                assert facts(search.run()) == expected
                # What went on in memory is what is on disk.
                again = RisingSearch.resume(folder, Rising()).run()
                assert facts(again) == expected

    @errors
    @pytest.mark.parametrize("anew", [False, True], ids=["same object", "new object"])
    def test_an_extension_is_made_or_not(self, folder, error, raised, anew):
        search = a_search(folder)
        search.run()
        with pytest.raises(raised), failing(0, error):
            search.extend(6)
        if anew:
            search = RisingSearch.resume(folder, Rising())
        assert search.scheduler.budget == 24
        search.extend(6)
        result = search.run()
        assert result.n_epochs == 30
        again = RisingSearch.resume(folder, Rising()).run()
        assert facts(again) == facts(result)

    def test_a_full_disk_that_stays_full_says_so_each_time(self, tmp_path, folder):
        crashed(folder)
        before = files(folder)

        def full(*args):
            raise OSError(ENOSPC, os.strerror(ENOSPC))

        with pytest.MonkeyPatch.context() as patch:
            search = a_search(folder)
            patch.setattr(os, "fsync", full)
            for _ in range(5):
                with pytest.raises(RunDirError, match=r"No space left.*make room"):
                    search.run()
        assert files(folder) == before
        assert facts(search.run()) == facts(whole(tmp_path))

    @pytest.mark.parametrize("n_bytes", [500, 1500, 2000, 2500, 4000, 6000])
    def test_half_a_write_is_taken_back(self, tmp_path, folder, n_bytes):
        expected = facts(whole(tmp_path))
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, usual[1]))
        try:
            with pytest.raises(RunDirError, match="File too large"):
                a_search(folder).run()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        assert facts(a_search(folder).run()) == expected


class TestInterruptions:
    def in_training(self, at, times=1):
        class Interrupted(Rising):
            def train(self, state):
                result = super().train(state)
                if len(self.trained) == at:
                    for _ in range(times):
                        signal.raise_signal(signal.SIGINT)
                return result

        return Interrupted()

    @pytest.mark.parametrize("at", [1, 5, 12, 24])
    @pytest.mark.parametrize("slice", [1, 3])
    def test_ctrl_c_loses_nothing(self, tmp_path, folder, at, slice):
        trainable = self.in_training(at)
        options = {"slice": slice}
        search = a_search(folder, trainable, **options)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        assert len(trainable.trained) == n_told(folder) == at
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        elsewhere = Rising()
        resumed = a_search(copy, elsewhere, **options).run()
        assert facts(search.run()) == facts(resumed)
        assert len(elsewhere.trained) == 24 - at
        assert max(Counter(trainable.trained).values()) == 1
        if slice == 1:
            assert facts(resumed) == facts(whole(tmp_path, **options))

    @pytest.mark.parametrize("at", [1, 5, 12, 24])
    @pytest.mark.parametrize("slice", [1, 3])
    def test_a_second_ctrl_c_costs_no_epoch(self, tmp_path, folder, at, slice):
        trainable = self.in_training(at, times=2)
        options = {"slice": slice}
        search = a_search(folder, trainable, **options)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        expected = facts(whole(tmp_path, **options))
        assert facts(search.run()) == expected
        assert facts(a_search(copy, **options).run()) == expected

    @pytest.mark.parametrize("where", ["here", "threads"])
    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
    def test_between_jobs(self, tmp_path, folder, where, interruption, request):
        executor = None if where == "here" else request.getfixturevalue(where)
        options = {"executor": executor}

        def interrupt(search, report):
            if report.job.id == 7:
                raise interruption

        search = a_search(folder, callbacks=[interrupt], **options)
        with pytest.raises(interruption):
            search.run()
        assert "failed" not in search.scheduler.statuses()
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        expected = facts(whole(tmp_path, **options))
        assert facts(search.run()) == expected
        assert facts(a_search(copy, **options).run()) == expected

    @pytest.mark.parametrize("where", ["here", "threads"])
    def test_in_the_training_of_a_worker(self, tmp_path, folder, where, request):
        executor = None if where == "here" else request.getfixturevalue(where)
        options = {"executor": executor, "shuffle": False, "policy": "round-robin"}
        trainable = Rising(arm_2_epoch_2=KeyboardInterrupt())
        search = a_search(folder, trainable, **options)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        trainable.events = {}
        expected = facts(whole(tmp_path, **options))
        assert facts(search.run()) == expected
        assert facts(a_search(copy, **options).run()) == expected

    @pytest.mark.parametrize("where", ["here", "threads"])
    def test_right_after_an_event_is_on_disk(
        self, tmp_path, folder, where, request, monkeypatch
    ):
        executor = None if where == "here" else request.getfixturevalue(where)
        options = {"executor": executor}
        expected = facts(whole(tmp_path, **options))
        usual = search_module.RunDirectory.append

        def interrupted(directory, event):
            usual(directory, event)
            if directory.n_events == 9:
                raise KeyboardInterrupt

        monkeypatch.setattr(search_module.RunDirectory, "append", interrupted)
        broken = a_search(folder, **options)
        with pytest.raises(KeyboardInterrupt):
            broken.run()
        monkeypatch.undo()
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        assert facts(a_search(copy, **options).run()) == expected
        result = broken.run()
        assert facts(result)[0] == expected[0]
        (folder / "state.json").unlink()  # it may be missing
        assert facts(RisingSearch.resume(folder, Rising()).run()) == facts(result)


class TestTwoAtOnce:
    def test_a_second_search_is_refused_while_one_runs(self, tmp_path, folder):
        refused = []

        def another(search, report):
            for again in (
                lambda: a_search(folder),
                lambda: RisingSearch.resume(folder, Rising()),
            ):
                with pytest.raises(RunDirError, match="another process searches"):
                    again()
                refused.append(report.job.id)

        result = a_search(folder, callbacks=[another]).run()
        assert len(refused) == 2 * len(set(result.history["job"]))
        assert facts(result) == facts(whole(tmp_path))

    def test_one_that_was_overtaken_is_refused(self, tmp_path, folder):
        crashed(folder)
        first, second = a_search(folder), a_search(folder)
        expected = facts(second.run())
        before = files(folder)
        for overtaken in (first.run, lambda: first.extend(3)):
            with pytest.raises(RunDirError, match=r"went on in .*: resume it anew"):
                overtaken()
        assert files(folder) == before
        assert facts(a_search(folder).run()) == expected == facts(whole(tmp_path))

    def test_the_directory_is_free_again_after_a_run_and_after_a_crash(self, folder):
        crashed(folder)
        search = a_search(folder)
        search.run()
        search.extend(2)
        assert search.run().n_epochs == 26

    def test_a_callback_may_extend(self, folder):
        def more(search, report):
            if search.scheduler.n_epochs == 10:
                search.extend(2)

        result = a_search(folder, callbacks=[more]).run()
        assert result.n_epochs == 26
        assert facts(RisingSearch.resume(folder, Rising()).run()) == facts(result)


class TestDiskSpace:
    @pytest.mark.parametrize("where", ["here", "threads"])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"max_epochs": None},
            {"policy": "asha"},
            {"slice": 3},
            {"max_failures": 1},
        ],
    )
    def test_two_checkpoints_of_an_arm_that_may_train_on_and_the_best(
        self, folder, where, options, request
    ):
        executor = None if where == "here" else request.getfixturevalue(where)

        def look(search, report):
            best = search.scheduler.best_arm
            for arm, epochs in kept(folder).items():
                status = search.scheduler.status(arm)
                alive = status in ("paused", "running") or "max_epochs" in options
                assert len(epochs) <= 2 * alive + (arm == best)

        trainable = Peaked(arm_1_epoch_2=ValueError("x"), arm_2_epoch_3=StopIteration)
        result = a_search(
            folder,
            trainable,
            callbacks=[look],
            executor=executor,
            order="completion",  # else what is told waits until it is taken in
            budget=40,
            **options,
        ).run()
        assert result.best_epoch in kept(folder)[result.best_arm]

    def test_after_a_crash_no_more_are_kept(self, folder):
        crashed(folder)
        before = kept(folder)
        a_search(folder)
        assert kept(folder) == before
        assert max(map(len, before.values())) <= 3

    def test_when_no_arm_can_train_on_the_best_alone_is_left(self, folder):
        result = a_search(folder, Peaked(), budget=48).run()
        assert kept(folder) == {result.best_arm: [result.best_epoch]}

    def test_the_space_that_is_allowed_is_never_exceeded(self, tmp_path, folder):
        sizes = []

        def look(search, report):
            paths = search._run_dir.path.rglob("*.ckpt")
            sizes.append(sum(path.stat().st_size for path in paths))

        expected = a_search(tmp_path / "whole", callbacks=[look]).run()
        limit = max(sizes) // 2
        sizes.clear()
        with pytest.raises(CheckpointError, match=r"max_checkpoint_bytes is \d.*allow"):
            a_search(folder, callbacks=[look], max_checkpoint_bytes=limit).run()
        assert 0 < max(sizes) <= limit
        with pytest.raises(CheckpointError, match="max_checkpoint_bytes"):
            RisingSearch.resume(folder, Rising(), max_checkpoint_bytes=limit).run()
        assert facts(RisingSearch.resume(folder, Rising()).run()) == facts(expected)


def test_every_refusal_is_an_error_of_this_package(folder):
    assert issubclass(JournalError, RunDirError)
    assert issubclass(CheckpointError, RunDirError)
    assert issubclass(RunDirError, RisingSearchError)
    with warnings.catch_warnings():
        a_search(folder, budget=3).run()
