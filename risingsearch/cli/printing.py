"""Printing of facts, as JSON or as lines for a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from risingsearch.cli.options import one_line

IN_JSON = (
    "state",
    "spent",
    "training",
    "in_training",
    "index",
    "done",
    "seconds_left",
    "failures_tried_again",
    "trust_in_prior",
    "opened_by_prior",
    "corrected_score",
    "corrected_interval",
    "corrected_source",
    "tied",
    "repeats",
)
"""Facts that are not among the lines, or not as they are."""


def print_json(value: object, file: TextIO | None = None) -> None:
    """Print a value as JSON, and as text if JSON cannot hold it."""
    text = json.dumps(value, default=_as_known_to_json)
    strict = json.loads(text, parse_constant=lambda name: repr(float(name)))
    print(json.dumps(strict, indent=2), file=file or sys.stdout)


def _as_known_to_json(value: Any) -> object:
    if value is ...:
        return "required"
    return value.item() if hasattr(value, "item") else repr(value)  # of numpy, or other


def print_facts(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print facts as JSON; or as lines, with those on earlier searches at the end."""
    if as_json:
        print_json(facts)
        return
    lines: dict[str, Any] = dict(_lines(facts))
    if trust := facts.get("trust_in_prior"):
        from risingsearch.plotting.html_report import prior_facts

        lines |= prior_facts(trust, facts["opened_by_prior"])
    width = max(map(len, lines))
    for name, value in lines.items():
        for line in _as_text(value).split("\n"):
            print(f"{name:{width}}  {line}")
            name = ""


def _as_text(value: object) -> str:
    """Return a value as a sweep's file writes it, a configuration per line.

    Examples
    --------
    >>> print(_as_text([{"rate": 1 / 3, "layers": [64, 64]}, {"bias": True}]))
    rate 0.333333, layers [64, 64]
    bias true
    """
    match value:
        case bool() | None:
            return json.dumps(value)
        case float():
            return f"{value:.6g}"
        case Mapping():
            return ", ".join(
                f"{one_line(name)} {_bracketed(value[name])}" for name in value
            )
        case [Mapping(), *_]:
            return "\n".join(map(_as_text, value))
        case list():
            return ", ".join(map(_bracketed, value))
    return one_line(str(value))


def _bracketed(value: object) -> str:
    text = _as_text(value)
    return f"[{text}]" if isinstance(value, list) else text


def _lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the facts that have a value, as text."""
    for name, value in facts.items():
        if name in IN_JSON or value in (None, "") or value == {}:
            continue
        match name:
            case "best_score" if facts["best_arm"] is None:
                value = "none"
            case "best_epoch" if facts["best_arm"] is None:
                continue
            case "share_of_training_all" | "share_of_time_starting":
                value = f"{100 * value:.3g} %"
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
