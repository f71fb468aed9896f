"""Reports in the lines that a script prints: JSON, or a number that a pattern finds."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from risingsearch.errors import ScriptError, SetupError
from risingsearch.json_values import Json

SHOWN = 200  # characters of a line in a message
MOST_KEYS = 20  # in a message
SEARCHED = 2_000  # characters of a line: some patterns take their square in time
SCORE = "score"
EPOCH = "epoch"
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()]\w)"
)
"""Escape sequences of a terminal: colour, cursor."""
_OBJECT = re.compile(r'\{\s*"')
_NUMBER = (
    r"(?:[-+]?(?:\d\.#[A-Z]+\d*|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|"
    r"(?i:nan|inf(?:inity)?)(?!\w)))"
)
"""A number with its sign and exponent; 1.#QNAN is how some C libraries print NaN."""
_FIELDS = {"{number}": (SCORE, _NUMBER), "{epoch}": (EPOCH, r"\d+")}
_FIELD = re.compile(r"(\((?:\?P<\w+>)?)?(\{number\}|\{epoch\})")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)
_QUANTIFIER = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?|([*+?]|\{\d*,\d*\})([?+]?)", re.DOTALL
)
_MINUS = "\u2010-\u2015\u207b\u2212\ufe63\uff0d"  # what may be printed for a minus sign
_SPLITS = "'\u2019\u00a0\u202f\u2009"  # digits into groups of three
_POINTS = "\u00b7\u066b\u066c\u2396\u22c5\uff0c\uff0e"  # of a fraction, not as here
_BEGUN = re.compile(
    rf"(?:\d[._{_SPLITS}{_POINTS}]?|\d\.?[eE][-+]?"
    rf"|(?:^|[\s:=(\[|,;])(?:[-{_MINUS}]\.?|\.))$"
)
"""Text before a match that begins inside a number."""
_CONTINUES = re.compile(
    rf"[eE][-+]?\d|\s[eE][-+]\d|[._{_POINTS}]?\d|[{_SPLITS}]\d{{3}}(?!\d)|#[A-Z]"
)
"""Text behind a match that ends inside a number."""
_WORDS = (
    r"[num\u00b5\u03bc]?s|secs?|min|mins|h|hrs?|d|days?"
    r"|(?:nano|micro|milli)?seconds?|minutes?|hours?"
    r"|[kKMGT]?i?B|[kKMGT]|[kMG]?Hz|bits?|bytes?|[kmM]?[WJV]|[ck\u00b5m]?m|[km]?g|dB"
    r"|percent|pct|\u2030|\u2031|ppm|thousand|million|billion|trillion|mn|bn"
    r"|\w+/(?:s|sec|second|min|h|it|step|batch|epoch)"
)
"""Units that may stand behind a blank; other words there say something else."""
_NAMES = r"\s*[:=]|\s+[-+]?\.?\d"
"""Text behind a word that names the next number, as min in 'loss 0.5 min 0.3'."""
_TIMES = "\u00d7\u2715\u2a2f\u00b7\u22c5*x^"
_UNIT = re.compile(
    rf"(?>{_NUMBER})("
    rf"[^\W\d]\w*|\s?(?:{_WORDS})(?![\w/]|{_NAMES})"
    rf"|\s?[/\u00f7]\s?\d+(?!\.?\d)|\s(?:out\s)?of\s\d+"
    rf"|\s?[{_TIMES}]{{1,2}}\s?\d+|[:\u2013-]\d+)"
    r"|[-+]?\d{1,3}( \d{3})(?!\d)"
)
"""A number that another meaning follows: a unit, a fraction, more of its digits."""
_SUFFIX = re.compile(rf"\s?(%|(?:{_WORDS})(?=\s+[-+]?\.?\d)|)")
"""A possible unit, where it does not stand behind every number of a search."""


class JsonLines:
    """Reads JSON with the metric, if need be behind other text; recalls other keys."""

    reads_errors = False

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self._seen: dict[str, None] = {}

    def read(self, line: str) -> Json | None:
        """Return the report in a line, None if it holds none."""
        text = without_escapes(line).strip()
        begins = text.startswith("{")
        try:
            records = list(_records(text))
        except (ValueError, RecursionError) as error:
            if not begins or f'"{self.metric}"' not in text:
                return None
            raise ScriptError(
                f"the script reports invalid JSON: {text[:SHOWN]!r}"
            ) from error
        are_reports = [{self.metric, EPOCH} <= record.keys() for record in records]
        if are_reports[-2:] == [True, True]:
            raise ScriptError(
                f"the script reports two epochs in one line: {text[:SHOWN]!r}"
            )
        last = records[-1] if records else {}
        if are_reports[-1:] == [True] or (begins and self.metric in last):
            return last
        for key in last:
            if len(self._seen) < MOST_KEYS:
                self._seen[key[:SHOWN]] = None
        return None

    @property
    def missed(self) -> str:
        """The kind of line that was expected, for a script without a report."""
        msg = f"no line of JSON with an epoch and {self.metric!r}"
        seen = ", ".join(self._seen)
        if seen:
            return f"{msg}; the keys seen were {seen}"
        return msg


def _records(text: str) -> Iterator[Json]:
    """Yield the objects in a line that ends with one; a ValueError otherwise."""
    decoder = json.JSONDecoder()
    end = 0
    while found := _OBJECT.search(text, end):
        record, end = decoder.raw_decode(text, found.start())
        yield record
    if end and end < len(text):
        raise ValueError("text stands behind it")


class PlainLines:
    """Reads the number that a pattern finds in a line, whole, wherever it stands."""

    reads_errors = True  # where logging goes
    metric = SCORE

    def __init__(self, regex: str, suffixes: set[str] | None = None) -> None:
        self._regex = regex
        self._suffixes = set() if suffixes is None else suffixes
        pattern = pattern_of(regex)
        self._patterns = dict.fromkeys((_with_any_numbers(pattern), pattern))
        self._n_matches = 0

    def read(self, line: str) -> Json | None:
        """Return the report in a line, None if it holds none."""
        line = without_escapes(line)
        matches: list[re.Match[str]] = []
        for pattern in self._patterns:
            matches = matches or list(pattern.finditer(line[-SEARCHED:]))
        if not matches:
            return None
        first, *others = matches
        self._n_matches += 1
        names = first.re.groupindex
        group = SCORE if SCORE in names else 1
        report: Json = {EPOCH: self._n_matches, SCORE: self._number(first, group, line)}
        if EPOCH in names:
            epoch = self._number(first, EPOCH, line)
            report[EPOCH] = int(epoch) if epoch.is_integer() else epoch
        numbers = [other[group] for other in others if other[group]]
        numbers += _earlier_numbers(first, group)
        if numbers:
            raise SetupError(
                f"the metric's pattern finds several numbers, {first[group]} and "
                f"{numbers[0]}, in {line.strip()[:SHOWN]!r}: it has to say which, as "
                r"in '\bloss: {number}', which finds none in 'val_loss: 0.5', or as in "
                "'^.*?loss: {number}', which finds the first"
            )
        return report

    def _number(self, found: re.Match[str], group: str | int, line: str) -> float:
        """Return the number that a group has matched, which has to be whole."""
        text = found[group] or ""
        shown = repr(line.strip()[:SHOWN])
        try:
            number = math.nan if "#" in text else float(text)
        except ValueError:
            raise ScriptError(
                f"the metric's pattern finds {text[:SHOWN]!r}, which is no number, in "
                f"{shown}"
            ) from None
        begin, end = found.span(group)
        before = found.string[:begin]
        behind = found.string[end:]
        is_part = _BEGUN.search(before) or _CONTINUES.match(behind)
        if "," not in self._regex:  # which then separates no numbers
            is_part = is_part or re.search(r"\d,$", before) or re.match(r",\d", behind)
        problem = "a part of a number"
        if not is_part:
            problem = self._problem(found, group)
        if problem:
            raise SetupError(
                f"the metric's pattern finds {text!r}, {problem}, in {shown}: have the "
                "script print numbers such as 1234.5, -0.5 or 8.5e-05 in one unit, and "
                "write {number} for them in the pattern, with the unit, as in {number}s"
            )
        return number

    def _problem(self, found: re.Match[str], group: str | int) -> str:
        """Return why a number may not mean the same as those of other lines."""
        text = found.string
        end = found.end(group)
        if group == EPOCH:
            return ""
        if unit := _UNIT.match(text, found.start(group)):
            without = text[:end] + text[unit.end() :]
            if found.re.match(without, found.start()):  # the pattern needs no unit
                return f"followed by {unit[unit.lastindex or 0]!r}"
        suffix = _SUFFIX.match(text, end)
        assert suffix is not None  # it may be empty
        self._suffixes.add(suffix[1])
        several = self._suffixes if "%" in self._suffixes else self._suffixes - {""}
        shown = " or ".join(one or "nothing" for one in sorted(several))
        if len(several) > 1:
            return f"followed by {shown}"
        return ""

    @property
    def missed(self) -> str:
        """The kind of line that was expected, for a script without a report."""
        return f"no line in which {self._regex!r} finds a number"


Reader = JsonLines | PlainLines


def reader_of(metric: Any, suffixes: set[str] | None = None) -> Reader:
    """Return the reader of one script's lines, by a key or ``{"regex": ...}``."""
    # All scripts of a search share `suffixes`: what has stood behind their numbers.
    if isinstance(metric, str):
        return JsonLines(metric)
    return PlainLines(metric["regex"], suffixes)


def pattern_of(regex: str) -> re.Pattern[str]:
    """Compile a pattern in which ``{number}`` and ``{epoch}`` stand for such groups."""

    def group(found: re.Match[str]) -> str:
        opened = found[1] or ""
        name, number = _FIELDS[found[2]]
        return opened + (number if opened.startswith("(?") else f"(?P<{name}>{number})")

    return re.compile(_FIELD.sub(group, regex))


def has_alternatives(pattern: re.Pattern[str]) -> bool:
    """Whether a ``|`` outside of groups separates alternatives."""
    depth = 0
    for token in _TOKEN.finditer(pattern.pattern):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "|" and depth == 0:
            return True
    return False


def without_escapes(line: str) -> str:
    """Return a line without the escape sequences of terminals, such as for colours."""
    if "\x1b" in line:
        return _ESCAPE.sub("", line)
    return line


def _earlier_numbers(found: re.Match[str], group: str | int) -> Iterator[str]:
    """Yield the numbers of a pattern whose text before them is matched lazily."""

    def lazily(quantifier: re.Match[str]) -> str:
        is_greedy = quantifier[1] and not quantifier[2]
        if is_greedy:
            return f"{quantifier[0]}?"
        return quantifier[0]

    lazy = re.compile(_QUANTIFIER.sub(lazily, found.re.pattern), found.re.flags)
    first = lazy.match(found.string, found.start())
    for name in {group, EPOCH} & {group, *found.re.groupindex}:
        if first is not None and -1 < first.start(name) < found.start(name):
            number = re.compile(_NUMBER).match(found.string, first.start(name))
            yield first[name] if number is None else number[0]


def _with_any_numbers(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """Return the pattern with any numbers for its groups, if it says where they are."""
    # They may follow more blanks, for alignment, and a sign that cannot be read.
    source = pattern.pattern
    n_groups = end = 0
    wanted = {pattern.groupindex.get(name, 1): name for name in (EPOCH, SCORE)}
    opened: list[tuple[int, int]] = []
    parts: list[str] = []
    for token in _TOKEN.finditer(source):
        if token[0] == "(":
            is_group = re.match(r"(?!\?)|\?P<", source[token.end() :]) is not None
            n_groups += is_group
            opened.append((n_groups if is_group else 0, token.start()))
        elif token[0] == ")" and opened:
            closed, begin = opened.pop()
            if closed in wanted:
                number = rf"\s*[{_MINUS}]?(?P<{wanted[closed]}>{_NUMBER})"
                parts += [source[end:begin], number]
                end = token.end()
    if re.search(r"\w|\^", re.sub(r"\\.", "", parts[0] if parts else "")):
        with suppress(re.error):
            return re.compile("".join([*parts, source[end:]]))
    return pattern
