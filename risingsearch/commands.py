"""Training scripts in any language as a trainable: one process per job.

A script gets its parameters, a checkpoint directory and the epochs to run, as fields of
its command and as variables of its environment, and reports one line of JSON per
epoch: it prints it, or adds it to a file.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import string
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import IO, Any

from risingsearch.errors import ScriptError
from risingsearch.script_reports import ReportFile, kill, reports

PREFIX = "RISINGSEARCH_"
FIELDS = (
    "arm",
    "seed",
    "from_epoch",
    "epochs",
    "to_epoch",
    "checkpoint_dir",
    "params",
)
"""What a command may name besides its parameters; the same in upper case, after
``RISINGSEARCH_``, in the environment."""


@dataclass
class ScriptRun:
    """An arm between two jobs: its checkpoint directory is named after its epoch."""

    arm: int
    params: dict[str, Any]
    seed: int
    epoch: int = 0


class CommandTrainable:
    """A command as a trainable; no shell is ever started for it.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments; ``{name}`` stands for a parameter or one of
        ``FIELDS``, ``{{`` and ``}}`` for braces. An argument that names a parameter
        which the arm does not have is left out.
    folder : Path
        Where every arm has a folder, with its checkpoints and its log.
    metric : str, default "score"
        Key of the score in the lines that the script reports.
    report_file : str, optional
        A file in the checkpoint directory to which the script adds these lines; by
        default it prints them.
    slots : sequence of dict of str to str, optional
        Environment variables, one set for each process at the same time: a GPU each.
    timeout : float, optional
        Seconds without an epoch after which a script counts as hanging.

    Attributes
    ----------
    arms : dict of int to int
        The number of the arm with a seed, for names of folders; filled by the caller.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        *,
        metric: str = "score",
        report_file: str | None = None,
        slots: Sequence[Mapping[str, str]] = ({},),
        timeout: float | None = None,
    ) -> None:
        self.command = list(command)
        self.folder = folder
        self.metric = metric
        self.report_file = report_file
        self.timeout = timeout
        self.arms: dict[int, int] = {}
        self._slots: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
        for slot in slots:
            self._slots.put(slot)
        self._running: set[subprocess.Popen[str]] = set()

    def start(self, params: Mapping[str, Any], seed: int) -> ScriptRun:
        """Return an arm that has seen nothing."""
        return ScriptRun(self.arms[seed], dict(params), seed)

    def train(self, run: ScriptRun) -> dict[str, Any]:
        """Run the script for one epoch."""
        results = self.train_epochs(run, 1)
        if not results:
            raise StopIteration
        return results[0]

    def train_epochs(self, run: ScriptRun, n_epochs: int) -> list[dict[str, Any]]:
        """Run the script for some epochs; return what it reports of each.

        The script works on a copy of the arm's last checkpoint directory, which takes
        its place when all is well. So nothing is left of a job that fails.

        Raises
        ------
        ScriptError
            If it ends with an error, hangs, or does not report epoch after epoch.
        """
        home = self.home(run.arm)
        home.mkdir(parents=True, exist_ok=True)
        for left in home.glob("training-*"):  # of jobs that were broken off
            shutil.rmtree(left, ignore_errors=True)
        # A name of its own: what such a job has left running cannot write there.
        work = Path(tempfile.mkdtemp(prefix="training-", dir=home))
        before = home / checkpoint_name(run.epoch)
        if before.exists():
            shutil.copytree(before, work, symlinks=True, dirs_exist_ok=True)
        results: list[dict[str, Any]] = []
        with (home / "log.txt").open("a") as log:
            for record in self._records(run, n_epochs, work, log):
                epoch = run.epoch + len(results) + 1
                results.append(self._checked(record, epoch, run.epoch + n_epochs))
        if not results and run.epoch == 0:
            msg = (
                "the script ended well, and has reported no line of JSON with an epoch "
                f"and {self.metric!r} {self._where}"
            )
            raise ScriptError(msg)
        if results:
            after = home / checkpoint_name(run.epoch + len(results))
            shutil.rmtree(after, ignore_errors=True)
            os.replace(work, after)
            run.epoch += len(results)
        return results

    def checkpoint_epochs(self, arm: int) -> list[int]:
        """Return the epochs of which an arm has a checkpoint directory."""
        found = self.home(arm).glob("epoch-*")
        return sorted(int(path.name.removeprefix("epoch-")) for path in found)

    def drop_checkpoints(self, arm: int, keep: Set[int]) -> None:
        """Remove an arm's checkpoint directories but those of some epochs."""
        for epoch in self.checkpoint_epochs(arm):
            if epoch not in keep:
                shutil.rmtree(self.home(arm) / checkpoint_name(epoch))

    def home(self, arm: int) -> Path:
        """Return the folder of an arm."""
        return self.folder / f"arm-{arm:06d}"

    def save(self, run: ScriptRun, path: str) -> None:
        """Write where an arm is; what it has learnt is in its folder."""
        Path(path).write_text(json.dumps(vars(run)))

    def load(self, path: str) -> ScriptRun:
        """Return what ``save`` wrote."""
        return ScriptRun(**json.loads(Path(path).read_text()))

    def end(self) -> None:
        """End all processes, with what they have started."""
        for process in list(self._running):
            kill(process)

    @property
    def _where(self) -> str:
        return f"in {self.report_file}" if self.report_file else "on standard output"

    def _fields(self, run: ScriptRun, n_epochs: int, work: Path) -> dict[str, Any]:
        values = (
            run.arm,
            run.seed,
            run.epoch,
            n_epochs,
            run.epoch + n_epochs,
            str(work.absolute()),
            json.dumps(run.params),
        )
        return dict(zip(FIELDS, values, strict=True))

    def _records(
        self, run: ScriptRun, n_epochs: int, work: Path, log: IO[str]
    ) -> Iterator[dict[str, Any]]:
        """Run the script and yield its reports."""
        fields = self._fields(run, n_epochs, work)
        values = run.params | fields
        command = [
            part.format(**values)
            for part in self.command
            if all(name in values for name in fields_of(part))
        ]
        file = None if self.report_file is None else ReportFile(work / self.report_file)
        slot = self._slots.get()
        own = {f"{PREFIX}{name.upper()}": str(value) for name, value in fields.items()}
        log.write(f"--- epochs {run.epoch + 1} to {fields['to_epoch']}: {command}\n")
        log.flush()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, **slot, **own},
                start_new_session=True,
            )
        except OSError as error:
            self._slots.put(slot)
            msg = f"{command[0]!r} cannot be started ({error.strerror})"
            raise ScriptError(msg) from error
        self._running.add(process)
        try:
            yield from reports(
                process, self.metric, timeout=self.timeout, log=log, file=file
            )
        finally:
            kill(process)
            self._running.discard(process)
            self._slots.put(slot)

    def _checked(self, record: dict[str, Any], epoch: int, last: int) -> dict[str, Any]:
        """Return a report as ``train`` returns it, once it is what was asked for."""
        reported = record.pop("epoch", None)
        if epoch > last:
            msg = f"the script reports epoch {reported}, and was asked to end at {last}"
            raise ScriptError(msg)
        if reported != epoch:
            hint = (
                ": it has started anew instead of going on from its checkpoint"
                if reported == 1
                else ""
            )
            msg = f"the script reports epoch {reported} where {epoch} is due{hint}"
            raise ScriptError(msg)
        score = record.pop(self.metric)
        if isinstance(score, bool) or not isinstance(score, Real):
            msg = f"the script reports {self.metric}={score!r}, which is no number"
            raise ScriptError(msg)
        return {"score": float(score), **record}


def fields_of(part: str) -> list[str]:
    """Return the names in an argument of a command.

    >>> fields_of("--lr={lr} {{as it is}}")
    ['lr']
    """
    found = (name for _, name, _, _ in string.Formatter().parse(part))
    return [name for name in found if name is not None]


def checkpoint_name(epoch: int) -> str:
    """Return the name of an arm's checkpoint directory."""
    return f"epoch-{epoch:06d}"
