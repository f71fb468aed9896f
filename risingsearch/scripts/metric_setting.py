"""The score of a sweep: the key of a report, or what a pattern finds in output."""

from __future__ import annotations

import re
from typing import Any

from risingsearch.errors import missing

try:
    from pydantic import field_validator
except ModuleNotFoundError as error:
    raise missing(str(error.name), "cli") from error

from risingsearch.scripts.readers import SCORE
from risingsearch.scripts.space import Strict


class PlainMetric(Strict):
    """A score that is read from what a script prints, whatever that is."""

    regex: str

    @field_validator("regex")
    @classmethod
    def _finds_a_number(cls, value: str) -> str:
        try:
            pattern = re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            msg = f"it is no regular expression of Python ({error})"
            raise ValueError(msg) from error
        if SCORE not in pattern.groupindex and pattern.groups != 1:
            msg = (
                "it has one group, around the number, as in 'accuracy: ([0-9.]+)', or "
                f"one with the name score, (?P<score>...); this has {pattern.groups}"
            )
            raise ValueError(msg)
        return value

    @property
    def pattern(self) -> re.Pattern[str]:
        """As a trainable takes it."""
        return re.compile(self.regex)


def form_of_metric(value: Any) -> str:
    """Return which of the two a value is."""
    return "pattern" if isinstance(value, dict | PlainMetric) else "key"
