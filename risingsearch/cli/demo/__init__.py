"""``risingsearch demo``: a search beside other tools' searches, by epochs spent."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

from risingsearch.errors import (
    ExecutorFailedError,
    InvalidParameterError,
    missing,
)

try:
    import sklearn  # noqa: F401
except ModuleNotFoundError as error:
    raise missing("scikit-learn", extra="sklearn") from error
try:
    import matplotlib  # noqa: F401
except ModuleNotFoundError as error:
    raise missing("matplotlib", extra="plot") from error

from joblib import Parallel, delayed
from joblib.externals.loky.backend.process import LokyProcess

from risingsearch.cli.demo import pictures, table
from risingsearch.cli.demo.problem import BUDGET, MAX_EPOCHS
from risingsearch.cli.demo.searches import OPTUNA, OWN, SEARCHES, Run, run
from risingsearch.plotting.html_report import write_report
from risingsearch.search.interrupts import finished_first

SEEDS = 4
LARGEST_SEED = 2**32 - 1  # of scikit-learn
NAMES = ("best-by-epochs.png", "search.png", "report.html")
PLAN = f"""\
Problem: 8,000 generated points of 4 classes, 8 clusters each, in 12 dimensions.
Space:   neural networks, 1 to 4 layers of 4 to 128 units, with learning rates over six
         decades; what trains and penalises them, and in what batches: 8 parameters.
Budget:  {BUDGET} epochs for every search; one model takes {MAX_EPOCHS} in full.
"""
LEGEND = f"""
Median of {SEEDS} seeds, and their range. Score: the best accuracy on the points that a
search chooses by; test: that of the same model on others. Epochs: counted inside the
models. Tried: how many of them were opened.
"""


def run_demo(out: Path, seed: int) -> dict[str, Any]:
    """Run every search with four seeds, and print and draw what came of it.

    Two pictures and a report are written to the folder ``out``, which is made if
    missing. Returned are the rows of the table, a row per run, and the files.
    """
    _check(out, seed)
    print(PLAN)
    if OPTUNA not in SEARCHES:
        print("Without Optuna its search is left out: pip install optuna\n")
    found = run_all(range(seed, seed + SEEDS))
    print(table.as_text(table.rows(found)))
    print(LEGEND)
    margins = [m for of in ("score", "test_score") for m in table.margins(found, of)]
    print(*margins, sep="\n")
    try:
        files = _write(found, out)
    except OSError as error:
        msg = f"nothing can be written to {out} any more ({error.strerror})"
        raise InvalidParameterError(f"{msg}: choose another") from error
    print("\nWritten: " + ", ".join(str(file) for file in files))
    return {
        "table": table.rows(found),
        "margins": [margin._asdict() for margin in margins],
        "runs": [_described(run) for run in found],
        "files": [str(file) for file in files],
    }


def _check(out: Path, seed: int) -> None:
    """Refuse, before anything is trained, what would fail after that."""
    if seed > LARGEST_SEED - SEEDS:
        msg = f"seed must be at most {LARGEST_SEED - SEEDS} here, got {seed}"
        raise InvalidParameterError(msg)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        msg = f"no file can be written to {out} ({error.strerror}): choose another"
        raise InvalidParameterError(msg) from error
    for path in (out / name for name in NAMES):
        if path.is_dir():
            msg = f"{path} is a folder, where a file is to be written: choose another"
            raise InvalidParameterError(msg)


def _described(run: Run) -> dict[str, Any]:
    """Return what is known of a run as JSON values."""
    described = run._asdict()
    del described["result"]
    return described


def run_all(seeds: Sequence[int]) -> list[Run]:
    """Run every search with every seed, on all processors, with a line of progress."""
    jobs = [(search, seed) for seed in seeds for search in SEARCHES]
    parallel = Parallel(n_jobs=-1, return_as="generator")
    try:
        return list(_counted(parallel(delayed(run)(*job) for job in jobs), len(jobs)))
    except (BrokenExecutor, BrokenPipeError) as error:
        msg = f"a process of the demo has died, and with it what it had found: {error}"
        raise ExecutorFailedError(msg, result=None) from error
    except KeyboardInterrupt:
        with finished_first():
            _end_workers()
        raise


def _end_workers() -> None:
    """End what joblib leaves where it is interrupted again as it ends them.

    They would wait for somebody to read their results, and this process for them.
    """
    for child in multiprocessing.active_children():
        if isinstance(child, LokyProcess):
            child.terminate()
            child.join()


def _counted(runs: Iterator[Run], n: int) -> Iterator[Run]:
    """Pass the runs on, and say on standard error how many there are."""
    live = sys.stderr.isatty()
    for done, one in enumerate(runs, 1):
        if live or done in (n // 4, n // 2, 3 * n // 4, n):
            end = "\r" if live and done < n else "\n"
            print(f"{done} of {n} searches done", end=end, file=sys.stderr, flush=True)
        yield one


def _write(found: list[Run], out: Path) -> list[Path]:
    by_epochs, search, report = (out / name for name in NAMES)
    shown = next(run.result for run in found if run.search == OWN)
    assert shown is not None
    write_report(
        shown,
        report,
        title="The search of the demo",
        settings={"max_epochs": MAX_EPOCHS},
    )
    return [
        pictures.save(pictures.best_by_epochs(found), by_epochs),
        pictures.save(pictures.one_search(shown), search),
        report,
    ]
