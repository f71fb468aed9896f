"""The commands by which programs drive the search of a sweep: ask and tell."""

from __future__ import annotations

import argparse
import re
from functools import partial
from typing import TYPE_CHECKING

from risingsearch.cli.best import in_shell
from risingsearch.cli.options import (
    add_json,
    add_run_command,
    check_file,
    distance,
    sweep_path,
    whole,
)
from risingsearch.cli.printing import print_facts
from risingsearch.cli.status import facts_of, how_to_ask

if TYPE_CHECKING:
    from risingsearch.json_values import Json
    from risingsearch.search.results import SearchResult

number = partial(whole, low=0)
NEGATIVE = re.compile(r"-(\d*\.?\d+([eE][-+]?\d+)?|\d+\.|inf)")
"""Scores that are no options, also with an exponent, which argparse does not know."""


def add_ask_and_tell(commands: object) -> None:
    """Add the commands to a parser's."""
    ask = add_run_command(
        commands, "ask", _ask, "give a program the next job of a sweep, to train it"
    )
    ask.add_argument(
        "--sweep",
        type=sweep_path,
        metavar="SWEEP.yaml",
        help="begin this search if there is none in RUN",
    )
    ask.add_argument(
        "--again",
        type=number,
        metavar="JOB",
        help="give this job again, whose program has died",
    )
    add_json(ask)
    tell = add_run_command(commands, "tell", _tell, "record the scores of a job")
    tell._negative_number_matcher = NEGATIVE
    tell.add_argument("job", type=number, metavar="JOB", help="its number, from ask")
    tell.add_argument(
        "scores",
        type=float,
        nargs="*",
        metavar="SCORE",
        help="one of each epoch; with fewer the arm ends there",
    )
    tell.add_argument(
        "--seconds",
        type=distance,
        metavar="S",
        help="of training (default: the time since ask)",
    )
    tell.add_argument(
        "--cost", type=distance, metavar="C", help="of the job, for a budget in cost"
    )
    tell.add_argument("--failed", metavar="WHY", help="the job has failed")
    add_json(tell)


def _ask(arguments: argparse.Namespace) -> None:
    sweep = None
    if arguments.sweep is not None:
        check_file(arguments.sweep)
        from risingsearch.scripts.sweep import read_sweep

        sweep = read_sweep(arguments.sweep)
    from risingsearch.scripts.asked import ask

    asked = ask(arguments.run_dir, sweep, arguments.again)
    facts: Json = {"run": str(arguments.run_dir), "job": None}
    in_training = [*asked.in_training, *([asked.job] if asked.job else [])]
    if asked.job is not None and asked.launch is not None:
        job = asked.job
        arm = asked.result.arms[job.arm]
        variables = asked.launch.variables
        facts |= {
            "job": job.id,
            "arm": job.arm,
            "params": arm.params,
            "seed": arm.seed,
            "from_epoch": job.from_epoch,
            "epochs": job.n_epochs,
            "to_epoch": job.from_epoch + job.n_epochs,
            "checkpoint_dir": variables["RISINGSEARCH_CHECKPOINT_DIR"],
            "command": in_shell(asked.sweep, asked.launch),
        }
    facts |= {
        "reason": asked.reason,
        "index": asked.parts,
        "done": asked.is_done,
        "in_training": [job.id for job in asked.in_training],
        **_spent(asked.result),
        "epochs_in_training": sum(job.n_epochs for job in in_training),
    }
    print_facts(facts, as_json=arguments.json)


def _tell(arguments: argparse.Namespace) -> None:
    from risingsearch.scripts.asked import Told, tell
    from risingsearch.search.results import UNFINISHED

    told = Told(arguments.scores, arguments.seconds, arguments.cost, arguments.failed)
    job, result = tell(arguments.run_dir, arguments.job, told)
    facts = facts_of(result, arguments.run_dir) | {"job": job.id, "arm": job.arm}
    facts["why"] = result.arms[job.arm].reason
    if result.stop_reason == UNFINISHED:
        facts["stop_reason"] = f"none: {how_to_ask(arguments.run_dir)}"
    print_facts(facts, as_json=arguments.json)


def _spent(result: SearchResult) -> Json:
    assert result.budget is not None
    return {
        "budget": {result.budget.unit: result.budget.amount},
        "spent": result.spent,
        "best_arm": result.best_arm,
        "best_score": result.best_score,
        "best_epoch": result.best_epoch,
    }
