"""The states of arms between jobs: which are retained, and where an arm resumes."""

import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from risingsearch.errors import RunDirError, SetupError
from risingsearch.search.trainable import State
from risingsearch.search.training import Outcome, Task
from risingsearch.storage.checkpoints import Key, MemoryStore, Store

PER_ARM = 2
"""Checkpoints of an arm that may train on: the last, and one in case it is damaged."""


class RetainedCheckpoints:
    """Live states by arm, and checkpoints in a store: each arm's last, and the best."""

    def __init__(
        self,
        store: Store | MemoryStore,
        sign: float,
        at_hand: Callable[..., bytes | None] | None = None,
    ) -> None:
        self.store = store
        self._sign = sign
        self._at_hand = at_hand or (lambda *which: None)
        self._live: dict[int, State] = {}
        self._latest: dict[int, deque[Key]] = {}  # by arm, to resume from
        self._bests: dict[Key, float] = {}  # with their reward
        self._perhaps_unneeded: set[Key] = set()  # all that may be, of those stored

    def keep_live(self, arm: int, state: object) -> None:
        """Keep a state in memory for the arm's next job."""
        self._live[arm] = state

    def release_live(self, arm: int, *, may_be_bytes: bool = False) -> None:
        """Release an arm's state in memory: the arm resumes from its checkpoint."""
        if not (may_be_bytes and isinstance(self._live.get(arm), bytes)):
            self._live.pop(arm, None)

    def retire(self, arm: int) -> None:
        """Retain nothing to resume an arm from."""
        self.release_live(arm)
        self._perhaps_unneeded.update(self._latest.pop(arm, ()))

    def save(self, outcome: Outcome) -> None:
        """Save the checkpoints that a job has brought back."""
        job = outcome.report.job
        states: dict[Key, bytes] = {}
        if outcome.snapshot is not None:
            epoch, state = outcome.snapshot
            states[Key(job.arm, epoch)] = state
        if outcome.checkpoint is not None:
            states[Key(job.arm, outcome.last_epoch)] = outcome.checkpoint
        for key, state in states.items():
            self._make_room(key, state)
            self._perhaps_unneeded.add(key)
            self.store.save(key, state)

    def note_best(self, key: Key, score: float) -> None:
        """Note a checkpoint in the store that was the best when it was saved."""
        self._bests[key] = self._sign * score

    def note_stored(self, epochs: Mapping[int, int]) -> None:
        """Note the checkpoints of an earlier process, given the epochs told by arm."""
        self._perhaps_unneeded.update(self.store.keys())
        for key in sorted(self.store.keys()):
            if key.epoch <= epochs.get(key.arm, 0):  # else its job was never told
                self.note_last(key)

    def drop_unneeded(self, best_score: float) -> None:
        """Drop checkpoints that no arm resumes from and that are not the best."""
        best = -math.inf if math.isnan(best_score) else self._sign * best_score
        for key in [key for key, reward in self._bests.items() if reward < best]:
            self._perhaps_unneeded.add(key)
            del self._bests[key]
        for key in tuple(self._perhaps_unneeded):
            needed = key in self._bests or key in self._latest.get(key.arm, ())
            if not needed and key in self.store.keys():  # noqa: SIM118
                self.store.drop(key)
            self._perhaps_unneeded.remove(key)

    def best(self, key: Key) -> bytes | RunDirError | SetupError | None:
        """Return a state with the best score, or the error why it cannot be read."""
        if key not in self._bests:
            return None
        try:
            return self.store.load(key)
        except (RunDirError, SetupError) as error:
            return error

    def resumed(self, task: Task) -> Task:
        """Return the task with the state that its arm resumes from."""
        arm = task.job.arm
        epoch = task.job.from_epoch
        if arm in self._live or epoch == 0:
            return task._replace(state=self._live.get(arm))
        if not task.wants_checkpoint:  # nothing was saved
            return task._replace(epochs_missing=epoch)
        state = self._at_hand(
            arm,
            task.params,
            task.seed,
            epoch,
        )
        key = Key(arm, epoch)
        if state is None:
            key, state = self._last_whole(key)
        if state is None:
            return task._replace(epochs_missing=epoch)
        return task._replace(
            state=state,
            is_checkpoint=True,
            epochs_missing=epoch - key.epoch,
        )

    def _last_whole(self, wanted: Key) -> tuple[Key, bytes | None]:
        """Return an arm's last checkpoint that can be read, and warn of the others."""
        arm, epoch = wanted
        problems = []
        whole: tuple[Key, bytes | None] = Key(arm, 0), None
        for key in self._from_last(wanted):
            try:
                whole = key, self.store.load(key)
                break
            except RunDirError as error:
                problems.append(str(error))
        if problems:
            warnings.warn(
                f"{'; '.join(problems)}: arm {arm} trains again from epoch "
                f"{whole[0].epoch} to {epoch}, which is not charged",
                RuntimeWarning,
                stacklevel=7,
            )
        return whole

    def _from_last(self, wanted: Key) -> Iterator[Key]:
        """Yield a checkpoint, and those of its arm before it, which are looked for."""
        yield wanted
        stored = self.store.keys()
        earlier = [key for key in stored if key.arm == wanted.arm and key < wanted]
        yield from sorted(earlier, reverse=True)

    def note_last(self, key: Key) -> None:
        """Note a checkpoint in the store that its arm resumes from."""
        keys = self._latest.setdefault(key.arm, deque())
        if not keys or keys[-1] != key:
            keys.append(key)
        if len(keys) > PER_ARM:
            self._perhaps_unneeded.add(keys.popleft())

    def _make_room(self, key: Key, state: bytes) -> None:
        """Drop the second-last checkpoints, as many as need be."""
        if self.store.has_room(key, state):
            return
        for keys in self._latest.values():
            while len(keys) > 1 and not self.store.has_room(key, state):
                spare = keys.popleft()
                if spare not in self._bests and spare != key:
                    self.store.drop(spare)
