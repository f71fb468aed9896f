"""Run one suite: ``python -m benchmarks SUITE [--quick | --full] [--out DIR] ...``."""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import time
from pathlib import Path

SUITES = {
    # the module that runs it, and what it shows
    "concave": (
        "papers.cure_ucb.concave",
        "CURE-UCB paper: late bloomers against early peakers (Figs. 5, 9, 11)",
    ),
    "hpo": (
        "hpo.suite",
        "epoch schedulers replayed on recorded learning curves",
    ),
    "imdb": (
        "papers.cure_ucb.imdb.suite",
        "CURE-UCB paper: online model selection on reviews (Figs. 6, 7)",
    ),
    "ltf": (
        "papers.cure_ucb.ltf",
        "CURE-UCB paper: linear-then-flat arms (Figs. 4, 8, 10)",
    ),
    "optuna": (
        "adapters.optuna.suite",
        "RisingSampler beside Optuna's pruners, through study.optimize",
    ),
    "overhead": (
        "cost.overhead",
        "what scheduling costs, and what a search costs above its training",
    ),
    "peers": (
        "peers.suite",
        "RisingSearchCV beside scikit-learn, Optuna, dask-ml, Ray Tune, Syne Tune",
    ),
    "raven": (
        "papers.raven.suite",
        "RAVEN-UCB paper: regret reduction, sensitivity, logistics (Figs. 2-5)",
    ),
    "ray": (
        "adapters.ray",
        "RisingScheduler in Ray Tune beside RisingSearch, two at a time",
    ),
    "rotting": (
        "papers.rotting.suite",
        "rotting bandits paper: NP, AV, ANV (Fig. 1, Table 1, grid searches)",
    ),
    "scaling": (
        "cost.scaling.suite",
        "what one controller can drive: 10,000 workers, simulated",
    ),
    "smooth": (
        "papers.smooth.suite",
        "smooth non-stationary bandits paper: sinusoids, clicks (Figs. 3-6)",
    ),
    "speed": (
        "cost.speed.suite",
        "steps per second of every policy, beside other libraries and C",
    ),
    "two-arm": (
        "papers.cure_ucb.two_arm",
        "CURE-UCB paper: an early peaker and a late bloomer (Fig. 1)",
    ),
}


def main(argv: list[str] | None = None) -> None:
    """Run the suite that the arguments name."""
    listing = "\n".join(f"  {name:10} {what}" for name, (_, what) in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Suites:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=sorted(SUITES), metavar="SUITE")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="within two minutes")
    scale.add_argument("--full", action="store_true", help="at the papers' own scale")
    parser.add_argument(
        "--data-dir", type=Path, help="where data sets are; default: RISINGSEARCH_DATA"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("benchmark-results"), help="where results go"
    )
    parser.add_argument("--jobs", type=int, help="threads; default: one per processor")
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition")
    parser.add_argument(
        "--mode",
        choices=("replay", "live"),
        help="imdb: recorded curves or learners trained live; default: both",
    )
    parser.add_argument(
        "--clicks",
        type=Path,
        metavar="FILE",
        help="smooth: a log with the columns timestamp,item,click; default: synthetic",
    )
    arguments = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if arguments.data_dir is None and "RISINGSEARCH_DATA" in os.environ:
        arguments.data_dir = Path(os.environ["RISINGSEARCH_DATA"])
    out = arguments.out / arguments.suite
    out.mkdir(parents=True, exist_ok=True)
    module, _ = SUITES[arguments.suite]
    suite = importlib.import_module(f"benchmarks.{module}")
    chosen = "quick" if arguments.quick else "full" if arguments.full else "default"
    options = {
        "data_dir": arguments.data_dir,
        "jobs": arguments.jobs,
        "mode": arguments.mode,
        "clicks": arguments.clicks,
    }
    taken = inspect.signature(suite.run).parameters
    begin = time.perf_counter()
    suite.run(
        out,
        scale=chosen,
        seed=arguments.seed,
        **{name: value for name, value in options.items() if name in taken},
    )
    print(f"{time.perf_counter() - begin:.0f} s; see {out}")


if __name__ == "__main__":
    main()
