"""The command line: ``risingsearch demo``, ``simulate`` and the lists of names."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import risingsearch
from risingsearch.cli.json_output import print_json
from risingsearch.cli.sweeps import add_commands
from risingsearch.errors import (
    ExecutorFailedError,
    InvalidParameterError,
    RisingSearchError,
    SearchFailedError,
    unknown_name,
)

DONE = 0
BAD_INPUT = 2
SEARCH_FAILED = 3
INTERRUPTED = 130

WIDTH = 79
HARD_SPACE = "\N{NO-BREAK SPACE}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code: 0 done, 2 bad input, 3 the search failed, 130 interrupted.

    Raises
    ------
    SystemExit
        Where argparse ends the program itself: for ``--help``, ``--version`` and
        arguments that do not parse.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    try:
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; Python flushes once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SearchFailedError, ExecutorFailedError) as error:
        return _failed(error, SEARCH_FAILED)
    except RisingSearchError as error:
        return _failed(error, BAD_INPUT)
    except KeyboardInterrupt:
        print("risingsearch: interrupted", file=sys.stderr)
        return INTERRUPTED
    return DONE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="risingsearch",
        description="Decide which training run deserves the next epoch.",
        epilog="exit codes: 0 done, 2 bad input, 3 the search failed, 130 interrupted",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"risingsearch {risingsearch.__version__}",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    policies = commands.add_parser(
        "policies",
        help="list the policies: what they do, where they come from, what they take",
        description="List the policies that decide which arm trains next.",
    )
    policies.add_argument("--json", action="store_true", help="print JSON")
    policies.set_defaults(run=_policies)

    environments = commands.add_parser(
        "environments",
        help="list the environments that simulate knows by name",
        description="List the environments that simulate knows by name.",
    )
    environments.add_argument("--json", action="store_true", help="print JSON")
    environments.set_defaults(run=_environments)

    _add_simulate(commands)

    demo = commands.add_parser(
        "demo",
        help="run a small search and draw where its epochs went",
        description="Run a small search and draw where its epochs went.",
    )
    demo.add_argument(
        "--out",
        type=_folder,
        default=Path(),
        metavar="DIR",
        help="folder of the figures, made if missing (default: the current one)",
    )
    demo.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of everything random, from 0 (default: 0)",
    )
    demo.add_argument(
        "--json", action="store_true", help="print JSON; progress goes to stderr"
    )
    demo.set_defaults(run=_demo)
    add_commands(commands)
    return parser


def _add_simulate(commands: Any) -> None:
    simulate = commands.add_parser(
        "simulate",
        help="compare policies in an environment, or on your own recorded curves",
        description=textwrap.dedent(
            """\
            Compare policies on paper.

            In a named environment (see: risingsearch environments): their mean regret
            and their average rank.

            On recorded curves, a CSV, npz or parquet file of the score of every
            configuration at every epoch: the score that a search would have ended
            with, and which policy and budget would have been enough."""
        ),
        epilog=textwrap.dedent(
            """\
            examples:
              risingsearch simulate ltf --horizon 10000,50000
              risingsearch simulate two-arm --policies 'cure-ucb(sigma=0.1), ucb1'
              risingsearch simulate curves.csv
              risingsearch simulate losses.npz --minimize --budget 100,200,400"""
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    simulate.add_argument(
        "target",
        metavar="NAME|FILE",
        help="an environment, or a file of curves (./NAME for a file of such a name)",
    )
    simulate.add_argument(
        "--horizon",
        "--budget",
        type=_numbers,
        metavar="N,N",
        help="rounds, or epochs over all configurations; one number or several "
        "(default: 10000,50000; or 1, 2, 5, 10, 20 times the longest curve)",
    )
    simulate.add_argument(
        "--policies",
        metavar="A,B",
        help="names, with parameters in parentheses: 'asha(eta=4), auto' "
        "(default: a handful that suits)",
    )
    simulate.add_argument(
        "--runs",
        type=_count,
        default=100,
        metavar="N",
        help="runs, each with other luck (default: 100)",
    )
    simulate.add_argument(
        "--seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of everything random, from 0 (default: 0)",
    )
    simulate.add_argument(
        "--jobs",
        type=_count,
        metavar="N",
        help="threads (default: one per processor)",
    )
    simulate.add_argument("--json", action="store_true", help="print JSON")
    named = simulate.add_argument_group("environments only")
    named.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the environment, e.g. noise=0.1; may be repeated",
    )
    recorded = simulate.add_argument_group("recorded curves only")
    recorded.add_argument(
        "--minimize", action="store_true", help="the scores are losses"
    )
    recorded.add_argument(
        "--noise",
        type=_distance,
        metavar="SD",
        help="standard deviation of validation noise on top of the scores (default: 0)",
    )
    recorded.add_argument(
        "--within",
        type=_distance,
        metavar="D",
        help="how near to the best recorded score is enough, in its unit (default: a "
        "twentieth of the way to it from the best of the median configuration)",
    )
    simulate.set_defaults(run=_simulate)


def _folder(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        msg = f"must be a folder; {text!r} is a file"
        raise argparse.ArgumentTypeError(msg)
    return path


def _seed(text: str) -> int:
    if not text.isdecimal():
        msg = f"must be a whole number of at least 0; got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        msg = f"must be a whole number of at least 1; got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _numbers(text: str) -> list[int]:
    return sorted({_count(number.strip()) for number in text.split(",")})


def _distance(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0.0 <= float(text) < math.inf:
            return float(text)
    msg = f"must be a number of at least 0; got {text!r}"
    raise argparse.ArgumentTypeError(msg)


def _policies(arguments: argparse.Namespace) -> None:
    from risingsearch.policies import list_policies, resolve_policy

    infos = list_policies()
    if arguments.json:
        print_json([info._asdict() for info in infos])
        return
    for info in infos:
        source = f"{info.paper} ({info.provenance})"
        _print_entry(info, source, max(len(info.name) for info in infos))
    print(
        f"auto is {resolve_policy('auto', 'best')}; for the largest sum of scores, "
        f"{resolve_policy('auto', 'sum')}."
    )


def _environments(arguments: argparse.Namespace) -> None:
    from risingsearch.curves import list_environments

    infos = list_environments()
    if arguments.json:
        print_json([info._asdict() for info in infos])
        return
    for info in infos:
        source = f"{info.paper} ({info.setting})"
        _print_entry(info, source, max(len(info.name) for info in infos))


def _print_entry(info: Any, source: str, width: int) -> None:
    parameters = [
        name if value is ... else f"{name}={value}".replace(" ", HARD_SPACE)
        for name, value in info.parameters.items()
    ]
    lines = [
        info.summary.replace("``", ""),
        source,
        f"parameters: {', '.join(parameters) or 'none'}",
    ]
    indent = width + 2
    column = "\n".join(textwrap.fill(line, WIDTH - indent) for line in lines)
    entry = info.name + textwrap.indent(column, " " * indent)[len(info.name) :]
    print(entry.replace(HARD_SPACE, " "))
    print()


def _simulate(arguments: argparse.Namespace) -> None:
    from risingsearch.simulation import reports

    recorded = _is_file(arguments.target)
    if sys.stderr.isatty():
        note = "a policy takes some seconds to compile when it plays for the first time"
        print(f"risingsearch: {note}", file=sys.stderr)
    with _plain_warnings():
        if recorded:
            report = _on_recorded_curves(arguments)
            lines = reports.recorded_lines(report)
        else:
            report = _in_environment(arguments)
            lines = reports.environment_lines(report)
    if arguments.json:
        print_json(report)
        return
    for line in lines:
        print(line)


def _is_file(target: str) -> bool:
    from risingsearch.curves import list_environments

    names = [info.name for info in list_environments()]
    if target in names:
        return False
    if Path(target).is_file():
        return True
    if Path(target).suffix or os.sep in target:
        msg = f"there is no file {target!r}, and no environment of that name"
        raise InvalidParameterError(msg)
    raise unknown_name("environment or file", target, names)


def _in_environment(arguments: argparse.Namespace) -> dict[str, Any]:
    from risingsearch.simulation.calls import read_parameters
    from risingsearch.simulation.reports import environment_report

    given = {
        "--minimize": arguments.minimize,
        "--noise": arguments.noise is not None,
        "--within": arguments.within is not None,
    }
    _refuse(given, "recorded curves; an environment takes --param NAME=VALUE")
    with _of_option("--param"):
        parameters = read_parameters(arguments.param)
    return environment_report(
        arguments.target,
        _chosen_policies(arguments),
        arguments.horizon,
        arguments.runs,
        arguments.seed,
        arguments.jobs,
        parameters,
    )


def _on_recorded_curves(arguments: argparse.Namespace) -> dict[str, Any]:
    from risingsearch.curves import load_curves
    from risingsearch.simulation.reports import recorded_report

    _refuse({"--param": arguments.param}, "environments")
    return recorded_report(
        arguments.target,
        load_curves(arguments.target),
        _chosen_policies(arguments),
        arguments.horizon,
        arguments.runs,
        arguments.seed,
        arguments.jobs,
        noise=arguments.noise or 0.0,
        minimize=arguments.minimize,
        within=arguments.within,
    )


def _chosen_policies(
    arguments: argparse.Namespace,
) -> dict[str, tuple[str, dict[str, Any]]] | None:
    from risingsearch.simulation.calls import read_calls

    if arguments.policies is None:
        return None
    with _of_option("--policies"):
        return read_calls(arguments.policies)


def _refuse(given: Mapping[str, object], belongs_to: str) -> None:
    for option, value in given.items():
        if value:
            msg = f"{option} is for {belongs_to}"
            raise InvalidParameterError(msg)


@contextlib.contextmanager
def _of_option(option: str) -> Iterator[None]:
    try:
        yield
    except InvalidParameterError as error:
        msg = f"{option}: {error}"
        raise InvalidParameterError(msg) from error


@contextlib.contextmanager
def _plain_warnings() -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        print(f"risingsearch: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _demo(arguments: argparse.Namespace) -> None:
    from risingsearch.cli.demo import run_demo

    if not arguments.json:
        run_demo(out=arguments.out, seed=arguments.seed)
        return
    with contextlib.redirect_stdout(sys.stderr):
        result = run_demo(out=arguments.out, seed=arguments.seed)
    print_json(result)


def _failed(error: RisingSearchError, code: int) -> int:
    message = " ".join(str(error).split())
    print(f"risingsearch: {message}", file=sys.stderr)
    return code
