"""How a line of a script becomes the report of an epoch: JSON, or a pattern in it."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from risingsearch.errors import ScriptError
from risingsearch.scripts.lines import LONGEST, Line

SHOWN = 200  # characters of a line in a message
DEEPEST = 32  # objects and lists inside each other in a report
LARGEST = 2**1023  # a whole number in a report; what follows does not fit a float
MOST_KEYS = 20  # in a message
SEARCHED = 2_000  # characters of a line: some patterns take their square in time
SCORE, EPOCH = "score", "epoch"


class JsonLines:
    """Reads lines of JSON that have the metric; it recalls the keys of the others.

    >>> reader = JsonLines("accuracy")
    >>> reader.read(Line('{"epoch": 1, "accuracy": 0.5}'))
    {'epoch': 1, 'accuracy': 0.5}
    >>> reader.read(Line('{"epoch": 2, "acc": 0.6}'))
    >>> reader.missed
    "no line of JSON with an epoch and 'accuracy'; the keys seen were epoch, acc"
    """

    reads_errors = False

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self._seen: dict[str, None] = {}

    def read(self, line: Line) -> dict[str, Any] | None:
        """Return the report in a line, None if it holds none."""
        record = _json_report(line, self.metric)
        if record is not None and self.metric not in record:
            for key in record:
                if len(self._seen) < MOST_KEYS:
                    self._seen[key[:SHOWN]] = None
            return None
        return record

    @property
    def missed(self) -> str:
        """What a script without a report has not printed."""
        msg = f"no line of JSON with an epoch and {self.metric!r}"
        seen = ", ".join(self._seen)
        return f"{msg}; the keys seen were {seen}" if seen else msg


class PlainLines:
    """Reads the number that a pattern finds in a line, wherever it is printed.

    Every match is an epoch, the one after the last, unless the group ``epoch`` says
    which.

    >>> reader = PlainLines(re.compile("accuracy: ([0-9.]+)"))
    >>> reader.read(Line("validation accuracy: 0.75 (best)"))
    {'epoch': 1, 'score': 0.75}
    >>> reader.read(Line("accuracy is better"))
    """

    reads_errors = True  # where logging goes
    metric = SCORE

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._group = SCORE if SCORE in pattern.groupindex else 1
        self._n_matches = 0

    def read(self, line: Line) -> dict[str, Any] | None:
        """Return the report in a line, None if it holds none."""
        found = self._pattern.search(line.text[-SEARCHED:])
        if found is None:
            return None
        self._n_matches += 1
        epoch: Any = self._n_matches
        if EPOCH in self._pattern.groupindex:
            epoch = _number(found[EPOCH], line)
            epoch = int(epoch) if epoch.is_integer() else epoch
        return {EPOCH: epoch, SCORE: _number(found[self._group], line)}

    @property
    def missed(self) -> str:
        """What a script without a report has not printed."""
        return f"no line in which {self._pattern.pattern!r} finds a number"


Reader = JsonLines | PlainLines


def reader_of(metric: str | re.Pattern[str]) -> Reader:
    """Return what reads the lines of one script."""
    return JsonLines(metric) if isinstance(metric, str) else PlainLines(metric)


def _number(text: str | None, line: Line) -> float:
    try:
        return float(text or "")
    except ValueError:
        msg = (
            f"the metric's pattern finds {(text or '')[:SHOWN]!r}, which is no number, "
            f"in {line.text.strip()[:SHOWN]!r}"
        )
        raise ScriptError(msg) from None


class _UnusableError(ValueError):
    """JSON that cannot be kept."""


def _json_report(line: Line, metric: str) -> dict[str, Any] | None:
    """Return the object in a line, None if there is none that can be meant."""
    text = line.text.strip()
    if not text.startswith("{") or not line.begins:
        return None
    if not line.ends or len(text) > LONGEST:
        msg = (
            f"the script reports a line of more than {LONGEST:,} characters: "
            f"{text[:SHOWN]!r}"
        )
        raise ScriptError(msg)
    try:
        record: dict[str, Any] = json.loads(
            text, object_pairs_hook=_checked_pairs, parse_int=_checked_int
        )
        if metric not in record:
            return record
        _check_depth(record)
        _check_text(record)
    except (ValueError, RecursionError) as error:
        if f'"{metric}"' not in text:
            return None
        what = "what is no JSON"
        if isinstance(error, RecursionError):
            what = _TOO_DEEP
        if isinstance(error, _UnusableError):
            what = str(error)
        msg = f"the script reports {what}: {text[:SHOWN]!r}"
        raise ScriptError(msg) from error
    return record


def _checked_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = Counter(name for name, _ in pairs).most_common(1)[0][0]
        msg = f"{name[:SHOWN]!r} twice in one line"
        raise _UnusableError(msg)
    return found


def _checked_int(text: str) -> int:
    if len(text) > 310 or abs(int(text)) > LARGEST:
        msg = f"a number of {len(text)} digits, which is too large"
        raise _UnusableError(msg)
    return int(text)


def _check_text(record: dict[str, Any]) -> None:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        msg = "text with half a character, which no file can hold"
        raise _UnusableError(msg) from error


_TOO_DEEP = f"objects or lists more than {DEEPEST} deep"


def _check_depth(record: dict[str, Any]) -> None:
    level: list[Any] = [record]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise _UnusableError(_TOO_DEEP)
