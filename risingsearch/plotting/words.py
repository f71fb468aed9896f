"""Values as a page shows them: texts of one line, escaped, numbers that it can read."""

import html
import math
from collections.abc import Iterable
from numbers import Integral, Real

from risingsearch.budget import TRAINING, WALL_CLOCK, Budget
from risingsearch.checks import as_float, on_one_line

LONGEST_VALUE = 200  # characters of a parameter or a reason
LONGEST_NAME = 40  # characters of an earlier search, or of a metric
LONGEST_IN_COLUMN = 60  # characters of a fact; a longer one gets a line to itself
NOTHING = "\N{EN DASH}"  # in the place of what is not known
LARGEST_WHOLE = 2**53  # up to here, a browser reads whole numbers as they are


def as_text(value: object) -> str:
    r"""Return any value as a text of one line.

    Examples
    --------
    >>> as_text("two\nlines"), as_text([1, 2])
    ('two lines', '[1, 2]')
    """
    return short(" ".join(str(value).split()), LONGEST_VALUE)


def in_digits(value: object) -> str:
    """Return any value as a text of one line, a number with six digits.

    Examples
    --------
    >>> in_digits(0.07973946952558829), in_digits(64), in_digits("sgd")
    ('0.0797395', '64', 'sgd')
    """
    if isinstance(value, float):
        return f"{value:.6g}"
    return as_text(value)


def shown_metric(metric: str) -> str:
    """Return the name of a score, on one line."""
    return on_one_line(metric, LONGEST_NAME)


def short(text: str, longest: int) -> str:
    """Return a text that is no longer than so many characters.

    Examples
    --------
    >>> short("a long name", 7)
    'a long…'
    """
    if len(text) <= longest:
        return text
    return text[: longest - 1].rstrip() + "…"


def plural(number: float, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> plural(1, "arm"), plural(2000, "epoch")
    ('1 arm', '2,000 epochs')
    """
    ending = "" if number == 1 else "s"
    return f"{number:,} {noun}{ending}"


def escaped(value: object) -> str:
    """Return any value as a text of one line, for HTML.

    Examples
    --------
    >>> escaped("a < b")
    'a &lt; b'
    """
    return html.escape(as_text(value))


def described(facts: Iterable[tuple[object, object]]) -> str:
    """Return names and values as items of a description list."""
    items = []
    for name, value in facts:
        text = in_digits(value)
        wide = ""
        if len(text) > LONGEST_IN_COLUMN:
            wide = ' class="wide"'
        dd = f"<dd>{html.escape(text)}</dd>"
        items.append(f"<div{wide}><dt>{escaped(name)}</dt>{dd}</div>")
    return "\n".join(items)


def spendable(budget: Budget) -> str:
    """Return the text of a budget.

    Examples
    --------
    >>> spendable(Budget(epochs=1200)), spendable(Budget(wall_seconds=90.0))
    ('1,200 epochs', '1 min 30 s of wall-clock time')
    >>> spendable(Budget(hours=8)), spendable(Budget(gpu_hours=20))
    ('8 h of training', '20 GPU-hours')
    """
    amount = budget.amount
    time = duration(amount) if "seconds" in budget.unit else f"{amount:g} h"
    forms = {
        "epochs": plural(amount, "epoch"),
        "cost": f"a cost of {amount:g}",
        "gpu_hours": f"{amount:g} GPU-hours",
        **dict.fromkeys(TRAINING, f"{time} of training"),
        **dict.fromkeys(WALL_CLOCK, f"{time} of wall-clock time"),
    }
    return forms[budget.unit]


def duration(seconds: float) -> str:
    """Return a time as it is read out: 42.0 s, 5 min 3 s, 7 h 12 min.

    Examples
    --------
    >>> duration(41.96), duration(303.2), duration(25_940)
    ('42.0 s', '5 min 3 s', '7 h 12 min')
    """
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min"


def plain(value: object) -> float | str:
    """Return a number that a browser reads as it is, or a text.

    Examples
    --------
    >>> plain(0.5), plain(2**60), plain(None)
    (0.5, '1152921504606846976', 'None')
    """
    if isinstance(value, bool):
        return as_text(value)
    if isinstance(value, Integral):
        whole = int(value)
        if abs(whole) <= LARGEST_WHOLE:
            return whole
        return as_text(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    return as_text(value)


def number(value: object, digits: int = 9) -> float | None:
    """Return a finite number with so many digits; None for anything else.

    Examples
    --------
    >>> number(1 / 3, digits=3), number(float("nan")), number("a")
    (0.333, None, None)
    """
    finite = as_float(value)
    if finite is None or not math.isfinite(finite):
        return None
    return float(f"{finite:.{digits}g}")
