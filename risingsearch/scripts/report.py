"""Report scores from a training script to the search that has started it."""

import json
import math
from collections.abc import Iterable
from numbers import Integral, Real

from risingsearch.errors import InvalidParameterError


def report(
    score: float,
    *,
    epoch: int,
    examples: Iterable[float] | None = None,
    **metrics: float,
) -> None:
    """Print one line of JSON about an epoch, for ``risingsearch run`` to read.

    Parameters
    ----------
    score : float
        The validation score; NaN if it has none.
    epoch : int
        The epoch of the whole training: first ``RISINGSEARCH_FROM_EPOCH`` + 1.
    examples : iterable of float, optional
        The score of each validation row, in the same order after every epoch, with
        ``score`` as their mean: how far the best score is too high is told by them.
    **metrics : float
        Other numbers for the history.

    Raises
    ------
    InvalidParameterError
        If the score, a metric or one of the examples is no number, or the epoch none
        from 1.

    Examples
    --------
    >>> report(0.91, epoch=3, loss=0.25)
    {"epoch": 3, "score": 0.91, "loss": 0.25}
    """
    if isinstance(score, bool) or not isinstance(score, Real):
        raise InvalidParameterError(f"score must be a number; got {score!r}")
    if isinstance(epoch, bool) or not isinstance(epoch, Integral) or epoch < 1:
        raise InvalidParameterError(
            f"epoch must be a whole number of at least 1; got {epoch!r}"
        )
    others = {name: _plain(name, value) for name, value in metrics.items()}
    line: dict[str, object] = {
        "epoch": int(epoch),
        "score": float(score),
        **others,
    }
    if examples is not None:
        line["examples"] = [_plain("each of examples", value) for value in examples]
    print(json.dumps(line), flush=True)


def _plain(name: str, value: object) -> int | float | None:
    """Return a number as JSON knows it; NaN and infinities are null."""
    if hasattr(value, "item"):  # of a library of arrays
        value = value.item()
    if not isinstance(value, Real):
        raise InvalidParameterError(f"{name} must be a number; got {value!r}")
    if isinstance(value, Integral):
        return int(value)
    if math.isfinite(value):
        return float(value)
    return None
