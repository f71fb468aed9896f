"""The command line's parser, its exit codes, and the lists of names."""

import argparse
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import risingsearch
from risingsearch.cli import options
from risingsearch.cli.asking import add_ask_and_tell
from risingsearch.cli.best import add_best
from risingsearch.cli.export import add_report_and_export
from risingsearch.cli.listing import add_list
from risingsearch.cli.printing import print_json
from risingsearch.cli.simulate import add_simulate
from risingsearch.cli.status import add_status
from risingsearch.cli.sweeps import add_sweeps
from risingsearch.cli.watch import add_watch
from risingsearch.errors import RisingSearchError, SearchFailedError, needed

DONE = 0
BAD_INPUT = 2
SEARCH_FAILED = 3
INTERRUPTED = 130

COLUMN: dict[str, Any] = {
    "width": 79,
    "initial_indent": "    ",
    "subsequent_indent": "    ",
    "break_on_hyphens": False,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default that of the process; return its exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command is None:
        parser.print_help(sys.stderr)
        return BAD_INPUT
    try:
        with options.plain_warnings():
            arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # what Python writes when it ends goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SearchFailedError as error:
        return _failed(error, SEARCH_FAILED)
    except RisingSearchError as error:
        return _failed(error, BAD_INPUT)
    except KeyboardInterrupt as error:
        print(f"risingsearch: {str(error) or 'interrupted'}", file=sys.stderr)
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
        help="show the version and exit",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    demo = options.add_command(
        commands,
        "demo",
        _demo,
        "run a small search beside others, and draw where its epochs went",
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder of the figures, made if missing (default: the current one)",
    )
    options.add_seed(demo)
    space = options.add_command(
        commands,
        "space",
        _space,
        "print the curated space of an estimator, to edit: for Python and for a sweep",
    )
    space.add_argument("estimator", metavar="ESTIMATOR", help="such as LGBMClassifier")
    options.add_json(space)
    add_sweeps(commands)
    add_watch(commands)
    add_status(commands)
    add_list(commands)
    add_best(commands)
    add_report_and_export(commands)
    add_ask_and_tell(commands)
    space = options.add_command(
        commands,
        "space",
        _space,
        "print the curated space of an estimator, to edit: for Python and for a sweep",
    )
    space.add_argument("estimator", metavar="ESTIMATOR", help="such as LGBMClassifier")
    options.add_json(space)
    add_simulate(commands)
    lists = {
        "policies": "the policies: what they do, where they come from, what they take",
        "environments": "the environments that simulate knows by name",
    }
    for name, what in lists.items():
        options.add_json(options.add_command(commands, name, _list, f"list {what}"))
    completion = options.add_command(
        commands, "completion", _completion, "print the completion of a shell"
    )
    completion.add_argument(
        "shell",
        choices=("bash", "zsh", "tcsh", "fish"),
        help='as in: eval "$(risingsearch completion bash)"',
    )
    return parser


def _list(arguments: argparse.Namespace) -> None:
    """Print names beside their summary, paper with kind, and parameters."""
    from risingsearch.curves import list_environments
    from risingsearch.policies import list_policies, resolve_policy

    is_policies = arguments.command == "policies"
    infos: list[Any] = list_policies() if is_policies else list_environments()
    if arguments.json:
        print_json([info._asdict() for info in infos])
        return
    for info in infos:
        parameters = [
            name if value is ... else f"{name}={value}"
            for name, value in info.parameters.items()
        ]
        kind = info.provenance if is_policies else info.setting
        print(info.name)
        for line in (
            info.summary.replace("``", ""),
            f"{info.paper} ({kind})",
            f"parameters: {', '.join(parameters) or 'none'}",
        ):
            print(*textwrap.wrap(line, **COLUMN), sep="\n")
        print()
    if is_policies:
        auto = resolve_policy("auto")
        print(f"auto is {auto}; for the largest sum of scores, name cure-ucb.")


def _completion(arguments: argparse.Namespace) -> None:
    with needed("shtab", "cli"):
        import shtab
    print(shtab.complete(_parser(), arguments.shell))


def _space(arguments: argparse.Namespace) -> None:
    """Print a parameter on a line, in words that Python and YAML share."""
    from risingsearch.space.by_name import space_of

    space = space_of(arguments.estimator)
    if arguments.json:
        print_json(space)
        return
    lines = [f"  {name!r}: {form!r}," for name, form in space.items()]
    print("{", *lines, "}", sep="\n")


def _demo(arguments: argparse.Namespace) -> None:
    from risingsearch.cli.demo import run_demo

    run_demo(out=arguments.out, seed=arguments.seed)


def _failed(error: RisingSearchError | str, code: int) -> int:
    print(f"risingsearch: {options.one_line(str(error))}", file=sys.stderr)
    return code
