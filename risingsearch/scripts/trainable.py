"""Training scripts in any language as a trainable: one process per job."""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import shutil
import string
import tarfile
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import KW_ONLY, InitVar, dataclass, field
from pathlib import Path
from typing import NamedTuple

from risingsearch.arms import Configuration
from risingsearch.checks import LARGEST_COST, is_cost, is_number, shown
from risingsearch.errors import ScriptError, SetupError
from risingsearch.json_values import Json
from risingsearch.scripts.output import Pace, ReportFile, reports
from risingsearch.scripts.processes import Script, end_left_over
from risingsearch.scripts.readers import EPOCH, Reader, reader_of
from risingsearch.search.processes import Slots
from risingsearch.search.training import COST, RESERVED, StartedEpochs
from risingsearch.storage import files

PREFIX = "RISINGSEARCH_"
FIELDS = ("arm", "seed", "from_epoch", "epochs", "to_epoch", "checkpoint_dir", "params")
"""Fields that a command may name besides its parameters; also environment variables,
in upper case after ``RISINGSEARCH_``."""
LOG = "log.txt"
"""In an arm's folder: all that its scripts have printed. It is never shortened."""
PROGRESS = "progress.json"
FILES = "files"
"""In a state, which is a tar file: the progress of the arm, and its directory."""
Reports = list[Json]  # of epochs, each with its score and other metrics


@dataclass
class ScriptRun:
    """An arm between two jobs: its checkpoint directory is named after its epoch."""

    arm: int
    params: Json
    seed: int
    epoch: int = 0


class Launch(NamedTuple):
    """The arguments and the variables that a script is started with."""

    command: list[str]
    variables: dict[str, str]
    """The fields of a command, by the names of their variables."""

    @classmethod
    def of(
        cls,
        command: Sequence[str],
        run: ScriptRun,
        from_epoch: int,
        to_epoch: int,
        folder: Path,
    ) -> Launch:
        """Return the arguments and variables for some epochs of an arm."""
        n_epochs = to_epoch - from_epoch
        facts = (run.arm, run.seed, from_epoch, n_epochs, to_epoch, folder)
        fields = dict(zip(FIELDS, (*facts, json.dumps(run.params)), strict=True))
        values = run.params | fields
        arguments = [
            filled(part, values)
            for part in command
            if all(name in values for name in fields_of(part))
        ]
        return cls(arguments, {variable(name): str(fields[name]) for name in FIELDS})


def variable(field: str) -> str:
    """Return the name of the variable that a field of a command is in."""
    return f"{PREFIX}{field.upper()}"


class NothingReportedError(ScriptError):
    """A script has succeeded, and nothing in its output is the score of an epoch."""


@contextmanager
def counted(results: Reports, n_before: int = 0) -> Iterator[None]:
    """Let a ``ScriptError`` say how many epochs of the job were reported before it."""
    try:
        yield
    except ScriptError as error:
        error.n_reported = max(0, len(results) - n_before)
        raise


def has_lost(results: Reports) -> bool:
    """Whether the last score is not finite, after which a script is ended."""
    return bool(results) and not math.isfinite(results[-1]["score"])


@dataclass(eq=False)
class CommandTrainable:
    """A command as a trainable; it is started without a shell."""

    # In its arguments {name} stands for a parameter or one of FIELDS; one that names a
    # parameter which the arm does not have is left out. `cost` is the key of an epoch's
    # cost, if it must be reported; `gpus` are those of a slot, and `slots` variables,
    # of which each process gets one. Markers of what runs are in arms' folders or
    # `markers`.

    command: Sequence[str]
    folder: Path
    _: KW_ONLY
    metric: str | Mapping[str, str] = "score"
    report_file: str | None = None
    slots: InitVar[Sequence[Mapping[str, str]]] = ({},)
    timeout: float | None = None
    cwd: Path | str | None = None
    cost: str | None = None
    gpus: float = 1.0
    markers: Path | None = None

    starts_processes = True
    has_reported = False  # a score, of any arm
    _has_ended = False

    def __post_init__(self, slots: Sequence[Mapping[str, str]]) -> None:
        self.folder = self.folder.absolute()
        self.arms: dict[int, int] = {}  # by seed
        self._suffixes: set[str] = set()
        self._slots = Slots(slots)
        self._running: set[Script] = set()
        self._lock = threading.Lock()

    def start(self, params: Configuration, seed: int) -> ScriptRun:
        """Return an arm that has not trained yet."""
        return ScriptRun(self.arms[seed], dict(params), seed)

    def train(self, run: ScriptRun) -> Json:
        """Run the script for one epoch."""
        return next(iter(self.train_epochs(run, 1)))

    def train_epochs(self, run: ScriptRun, n_epochs: int) -> Reports:
        """Run the script for some epochs; return its report of each."""
        # It works on a copy of the arm's last checkpoint directory, which is kept if it
        # succeeds. A ScriptError is its fault, other errors are that of the machine.
        with self._blaming_the_disk(run.arm):
            return self._trained(run, n_epochs, self.made_home(run.arm))

    def _trained(self, run: ScriptRun, n_epochs: int, home: Path) -> Reports:
        end_left_over(home)
        begin = self.last_checkpoint(run)
        to_epoch = run.epoch + n_epochs
        n_before = run.epoch - begin  # epochs that are trained again
        for left in home.glob("training-*"):  # attempts of which nothing is kept
            shutil.rmtree(left, ignore_errors=True)
        # A folder of a new name, where children of an earlier attempt cannot write.
        work = Path(tempfile.mkdtemp(prefix="training-", dir=home))
        if begin > 0:
            before = home / checkpoint_name(begin)
            shutil.copytree(before, work, symlinks=True, dirs_exist_ok=True)
        reported: Reports = []
        reader = reader_of(self.metric, self._suffixes)
        with self._slots.taken() as slot, counted(reported, n_before):
            pace = Pace()
            launched = self._launched(run, begin, to_epoch, work, slot, reader)
            with launched as (_, records):
                for record in records:
                    pace.reported()
                    epoch = begin + len(reported) + 1
                    result = self._checked(record, reader, begin, epoch, to_epoch)
                    reported.append(result)
                    if len(reported) > n_before and has_lost(reported):
                        break  # which ends the script
        startup = pace.startup()
        if not reported and begin == 0:
            raise self._nothing_reported(reader)
        results = reported[n_before:]
        if results:
            sync_checkpoint(work)
        run.epoch += len(results)
        # A script that was ended has perhaps been writing.
        is_cut = has_lost(results) and begin + len(reported) < to_epoch
        if results and not is_cut:
            self.keep(run.arm, work.name, run.epoch)
        return StartedEpochs(results, startup)

    def keep(self, arm: int, work: str, epoch: int) -> bool:
        """Keep the folder that a script has left as a checkpoint; whether it is one."""
        home = self.home(arm)
        left = home / Path(work).name
        after = home / checkpoint_name(epoch)
        if left.is_dir():  # else it was kept before
            with self._blaming_the_disk(arm):
                shutil.rmtree(after, ignore_errors=True)
                os.replace(left, after)
                files.sync_folder(home)
        return after.is_dir()

    def _blaming_the_disk(self, arm: int) -> AbstractContextManager[None]:
        """Raise a ``RunDirError`` for problems of the disk, not of the script."""
        home = self.home(arm)
        return files.blaming_the_disk(home, files.MAKE_ROOM, home)

    def last_checkpoint(self, run: ScriptRun) -> int:
        """Return the epoch that the script continues from."""
        epochs = self.checkpoint_epochs(run.arm)
        last = max((epoch for epoch in epochs if epoch <= run.epoch), default=0)
        if last < run.epoch:
            missing = self.home(run.arm) / checkpoint_name(run.epoch)
            msg = (
                f"{missing} is missing: arm {run.arm} trains again from epoch "
                f"{last} to {run.epoch}, which is not charged"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return last

    def checkpoint_epochs(self, arm: int) -> list[int]:
        """Return the epochs of which an arm has a checkpoint directory."""
        names = (path.name for path in self.home(arm).glob("epoch-*"))
        matches = map(_CHECKPOINT.fullmatch, names)
        return sorted(int(match[1]) for match in matches if match)

    def checkpoint_from(self, arm: int, epoch: int) -> Path:
        """Return an arm's first checkpoint directory that has seen an epoch."""
        epochs = self.checkpoint_epochs(arm)
        return self.home(arm) / checkpoint_name(
            next((e for e in epochs if e >= epoch), epoch)
        )

    def drop_checkpoints(self, arm: int, epochs: Iterable[int]) -> None:
        """Remove an arm's checkpoint directories of some epochs."""
        for epoch in epochs:
            shutil.rmtree(self.home(arm) / checkpoint_name(epoch))

    def made_home(self, arm: int) -> Path:
        """Make the folder of an arm, and that of all arms, for their owner alone."""
        files.make_folder(self.folder)
        files.make_folder(self.home(arm))
        return self.home(arm)

    def home(self, arm: int) -> Path:
        """Return the folder of an arm."""
        return self.folder / f"arm-{arm:06d}"

    def save(self, run: ScriptRun, path: str) -> None:
        """Write an arm's progress; its model is in its folder."""
        Path(path).write_text(json.dumps(vars(run)))

    def load(self, path: str) -> ScriptRun:
        """Inverse of ``save``."""
        return ScriptRun(**json.loads(Path(path).read_text()))

    def end(self) -> None:
        """Terminate all processes and their child processes, and start no other."""
        with self._lock:
            self._has_ended = True
            for script in list(self._running):
                script.end()

    def end_left_over(self) -> None:
        """Terminate the scripts that a killed sweep has left running."""
        for home in sorted(self.folder.glob("arm-*")):
            if _HOME.fullmatch(home.name):
                end_left_over(home)

    @contextmanager
    def _launched(
        self,
        run: ScriptRun,
        from_epoch: int,
        to_epoch: int,
        work: Path,
        slot: int,
        reader: Reader,
    ) -> Iterator[tuple[Script, Iterator[Json]]]:
        """Yield a script that runs, and its reports."""
        launch = Launch.of(self.command, run, from_epoch, to_epoch, work)
        command = launch.command
        variables = self._slots.variables[slot] | launch.variables
        home = self.home(run.arm)
        file = None
        if self.report_file is not None:
            file = ReportFile(work, self.report_file)
        printed = files.open_regular_file(home / LOG, "ab")
        with io.TextIOWrapper(printed, encoding="utf-8") as log:
            log.write(f"--- epochs {from_epoch + 1} to {to_epoch}: {command}\n")
            log.flush()
            with (
                self._script(command, home, variables) as script,
                closing(
                    reports(script, reader, timeout=self.timeout, log=log, file=file)
                ) as records,
            ):
                yield script, records

    def _nothing_reported(self, reader: Reader) -> NothingReportedError:
        where = "in its output"
        if self.report_file:
            where = f"in {self.report_file}"
        return NothingReportedError(
            f"the script succeeded, but has reported no epoch {where}: there is "
            f"{reader.missed}"
        )

    @contextmanager
    def _script(
        self,
        command: list[str],
        home: Path,
        variables: Mapping[str, str],
    ) -> Iterator[Script]:
        """Yield the running command; nothing of it runs after the block."""
        with self._lock:
            if self._has_ended:
                raise SetupError("the sweep has ended before the script began")
            try:
                script = Script(command, self.markers or home, variables, self.cwd)
            except OSError as error:
                what = error.filename or command[0]
                raise self._unstartable(what, error.strerror) from error
            self._running.add(script)
        try:
            yield script
        finally:
            script.end()
            self._running.discard(script)

    def check_program(self) -> None:
        """Raise a SetupError if the program that every arm starts is not there."""
        if fields_of(self.command[0]):
            return
        program = filled(self.command[0], {})
        at = program
        if os.sep in program:
            at = os.path.join(self.cwd or "", program)
        for variables in self._slots.variables:
            path = variables.get("PATH", os.environ.get("PATH", os.defpath))
            if shutil.which(at, path=path) is None:
                why = errno.ENOENT
                if os.path.exists(at):
                    why = errno.EACCES
                raise self._unstartable(program, os.strerror(why))

    def _unstartable(self, program: str, why: str | None) -> ScriptError | SetupError:
        """Return the error for a program: of one arm if a parameter names it."""
        kind = ScriptError if fields_of(self.command[0]) else SetupError
        return kind(f"{program} cannot be started ({why})")

    def _checked(
        self, record: Json, reader: Reader, begin: int, epoch: int, last: int
    ) -> Json:
        """Return the result of the epoch that is due, by the script's report."""
        _check_epoch(record.pop(EPOCH, None), begin, epoch, last)
        result: Json = {"score": record.pop(reader.metric)}
        if not is_number(result["score"]):
            raise ScriptError(
                f"the script reports {reader.metric}={shown(result['score'])}, which "
                "is no number"
            )
        if self.cost is not None:
            result[COST] = record.pop(self.cost, None)
            if not is_cost(result[COST]):
                raise ScriptError(
                    f"the script reports {shown(result[COST])} as {self.cost!r}: each "
                    "epoch says with its score what it has cost, at least 0 and at "
                    f"most {LARGEST_COST:g}"
                )
        self.has_reported = True
        numbers = {name: float(value) for name, value in result.items()}
        taken = RESERVED | result.keys()
        others = {
            f"reported_{name}" if name in taken else name: value
            for name, value in record.items()
        }
        return {**numbers, **others}


def sync_checkpoint(work: Path) -> None:
    """Bring a checkpoint directory to disk, or raise if it cannot be copied."""
    if work.is_symlink() or not work.is_dir():
        msg = "the script has replaced its checkpoint directory"
        raise ScriptError(f"{msg}: it must write into it")
    for path in work.rglob("*"):
        if not (path.is_symlink() or path.is_file() or path.is_dir()):
            msg = f"the script has left {path.name!r} in its checkpoint"
            raise ScriptError(f"{msg}, which holds files, folders and links")
    files.sync_tree(work)


def _check_epoch(reported: object, begin: int, due: int, last: int) -> None:
    """Raise a ScriptError unless a script reports the epoch that is due."""
    epoch = "no epoch"
    if reported is not None:
        epoch = f"epoch {shown(reported)}"
    if isinstance(reported, int) and begin < reported < due:
        raise ScriptError(
            f"the script reports {epoch} a second time: have one line of each epoch "
            "report its score"
        )
    if due > last:
        raise ScriptError(f"the script reports {epoch}, and was asked to end at {last}")
    if reported != due:
        hint = ""
        if reported == 1:
            hint = ": it has started anew instead of resuming from its checkpoint"
        elif reported == 0:
            hint = ": epochs count from 1"
        raise ScriptError(f"the script reports {epoch} where {due} is due{hint}")


def fields_of(part: str) -> list[str]:
    """Return the names in an argument of a command, such as ``--lr={lr}``."""
    names = (name for _, name, _, _ in string.Formatter().parse(part))
    return [name for name in names if name is not None]


def filled(part: str, values: Mapping[str, object]) -> str:
    """Return an argument of a command with its values."""
    parsed = string.Formatter().parse(part)
    return "".join(
        text + ("" if name is None else str(values[name]))
        for text, name, _, _ in parsed
    )


_HOME = re.compile(r"arm-\d{6,15}")
_CHECKPOINT = re.compile(r"epoch-(\d{6,15})")


def checkpoint_name(epoch: int) -> str:
    """Return the name of an arm's checkpoint directory."""
    return f"epoch-{epoch:06d}"


@dataclass(eq=False)
class ArchivedTrainable(CommandTrainable):
    """A command whose arms can be continued where their folders are missing."""

    _same: set[tuple[int, int]] = field(default_factory=set, init=False)
    """Arm and epoch of the copies that are on disk here."""

    def save(self, run: ScriptRun, path: str) -> None:
        """Write an arm's progress and its checkpoint directory into one file."""
        folder = self.folder_of(run)

        def checked(member: tarfile.TarInfo) -> tarfile.TarInfo:
            tarfile.data_filter(member, str(folder.parent))  # or a FilterError
            return member

        try:
            with tarfile.open(path, "w") as archive:
                _add_progress(archive, run)
                if folder.is_dir():  # there is none of an epoch that has failed
                    archive.add(folder, FILES, filter=checked)
        except tarfile.FilterError as error:
            raise ScriptError(
                f"a checkpoint cannot be taken to other machines: {error}"
            ) from error
        self._same.add((run.arm, run.epoch))

    def load(self, path: str) -> ScriptRun:
        """Return the run that ``save`` wrote, and restore its directory on disk."""
        with (
            files.blaming_the_disk(self.folder, files.MAKE_ROOM),
            tarfile.open(path) as archive,
        ):
            progress = archive.extractfile(PROGRESS)
            assert progress is not None
            run = ScriptRun(**json.load(progress))
            if FILES in archive.getnames():
                self._unpack(archive, run)
        return run

    def at_hand(
        self, arm: int, params: Configuration, seed: int, epoch: int
    ) -> bytes | None:
        """Return a state that leaves out the directory, if that is on disk already."""
        run = ScriptRun(arm, dict(params), seed, epoch)
        if (arm, epoch) not in self._same or not self.folder_of(run).is_dir():
            return None
        state = io.BytesIO()
        with tarfile.open(fileobj=state, mode="w") as archive:
            _add_progress(archive, run)
        return state.getvalue()

    def folder_of(self, run: ScriptRun) -> Path:
        """Return the checkpoint directory of an arm, by its epoch."""
        return self.home(run.arm) / checkpoint_name(run.epoch)

    def _unpack(self, archive: tarfile.TarFile, run: ScriptRun) -> None:
        home = self.made_home(run.arm)
        after = self.folder_of(run)
        with tempfile.TemporaryDirectory(prefix="training-", dir=home) as beside:
            archive.extractall(beside, filter="data")
            files.sync_tree(Path(beside))
            shutil.rmtree(after, ignore_errors=True)
            os.replace(Path(beside, FILES), after)
        files.sync_folder(home)
        self._same.add((run.arm, run.epoch))


def _add_progress(archive: tarfile.TarFile, run: ScriptRun) -> None:
    content = json.dumps(vars(run)).encode()
    member = tarfile.TarInfo(PROGRESS)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
