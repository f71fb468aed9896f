"""Run one suite: ``python -m benchmarks SUITE [--quick | --full] [--out DIR] ...``."""

from __future__ import annotations

import importlib
import inspect
import os
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Suite(NamedTuple):
    """The module whose ``run`` plays a suite, and what the suite shows."""

    module: str
    shows: str


SUITES = {
    "concave": Suite(
        "benchmarks.papers.cure_ucb.concave",
        "CURE-UCB paper: late bloomers against early peakers (Figs. 5, 9, 11)",
    ),
    "demo": Suite(
        "benchmarks.demo.suite",
        "the searches of `risingsearch demo`, with more seeds: the README's table",
    ),
    "gpu": Suite(
        "benchmarks.cost.gpu",
        "what a paused run costs on a GPU: its bits, its memory, its time",
    ),
    "hpo": Suite(
        "benchmarks.hpo.suite",
        "epoch schedulers replayed on recorded learning curves",
    ),
    "imdb": Suite(
        "benchmarks.papers.cure_ucb.imdb.suite",
        "CURE-UCB paper: online model selection on reviews (Figs. 6, 7)",
    ),
    "ltf": Suite(
        "benchmarks.papers.cure_ucb.ltf",
        "CURE-UCB paper: linear-then-flat arms (Figs. 4, 8, 10)",
    ),
    "optuna": Suite(
        "benchmarks.adapters.optuna.suite",
        "RisingSampler beside Optuna's pruners, through study.optimize",
    ),
    "overhead": Suite(
        "benchmarks.cost.overhead",
        "what scheduling costs, and what a search costs above its training",
    ),
    "peers": Suite(
        "benchmarks.peers.suite",
        "RisingSearchCV beside scikit-learn, Optuna, dask-ml, Ray Tune, Syne Tune",
    ),
    "raven": Suite(
        "benchmarks.papers.raven.suite",
        "RAVEN-UCB paper: regret reduction, sensitivity, logistics (Figs. 2-5)",
    ),
    "ray": Suite(
        "benchmarks.adapters.ray",
        "RisingScheduler in Ray Tune beside RisingSearch, two at a time",
    ),
    "reliability": Suite(
        "benchmarks.spaces.reliability",
        "problems of 56 kinds: worst seeds, and where others are ahead",
    ),
    "rotting": Suite(
        "benchmarks.papers.rotting.suite",
        "rotting bandits paper: NP, AV, ANV (Fig. 1, Table 1, grid searches)",
    ),
    "rows": Suite(
        "benchmarks.adapters.rows",
        "RisingSearchCV by training rows, beside scikit-learn's halving search",
    ),
    "scaling": Suite(
        "benchmarks.cost.scaling.suite",
        "what one controller can drive: 10,000 workers, simulated",
    ),
    "smooth": Suite(
        "benchmarks.papers.smooth.suite",
        "smooth non-stationary bandits paper: sinusoids, clicks (Figs. 3-6)",
    ),
    "soak": Suite(
        "benchmarks.cost.soak.suite",
        "long searches with failures and kills: what grows, and what does not",
    ),
    "spaces": Suite(
        "benchmarks.spaces.suite",
        "continuous spaces, searched beside Optuna's samplers",
    ),
    "speed": Suite(
        "benchmarks.cost.speed.suite",
        "steps per second of every policy, beside other libraries and C",
    ),
    "transfer": Suite(
        "benchmarks.transfer.suite",
        "searches that learn from earlier ones, on recorded tasks",
    ),
    "two-arm": Suite(
        "benchmarks.papers.cure_ucb.two_arm",
        "CURE-UCB paper: an early peaker and a late bloomer (Fig. 1)",
    ),
    "winner": Suite(
        "benchmarks.adapters.winner",
        "corrected scores of winners beside their scores on new rows",
    ),
}


def main(argv: list[str] | None = None) -> None:
    """Run the suite that the arguments name."""
    arguments = parser().parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    out = arguments.out / arguments.suite
    out.mkdir(parents=True, exist_ok=True)
    module = importlib.import_module(SUITES[arguments.suite].module)
    begin = time.perf_counter()
    module.run(
        out,
        scale="quick" if arguments.quick else "full" if arguments.full else "default",
        seed=arguments.seed,
        **accepted(module.run, arguments),
    )
    print(f"{time.perf_counter() - begin:.0f} s; see {out}")


def accepted(run: Callable[..., None], arguments: Namespace) -> dict[str, Any]:
    """Return those of the optional arguments that a suite has a use for."""
    data_dir = arguments.data_dir
    if data_dir is None and "RISINGSEARCH_DATA" in os.environ:
        data_dir = Path(os.environ["RISINGSEARCH_DATA"])
    options = {
        "data_dir": data_dir,
        "jobs": arguments.jobs,
        "seeds": arguments.seeds,
        "kinds": arguments.kinds,
        "methods": arguments.methods,
        "budgets": arguments.budgets,
        "mode": arguments.mode,
        "clicks": arguments.clicks,
        "leave_family_out": arguments.leave_family_out,
    }
    taken = inspect.signature(run).parameters
    return {name: value for name, value in options.items() if name in taken}


def parser() -> ArgumentParser:
    """Return the parser of the command line."""
    listing = "\n".join(f"  {name:10} {suite.shows}" for name, suite in SUITES.items())
    parser = ArgumentParser(
        prog="python -m benchmarks",
        description=f"Suites:\n{listing}",
        formatter_class=RawDescriptionHelpFormatter,
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
    parser.add_argument("--seeds", type=int, help="demo, reliability: how many of them")
    parser.add_argument("--kinds", nargs="+", help="reliability: kinds of problems")
    parser.add_argument("--methods", nargs="+", help="reliability: searches")
    parser.add_argument(
        "--budgets", nargs="+", type=int, help="reliability: in full trainings"
    )
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
    parser.add_argument(
        "--leave-family-out",
        action="store_true",
        help="hpo: judge each family by constants that were chosen without it",
    )
    return parser


if __name__ == "__main__":
    main()
