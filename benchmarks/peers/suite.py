"""``RisingSearchCV`` beside other tools: same problems, same epochs, one at a time.

Every peer has a virtual environment of its own, which is made here; epochs are counted
inside the model, whichever tool trains it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers import cheap, figures, results, reviews
from benchmarks.peers.environments import (
    COMMON,
    TORCH,
    NotInstalledError,
    last_line,
    python_of,
)
from benchmarks.peers.jobs import Job, Run
from benchmarks.peers.results import OWN
from benchmarks.shared import report
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS, PROBLEMS
from risingsearch.errors import InvalidParameterError, MissingDependencyError

SEEDS = {"quick": 2, "default": 5, "full": 10}
QUICK = ("digits", "late-bloomers")
SECONDS_PER_SEARCH = 600  # then a runner is stopped; its missing runs count as failed


class Peer(NamedTuple):
    """A tool: its runner, what that can search with, and the packages it needs."""

    runner: str
    searches: list[str]
    packages: tuple[str, ...] = ()  # none: those that are installed here


PEERS = [
    Peer("rising", [OWN]),
    Peer("sklearn", ["HalvingRandomSearchCV", "random search, in full"]),
    Peer(
        "optuna",
        ["Optuna TPE, Hyperband", "Optuna TPE, halving", "Optuna TPE, median"],
        ("optuna==5.0.0",),
    ),
    Peer(
        "dask",
        ["dask-ml Hyperband"],
        ("dask-ml==2025.1.0", "dask==2025.2.0", "distributed==2025.2.0"),
    ),
    Peer("ray", ["Ray Tune ASHA"], ("ray[tune]==2.60.0",)),
    Peer("syne", ["Syne Tune ASHA"], ("syne-tune==0.16.0",)),
]

NOTES = f"""\
- Scores: accuracy on the held-out rows, the best that a search saw by the time {BUDGET}
  epochs were trained, or all that it trained if that is fewer; `in the end`: with all
  that it trained. `audited epochs` are counted inside the model, `own count` by the
  tool; `tried`: configurations of 60 that got an epoch.
- Everybody has the same split, the same 60 configurations and one training at a time.
  RisingSearchCV, scikit-learn and dask-ml draw from the list, Ray Tune and Syne Tune
  get it in random order; Optuna's TPE proposes values from the same lists.
- dask-ml trains ahead of its own decisions, and until its brackets are done. Syne
  Tune's scheduler is called as its tuner calls it, without the processes that the tuner
  starts. Processes and clusters are started before the clock is."""


def run(out: Path, *, scale: str, seed: int, data_dir: Path | None) -> None:
    """Run every search on every problem, and compare."""
    seeds = list(range(seed, seed + SEEDS[scale]))
    peers = [peer for peer in PEERS if scale != "quick" or not peer.packages]
    pythons = {peer.runner: _python(peer, out / "environments") for peer in peers}
    runs: list[Run] = []
    absent = []
    for problem in PROBLEMS:
        if scale == "quick" and problem not in QUICK:
            absent.append(
                f"- {problem} was not measured: it takes too long for --quick."
            )
            continue
        try:
            data = _data(problem, out, data_dir)
        except (InvalidParameterError, MissingDependencyError) as error:
            absent.append(f"- {problem} was not measured: {error}.")
            continue
        for peer in peers:
            print(f"{problem}: {', '.join(peer.searches)}", file=sys.stderr)
            folder = out / "logs" / peer.runner
            folder.mkdir(parents=True, exist_ok=True)
            job = Job(problem, peer.searches, seeds, str(folder.absolute()), data)
            runs += measure(peer, pythons[peer.runner], job)
    found = results.read(runs)
    report.write_results(out, results.rows(found))
    title = (
        f"60 configurations of at most {MAX_EPOCHS} epochs, {BUDGET} epochs, "
        f"seeds {seeds[0]} to {seeds[-1]}"
    )
    parts = list(_parts(found, absent, out))
    if scale != "quick":
        parts.append(cheap.compare(out, seeds, data_dir))
    report.write_summary(out, title, parts)


def _parts(found: list[results.Result], absent: list[str], out: Path) -> Iterator[str]:
    compared = results.compare_with_peers(found)
    yield report.table(list(results.verdicts(compared)))
    if compared:
        yield report.table([against.row() for against in compared])
    yield report.table(results.table(found))
    yield "\n".join([NOTES, *absent])
    done = [result for result in found if not result.run.error]
    if done:
        yield figures.against_epochs(done, out)
        yield figures.against_time(done, out)
    if any(result.run.problem == figures.LATE for result in done):
        yield figures.where_epochs_went(done, out)


def _python(peer: Peer, cache: Path) -> Path | NotInstalledError:
    """Return the interpreter of a peer, or why there is none."""
    if not peer.packages:
        return Path(sys.executable)
    try:
        return python_of(peer.runner, (*COMMON, TORCH, *peer.packages), cache)
    except NotInstalledError as error:
        return error


def _data(problem: str, out: Path, data_dir: Path | None) -> str:
    """Return the file with the rows of a problem, where it has one."""
    if problem == "imdb":
        return str(reviews.write(data_dir, out))
    if problem == "late-bloomers" and importlib.util.find_spec("torch") is None:
        msg = "torch is not installed (pip install risingsearch[torch])"
        raise MissingDependencyError(msg)
    return ""


def measure(peer: Peer, python: Path | NotInstalledError, job: Job) -> list[Run]:
    """Run a job, and return a run per search and seed, those that failed among them."""
    if isinstance(python, NotInstalledError):
        return complete([], job, f"not installed: {python}")
    command = [str(python), "-m", f"benchmarks.peers.runners.{peer.runner}"]
    try:
        done = subprocess.run(
            [*command, json.dumps(job._asdict())],
            cwd=Path(__file__).parents[2],
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS_PER_SEARCH * len(job.seeds) * len(job.searches),
        )
    except subprocess.TimeoutExpired as error:
        stdout = (error.stdout or b"").decode()
        return complete(parse(stdout), job, f"not done after {error.timeout:.0f} s")
    reason = f"exit code {done.returncode}: {last_line(done.stderr)}"
    return complete(parse(done.stdout), job, reason)


def _environment() -> dict[str, str]:
    """Return the environment variables of a runner: this package, and one thread."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        **dict.fromkeys(threads, "1"),
    }


def parse(stdout: str) -> list[Run]:
    """Return the runs that a runner printed, among whatever libraries print."""
    lines = [line for line in stdout.splitlines() if line.startswith('{"search": ')]
    return [Run(**json.loads(line)) for line in lines]


def complete(runs: list[Run], job: Job, reason: str) -> list[Run]:
    """Return the runs with those that are missing, which failed for a reason."""
    found = {(run.search, run.seed): run for run in runs}
    return [
        found.get((search, seed)) or Run(search, job.problem, seed, "", error=reason)
        for search in job.searches
        for seed in job.seeds
    ]
