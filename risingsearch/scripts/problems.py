"""Errors in a sweep's file as sentences: the place, the rule and the value."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from risingsearch.errors import missing

try:
    from pydantic import ValidationError
except ModuleNotFoundError as error:
    raise missing("pydantic", "cli") from error

SHOWN = 5  # problems in a message
LONGEST = 500  # characters of each
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is no key of a sweep here",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be text, in quotes where it looks like something else",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "literal_error": "must be {expected}",
    "greater_than": "must be greater than {gt:.10g}",
    "greater_than_equal": "must be at least {ge:.10g}",
    "less_than": "must be less than {lt:.10g}",
    "less_than_equal": "must be at most {le:.10g}",
    "union_tag_not_found": "needs a type",
    "union_tag_invalid": "has the type {tag!r}, and must have one of {expected_tags}",
}
"""Messages for validation errors, by the type of the error."""


def problems_of(
    error: ValidationError, tagged: Mapping[str, int], keys: Mapping[str, Sequence[str]]
) -> str:
    """Return all problems in one sentence each.

    ``tagged`` says which part of a place is no key of the file, by the first part;
    ``keys`` are those that the file may have, by the place that has them.
    """
    shown = list(islice(_problems(error, tagged, keys), SHOWN + 1))
    if len(shown) > SHOWN:
        shown[SHOWN:] = ["and more"]
    return "; ".join(shown)


def _problems(
    error: ValidationError, tagged: Mapping[str, int], keys: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        place = [str(part) for part in problem["loc"]]
        if place and (tag := tagged.get(place[0])):
            del place[tag : tag + 1]
        given = problem.get("input")
        shown = cut(json.dumps(given, default=str)) if _is_small(given) else ""
        where = cut(".".join(place))
        words = cut(_in_words(problem))
        if problem["type"] == "extra_forbidden":
            known = keys.get(".".join(place[:-1]), ())
            meant = difflib.get_close_matches(place[-1].lower(), known, n=1)
            inside = [at for at, names in keys.items() if at and place[-1] in names]
            if meant:
                words += f" (did you mean {meant[0]}?)"
            elif inside:
                words += f" (it stands below {inside[0]})"
        if problem["type"] == "value_error":
            named = f"{where}: " if where else ""
        else:
            named = f"{where or 'the file'} "
        yield f"{named}{words}{f'; got {shown}' if shown else ''}"


def _in_words(problem: Mapping[str, Any]) -> str:
    words = _WORDS.get(problem["type"])
    if words is None:
        return str(problem["msg"]).removeprefix("Value error, ")
    return words.format(**problem.get("ctx", {}))


def cut(text: str) -> str:
    """Return a text that is short enough for a message."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _is_small(value: Any) -> bool:
    return value is not None and not isinstance(value, (dict, list))
