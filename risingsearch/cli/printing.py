"""Printing of facts, as JSON or as lines for a terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from risingsearch.cli.options import one_line

if TYPE_CHECKING:
    from risingsearch.search.results import SearchResult

IN_JSON = (
    "state",
    "spent",
    "training",
    "seconds_left",
    "failures_tried_again",
    "trust_in_prior",
    "opened_by_prior",
)
"""Facts that are not among the lines, or not as they are."""


def print_json(value: object, file: TextIO | None = None) -> None:
    """Print a value as JSON, and as text if JSON cannot hold it."""
    text = json.dumps(
        _strict(value),
        indent=2,
        allow_nan=False,
    )
    print(text, file=file or sys.stdout)


def _strict(value: object) -> object:
    if value is ...:
        return "required"
    if isinstance(value, Mapping):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    if hasattr(value, "item"):  # a number of numpy
        return _strict(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(float(value))
    return value if value is None or isinstance(value, (str, int)) else repr(value)


def print_facts(
    facts: Mapping[str, object],
    *,
    as_json: bool,
    result: SearchResult | None = None,
) -> None:
    """Print facts as JSON; or as lines, with those of a result on earlier searches."""
    if as_json:
        print_json(facts)
        return
    lines = dict(_lines(facts))
    if result is not None:
        from risingsearch.plotting.html_report import prior_facts

        lines |= prior_facts(result)
    width = max(map(len, lines))
    for name, value in lines.items():
        print(f"{name:{width}}  {value}")


def _lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the facts that have a value, as text."""
    for name, value in facts.items():
        if name in IN_JSON or value is None or value == {}:
            continue
        match name:
            case "best_score" if facts["best_arm"] is None:
                value = "none"
            case "best_epoch" if facts["best_arm"] is None:
                continue
            case "metric" | "first_failure":
                value = one_line(value)
            case "budget":
                from risingsearch.budget import in_words

                [(unit, total)] = value.items()
                value = f"{facts['spent']:.6g} of {total:.6g} {in_words(unit)}"
            case "failures" if facts["failures_tried_again"]:
                value = f"{value} ({facts['failures_tried_again']} of them tried again)"
            case "gpus":
                from risingsearch.search.gpus import gpus_text

                value = gpus_text(value)
            case "arms":
                value = ", ".join(f"{n} {status}" for status, n in value.items())
            case "earlier_searches":
                from risingsearch.checks import on_one_line

                value = ", ".join(map(on_one_line, value))
        yield name.replace("_", " "), value
