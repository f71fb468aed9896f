"""A real Slurm of one node, in a folder of its own, for the tests that need one.

The fixture ``slurm_cluster`` is in ``conftest.py``. Nothing of the system's own Slurm
is touched: the cluster has its own key, ports, state and configuration, and the clients
(``sbatch``, ``squeue``, ...) find it by the variable ``SLURM_CONF``. Where one cannot
be started, ``NoSlurmError`` says why in a sentence.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
SYSTEM = os.pathsep.join(("/usr/sbin", "/usr/local/sbin"))  # not in a user's PATH
LONGEST = 60.0  # seconds until the node has to be up
POLL_EVERY = 0.1

CONFIGURATION = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={controller_port}
SlurmdPort={node_port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
KillWait=2
{settings}
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE OverSubscribe=NO
"""


class NoSlurmError(Exception):
    """Why no Slurm can be started here, in one sentence."""


class SlurmCluster:
    """A Slurm that runs: one node with so many CPUs, hence so many jobs at a time."""

    def __init__(self, folder: Path, cpus: int, settings: dict[str, object]) -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        controller_port, node_port = _free_ports()
        self.conf.write_text(
            CONFIGURATION.format(
                host=_host(),
                user=getpass.getuser(),
                folder=folder,
                controller_port=controller_port,
                node_port=node_port,
                cpus=cpus,
                settings="\n".join(f"{key}={value}" for key, value in settings.items()),
            )
        )

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which the clients, and all that calls them, find it."""
        return {"SLURM_CONF": str(self.conf)}

    def call(self, *command: str) -> str:
        """Return what a client prints; an error of it is a CalledProcessError."""
        done = subprocess.run(
            command,
            env=os.environ | self.environment,
            stdout=subprocess.PIPE,
            text=True,
            timeout=LONGEST,
            check=True,
        )
        return done.stdout

    def jobs(self, states: str = "PENDING,RUNNING,COMPLETING") -> dict[str, str]:
        """Return the state of every job in one of these states, by its number."""
        form = "--format=%i %T"
        found = self.call("squeue", "--noheader", "--array", form, f"--states={states}")
        return dict(line.split() for line in found.splitlines())

    def kill_controller(self) -> None:
        """Kill ``slurmctld`` as a crash would: what it has not saved is lost."""
        self._daemons["slurmctld"].kill()
        self._daemons["slurmctld"].wait()

    def start_controller(self) -> None:
        """Start ``slurmctld``, which knows the jobs of the one before."""
        self._start("slurmctld", "slurmctld", "-D")

    def wait_until_saved(self) -> None:
        """Wait until a new controller would know the jobs that are there."""
        state, now = self.folder / "state" / "job_state", time.time()
        for job in self.jobs():
            self.call("scontrol", "update", f"JobId={job}", "Nice=0")  # has it saved
        self._wait_for(lambda: state.exists() and state.stat().st_mtime > now)

    def kill_node(self) -> None:
        """Kill ``slurmd``, so that the node answers no more; its jobs run on."""
        self._daemons["slurmd"].kill()
        self._daemons["slurmd"].wait()

    def start_node(self) -> None:
        """Start ``slurmd``."""
        self._start("slurmd", "slurmd", "-D", "-N", _host())

    def start(self) -> None:
        """Start all daemons, and wait until the node takes jobs."""
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        files = ("key", "socket", "pid", "log", "seed")
        of_munge = [f"--{name}-file={self.folder}/munge.{name}" for name in files]
        of_munge[1] = f"--socket={self.folder}/munge.socket"
        self._start("munged", "munged", "--foreground", "--force", *of_munge)
        self._wait_for(lambda: (self.folder / "munge.socket").exists())
        self.start_controller()
        self.start_node()
        self.wait_until_up()

    def wait_until_up(self) -> None:
        """Wait until the controller answers and the node takes jobs."""
        self._wait_for(self.is_up)

    def is_up(self) -> bool:
        """Return whether the controller answers and the node takes jobs."""
        try:
            state = self.call("sinfo", "--noheader", "--format=%T").strip()
        except subprocess.CalledProcessError:
            return False
        return state in ("idle", "mixed", "allocated", "completing")

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait until none is left."""
        self.call("scancel", "--user", getpass.getuser())
        self._wait_for(lambda: not self.jobs())

    def stop(self) -> None:
        """End all jobs, then the daemons."""
        if self._is_alive("slurmctld") and self._is_alive("slurmd"):
            self.cancel_all()
        for name in ("slurmd", "slurmctld", "munged"):
            if self._is_alive(name):
                self._daemons[name].terminate()
                self._daemons[name].wait(LONGEST)

    def _is_alive(self, name: str) -> bool:
        return name in self._daemons and self._daemons[name].poll() is None

    def _start(self, name: str, *command: str) -> None:
        program = _found(command[0])
        with open(self.folder / f"{name}.log", "ab") as log:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", program, *command[1:]],
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONGEST
        while not condition():
            ended = [name for name in self._daemons if not self._is_alive(name)]
            if ended or time.monotonic() > deadline:
                said = [self._last_words(name) for name in self._daemons]
                raise NoSlurmError(f"Slurm does not come up here: {'; '.join(said)}")
            time.sleep(POLL_EVERY)

    def _last_words(self, name: str) -> str:
        lines = (self.folder / f"{name}.log").read_text(errors="replace").split("\n")
        return f"{name} says {' '.join(lines).strip()[-200:]!r}"


@contextmanager
def started(
    folder: Path, *, cpus: int = 2, **settings: object
) -> Iterator[SlurmCluster]:
    """Yield a cluster with so many slots; ``settings`` are lines of ``slurm.conf``."""
    if os.getuid() != 0:
        msg = "Slurm needs root to be started here"
        raise NoSlurmError(msg)
    absent = [name for name in (*PROGRAMS, "setpriv") if not _found(name)]
    if absent:
        msg = f"no Slurm is installed here: there is no {', no '.join(absent)}"
        raise NoSlurmError(msg)
    cluster = SlurmCluster(folder, cpus, settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _found(program: str) -> str:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), SYSTEM))
    return shutil.which(program, path=path) or ""


def _host() -> str:
    return socket.gethostname().partition(".")[0]


def _free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as other:
        found = []
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
            found.append(each.getsockname()[1])
        return found
