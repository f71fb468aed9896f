"""``risingsearch demo``: a search compared with those of other tools, by epochs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

from risingsearch.errors import (
    InvalidParameterError,
    SearchFailedError,
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

from risingsearch.cli.demo import table
from risingsearch.cli.demo.problem import BUDGET, MAX_EPOCHS
from risingsearch.cli.demo.searches import OPTUNA, OWN, SEARCHES, DemoRun, run
from risingsearch.cli.options import writing
from risingsearch.plotting.html_report import write_report

SEEDS = 4
LARGEST_SEED = 2**32 - 1  # of scikit-learn
NAMES = ("best-by-epochs.png", "report.html")
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
    """Run every search with four seeds, and print and draw the results.

    A picture and a report are written to the folder ``out``, which is made if missing.
    Returned are the rows of the table, a row per run, and the files.
    """
    if seed > LARGEST_SEED - SEEDS:
        msg = f"seed must be at most {LARGEST_SEED - SEEDS} here, got {seed}"
        raise InvalidParameterError(msg)
    picture, report = (out / name for name in NAMES)
    with writing(picture):  # before anything is trained
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    print(PLAN)
    if OPTUNA not in SEARCHES:
        print("Without Optuna its search is left out: pip install optuna\n")
    found = run_all(range(seed, seed + SEEDS))
    print(table.as_text(table.rows(found)))
    print(LEGEND)
    margins = [m for of in ("score", "test_score") for m in table.margins(found, of)]
    print(*margins, sep="\n")
    with writing(picture):
        table.best_by_epochs(found).savefig(picture, dpi=150)
        own = next(run.result for run in found if run.search == OWN)
        settings = {"max_epochs": MAX_EPOCHS}
        write_report(own, report, title="The search of the demo", settings=settings)
    print(f"\nWritten: {picture}, {report}")
    return {
        "table": table.rows(found),
        "margins": [margin._asdict() for margin in margins],
        "runs": [run._replace(result=None)._asdict() for run in found],
        "files": [str(picture), str(report)],
    }


def run_all(seeds: Sequence[int]) -> list[DemoRun]:
    """Run every search with every seed, on all processors, with a line of progress."""
    jobs = [(search, seed) for seed in seeds for search in SEARCHES]
    parallel = Parallel(n_jobs=-1, return_as="generator")
    try:
        return list(_counted(parallel(delayed(run)(*job) for job in jobs), len(jobs)))
    except (BrokenExecutor, BrokenPipeError) as error:
        msg = f"a process of the demo has died, and with it what it had found: {error}"
        raise SearchFailedError(msg, result=None) from error


def _counted(runs: Iterator[DemoRun], n: int) -> Iterator[DemoRun]:
    """Yield the runs, and print to standard error how many are done."""
    live = sys.stderr.isatty()
    for done, one in enumerate(runs, 1):
        if live or done in (n // 4, n // 2, 3 * n // 4, n):
            end = "\r" if live and done < n else "\n"
            print(f"{done} of {n} searches done", end=end, file=sys.stderr, flush=True)
        yield one
