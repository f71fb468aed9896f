"""``risingsearch simulate``: policies compared on paper, before an epoch is spent."""

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from risingsearch.cli import options
from risingsearch.cli.printing import print_json
from risingsearch.errors import InvalidParameterError, unknown_name

DESCRIPTION = """\
Compare policies on paper.

In a named environment (see: risingsearch environments): their mean regret
and their average rank.

On recorded curves, a CSV, npz or parquet file of the score of every
configuration at every epoch: the score that a search would have ended
with, and which policy and budget would have been enough."""
EXAMPLES = """\
examples:
  risingsearch simulate ltf --horizon 10000,50000
  risingsearch simulate two-arm --policies 'cure-ucb(sigma=0.1), ucb1'
  risingsearch simulate curves.csv
  risingsearch simulate losses.npz --minimize --budget 100,200,400"""


def add_simulate(commands: Any) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "simulate",
        help="compare policies in an environment, or on your own recorded curves",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "target",
        metavar="NAME|FILE",
        help="an environment, or a file of curves (./NAME for a file of such a name)",
    )
    parser.add_argument(
        "--horizon",
        "--budget",
        type=options.counts,
        metavar="N,N",
        help="rounds, or epochs over all configurations; one number or several "
        "(default: 10000,50000; or 1, 2, 5, 10, 20 times the longest curve)",
    )
    parser.add_argument(
        "--policies",
        metavar="A,B",
        help="names, with parameters in parentheses: 'asha(eta=4), auto' "
        "(default: a handful that suits)",
    )
    parser.add_argument(
        "--runs",
        type=options.count,
        default=100,
        metavar="N",
        help="independent runs, each with its own seed (default: 100)",
    )
    options.add_seed(parser)
    parser.add_argument(
        "--jobs",
        type=options.count,
        metavar="N",
        help="threads (default: one per processor)",
    )
    options.add_json(parser)
    _add_options_of_one(parser)
    parser.set_defaults(run=_simulate)


def _add_options_of_one(parser: Any) -> None:
    parser.add_argument_group("environments only").add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the environment, e.g. noise=0.1; may be repeated",
    )
    curves = parser.add_argument_group("recorded curves only")
    curves.add_argument("--minimize", action="store_true", help="the scores are losses")
    curves.add_argument(
        "--noise",
        type=options.distance,
        metavar="SD",
        help="standard deviation of validation noise on top of the scores (default: 0)",
    )
    curves.add_argument(
        "--within",
        type=options.distance,
        metavar="D",
        help="how near to the best recorded score is enough, in its unit (default: a "
        "twentieth of the way to it from the best of the median configuration)",
    )


def _simulate(arguments: argparse.Namespace) -> None:
    from risingsearch.curves import load_curves
    from risingsearch.simulation import reports
    from risingsearch.simulation.calls import read_calls, read_parameters

    is_file = _is_file(arguments.target)
    on_terminal = sys.stderr.isatty()
    progress = on_terminal and importlib.util.find_spec("tqdm") is not None
    if on_terminal:
        note = "a policy takes some seconds to compile when it plays for the first time"
        print(f"risingsearch: {note}", file=sys.stderr)
    policies = None
    if arguments.policies:
        policies = _read(read_calls, arguments, "policies")
    shared = policies, arguments.horizon, arguments.runs, arguments.seed, arguments.jobs
    if is_file:
        _refuse(arguments, ("param",), "environments")
        curves = load_curves(arguments.target)
        report = reports.recorded_report(
            arguments.target,
            curves,
            *shared,
            noise=arguments.noise or 0.0,
            minimize=arguments.minimize or curves.direction == "minimize",
            within=arguments.within,
            progress=progress,
        )
        lines = reports.recorded_lines(report)
    else:
        of_curves = ("minimize", "noise", "within")
        instead = "recorded curves; an environment takes --param NAME=VALUE"
        _refuse(arguments, of_curves, instead)
        parameters = _read(read_parameters, arguments, "param")
        report = reports.environment_report(
            arguments.target, *shared, parameters, progress=progress
        )
        lines = reports.environment_lines(report)
    if arguments.json:
        print_json(report)
    else:
        print(*lines, sep="\n")


def _is_file(target: str) -> bool:
    from risingsearch.curves import list_environments

    names = [info.name for info in list_environments()]
    if target in names:
        return False
    if Path(target).is_file():
        return True
    if Path(target).is_dir():
        raise InvalidParameterError(
            f"{target} is a folder: write its run to a file, as by risingsearch export "
            f"{target} --out curves.csv, and give that file"
        )
    if Path(target).suffix or os.sep in target:
        raise InvalidParameterError(
            f"there is no file {target!r}, and no environment of that name"
        )
    raise unknown_name("environment or file", target, names)


def _refuse(
    arguments: argparse.Namespace, options: Sequence[str], belongs_to: str
) -> None:
    for option in options:
        value = getattr(arguments, option)
        if value not in (None, []) and value is not False:
            raise InvalidParameterError(f"--{option} is for {belongs_to}")


def _read(
    read: Callable[[Any], Any], arguments: argparse.Namespace, option: str
) -> Any:
    try:
        return read(getattr(arguments, option))
    except InvalidParameterError as error:
        raise InvalidParameterError(f"--{option}: {error}") from error
