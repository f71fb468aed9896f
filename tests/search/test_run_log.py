"""A search on disk loses nothing, lets one process in, and keeps few checkpoints."""

import os
import shutil
import signal
from collections import Counter
from itertools import count

import pytest
from kept_search import (
    Peaked,
    Rising,
    a_search,
    crashed,
    facts,
    files,
    kept,
    n_told,
    whole,
)

from risingsearch.errors import RunDirError
from risingsearch.search.run_log import RunLog
from risingsearch.search.search import RisingSearch
from risingsearch.storage.journal import read


@pytest.mark.filterwarnings("ignore:the code has changed")
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

    @pytest.mark.parametrize("at", [1, 12, 24])
    @pytest.mark.parametrize("epochs_per_job", [1, 3])
    def test_ctrl_c_loses_nothing(self, tmp_path, folder, at, epochs_per_job):
        trainable = self.in_training(at)
        options = {"epochs_per_job": epochs_per_job}
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
        if epochs_per_job == 1:
            assert facts(resumed) == facts(whole(tmp_path, **options))

    @pytest.mark.parametrize("at", [1, 12, 24])
    @pytest.mark.parametrize("epochs_per_job", [1, 3])
    def test_a_second_ctrl_c_costs_no_epoch(self, tmp_path, folder, at, epochs_per_job):
        trainable = self.in_training(at, times=2)
        options = {"epochs_per_job": epochs_per_job}
        search = a_search(folder, trainable, **options)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        expected = facts(whole(tmp_path, **options))
        assert facts(search.run()) == expected
        assert facts(a_search(copy, **options).run()) == expected

    @pytest.mark.parametrize("at", [1, 4, 9])
    def test_a_job_that_was_interrupted_before_it_began_is_written_in_its_order(
        self, folder, monkeypatch, threads, at
    ):
        """The start of a job is on disk before all results that came after it."""
        calls = count()
        usual = RunLog.begin

        def begin(log, job, *, here):
            if next(calls) == at:
                raise KeyboardInterrupt
            usual(log, job, here=here)

        monkeypatch.setattr(RunLog, "begin", begin)
        options = {"executor": threads, "deterministic": False, "policy": "asha"}
        search = a_search(folder, **options)
        with pytest.raises(KeyboardInterrupt):
            search.run()
        search.extend(1)
        events = read(folder / "journal.jsonl").events
        starts = [event for event in events if event["event"] == "started"]
        assert [event["job"][-1] for event in starts] == list(range(at + 1))
        result = search.run()
        assert facts(RisingSearch.saved_result(folder)) == facts(result)


class TestTwoAtOnce:
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="the trainable forks")
    def test_a_fork_of_the_search_changes_nothing(self, tmp_path, folder):
        class Forks(Rising):
            child = None

            def train(self, state):
                result = super().train(state)
                if len(self.trained) == 7:
                    Forks.child = os.fork()
                    if Forks.child == 0:
                        return result | {"score": 99.0}
                    os.waitpid(Forks.child, 0)
                    seen.append(files(folder))
                return result

        seen = []
        search = a_search(folder, Forks(), callbacks=[lambda epoch: before(epoch)])

        def before(epoch):
            if epoch.number == 6:
                seen.append(files(folder))

        try:
            result = search.run()
        except RunDirError as error:
            assert Forks.child == 0
            os._exit(0 if "forked from" in str(error) else 1)
        assert {path for path in seen[1] if path.suffix == ".ckpt"} == {
            path for path in seen[0] if path.suffix == ".ckpt"
        }
        assert facts(result) == facts(whole(tmp_path))

    def test_a_second_search_is_refused_while_one_runs(self, tmp_path, folder):
        refused = []

        def another(epoch):
            for again in (
                lambda: a_search(folder, budget=6),
                lambda: RisingSearch.resume(folder, Rising()),
            ):
                with pytest.raises(RunDirError, match="another process searches"):
                    again()
                refused.append(epoch.number)

        result = a_search(folder, callbacks=[another], budget=6).run()
        assert len(refused) == 2 * result.n_epochs
        assert facts(result) == facts(whole(tmp_path, budget=6))

    def test_one_that_was_overtaken_is_refused(self, tmp_path, folder):
        crashed(folder)
        first, second = a_search(folder), a_search(folder)
        expected = facts(second.run())
        before = files(folder)
        for overtaken in (first.run, lambda: first.extend(3)):
            with pytest.raises(RunDirError, match="another process has continued"):
                overtaken()
        assert files(folder) == before
        assert facts(a_search(folder).run()) == expected == facts(whole(tmp_path))

    def test_the_directory_is_free_again_after_a_run_and_after_a_crash(self, folder):
        crashed(folder)
        search = a_search(folder)
        search.run()
        search.extend(2)
        assert search.run().n_epochs == 26


class TestDiskSpace:
    @pytest.mark.parametrize(
        "options", [{"max_epochs": None}, {"policy": "asha"}, {"epochs_per_job": 3}]
    )
    def test_two_checkpoints_of_an_arm_that_may_train_on_and_the_best(
        self, folder, in_process, options
    ):
        def look(epoch):
            best = search.scheduler.best_arm
            for arm, epochs in kept(folder).items():
                status = search.scheduler.status(arm)
                may_go_on = status != "finished" or "max_epochs" in options
                assert len(epochs) <= 2 * may_go_on + (arm == best)

        trainable = Peaked(arm_1_epoch_2=ValueError("x"), arm_2_epoch_3=StopIteration)
        search = a_search(
            folder,
            trainable,
            callbacks=[look],
            executor=in_process,
            deterministic=False,  # else what is told waits until it is recorded
            budget=40,
            **options,
        )
        result = search.run()
        assert result.best_epoch in kept(folder)[result.best_arm]

    def test_when_no_arm_can_train_on_the_best_alone_is_left(self, folder):
        result = a_search(folder, Peaked(), budget=48).run()
        assert kept(folder) == {result.best_arm: [result.best_epoch]}

    def test_the_space_that_is_allowed_is_never_exceeded(self, tmp_path, folder):
        sizes = []

        def look(epoch):
            sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*.ckpt")))

        expected = a_search(tmp_path / "whole", callbacks=[look]).run()
        limit = max(sizes) // 2
        sizes.clear()
        shutil.rmtree(tmp_path / "whole")
        with pytest.raises(RunDirError, match=r"max_checkpoint_bytes is \d.*allow"):
            a_search(folder, callbacks=[look], max_checkpoint_bytes=limit).run()
        assert 0 < max(sizes) <= limit
        with pytest.raises(RunDirError, match="max_checkpoint_bytes"):
            RisingSearch.resume(folder, Rising(), max_checkpoint_bytes=limit).run()
        assert facts(RisingSearch.resume(folder, Rising()).run()) == facts(expected)
