"""Which arm is opened: proposals through the scheduler."""

import json

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError, PolicyError, RunDirError
from risingsearch.proposers import Proposer
from risingsearch.proposers.open_space import ListProposer
from risingsearch.scheduling.scheduler import Scheduler


class Last(Proposer):
    """Proposes the unopened arm of the highest number."""

    def __init__(self):
        self.asked = []

    def propose(self, opened, unopened, rng):
        self.asked.append((opened, unopened.tolist()))
        return int(unopened[-1])


class TestProposals:
    def play(self, scheduler, n_jobs=None):
        """Train all arms to a score that grows with their number."""
        jobs = []
        while len(jobs) != n_jobs and (job := scheduler.ask()) is not None:
            jobs.append(job)
            epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
            scheduler.tell(job, [job.arm / 10 - 1 / epoch for epoch in epochs])
        return jobs

    def test_the_proposed_arm_is_opened_instead(self):
        proposer = Last()
        scheduler = Scheduler("round-robin", 5, 9, 3, proposer=proposer)
        assert [job.arm for job in self.play(scheduler)] == [4, 3, 2, 1, 0, 4, 3, 2, 1]
        opened, unopened = proposer.asked[2]
        assert opened.arms.tolist() == [3, 4]
        assert opened.epochs.tolist() == [1, 1]
        assert opened.ends.tolist() == pytest.approx([-0.7, -0.6])
        assert opened.finished.tolist() == [False, False]
        assert opened.max_epochs == 3
        assert unopened == [0, 1, 2]

    def test_without_an_answer_the_next_in_order_is_opened(self):
        order = [3, 1, 4, 0, 2]
        silent = type("Silent", (Proposer,), {"propose": lambda *_: None})()
        scheduler = Scheduler("round-robin", 5, 5, opening_order=order, proposer=silent)
        assert [job.arm for job in self.play(scheduler)] == order

    def test_only_unopened_arms_can_be_proposed(self):
        class Wrong(Proposer):
            def propose(self, opened, unopened, rng):
                return 2

        scheduler = Scheduler("round-robin", 3, 3, proposer=Wrong())
        scheduler.tell(scheduler.ask(), [0.5])
        with pytest.raises(PolicyError, match=r"Wrong proposed arm 2, which is not"):
            scheduler.ask()

    def test_only_a_proposer_can_be_given(self):
        with pytest.raises(InvalidParameterError, match="proposer must be an instance"):
            Scheduler("round-robin", 3, 3, proposer=lambda *_: 2)

        for name, method in (("suggest", lambda *_: 2), ("propose", lambda self: 2)):
            wrong = type("Wrong", (Proposer,), {name: method})()
            with pytest.raises(InvalidParameterError, match="Wrong proposes nothing"):
                Scheduler("round-robin", 3, 3, proposer=wrong)

    def test_auto_asks_for_every_later_look(self):
        proposer = Last()
        scheduler = Scheduler("auto", 200, 200, 10, proposer=proposer)
        self.play(scheduler)
        n_opened = [len(opened.arms) for opened, _ in proposer.asked]
        assert n_opened == list(range(60, 60 + len(n_opened)))
        assert 12 <= len(n_opened) <= 0.2 * 140

    def test_auto_without_a_choice_asks_for_no_proposal(self):
        proposer = Last()
        scheduler = Scheduler("auto", 5, 40, 10, proposer=proposer)
        assert self.play(scheduler)[0].arm == 0
        assert proposer.asked == []

    def test_a_saved_search_goes_on_as_if_never_interrupted(self):
        features = np.random.default_rng(0).uniform(size=(150, 2))

        def make():
            proposer = ListProposer(features)
            return Scheduler("auto", 150, 200, 20, seed=1, proposer=proposer)

        whole = self.play(make())
        for interrupted_after in (5, 60, 90):
            first = make()
            self.play(first, interrupted_after)
            state = json.loads(json.dumps(first.state_dict()))
            rest = make()
            rest.load_state_dict(state)
            assert self.play(rest) == whole[interrupted_after:]
        other = Scheduler("auto", 150, 200, 20, seed=1)
        with pytest.raises(RunDirError, match="saved with proposer="):
            other.load_state_dict(state)

    def test_proposals_find_better_arms(self):
        rate = np.random.default_rng(0).permutation(np.linspace(0, 1, 400))
        top = 0.9 - (rate - 0.6) ** 2

        def best(proposer):
            scheduler = Scheduler(
                "looks-then-slope", 400, 200, 20, None, seed=0, proposer=proposer
            )
            while (job := scheduler.ask()) is not None:
                epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
                scheduler.tell(job, [top[job.arm] * (1 - 1 / (n + 2)) for n in epochs])
            opened = [arm for arm in scheduler.explain() if arm.epochs]
            return np.abs(rate[[arm.arm for arm in opened[60:]]] - 0.6).mean(), opened

        near, opened = best(ListProposer(rate[:, None]))
        far, _ = best(None)
        assert near < 0.8 * far
        assert "expected_gain" in opened[0].index
