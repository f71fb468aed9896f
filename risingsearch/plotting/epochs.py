"""Shared parts of a search's figures: the columns of a history, colours, axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from risingsearch.arms import sign_of
from risingsearch.checks import checked_choice
from risingsearch.errors import InvalidParameterError, missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

# Okabe and Ito's palette, the winner's colour first.
WINNER = "#D55E00"
RUNNERS_UP = ("#0072B2", "#E69F00", "#56B4E9", "#009E73")
LABEL_LENGTH = 32  # characters of an arm's name


class Ink(NamedTuple):
    """Colours of everything beside the leaders, on light ground or on dark."""

    failed: str
    guide: str
    also_ran: str
    dark: bool  # the ground

    @classmethod
    def on(cls, ax: Axes) -> Ink:
        """Return the colours that can be seen on the ground of these axes."""
        from matplotlib.colors import to_rgb

        red, green, blue = to_rgb(ax.get_facecolor())
        if 0.3 * red + 0.6 * green + 0.1 * blue < 0.5:
            return cls("#FFFFFF", "#3D444D", "#6E7681", dark=True)
        return cls("#000000", "#E4E4E4", "#BDBDBD", dark=False)


class Epochs(NamedTuple):
    """The columns of a history, and which of its rows is the best."""

    arm: NDArray[np.int64]
    epoch: NDArray[np.int64]
    score: NDArray[np.float64]  # NaN: failed
    best: int | None  # None: all failed
    maximize: bool
    labels: Mapping[int, str]
    metric: str

    @classmethod
    def read(
        cls,
        history: Sequence[Mapping[str, Any]],
        direction: str,
        labels: Mapping[int, str] | None,
        metric: str,
    ) -> Epochs:
        """Take the columns that the figures need out of the rows."""
        checked_choice("direction", direction, ("maximize", "minimize"))
        if len(history) == 0:
            msg = "history is empty; plot it after the first epoch"
            raise InvalidParameterError(msg)
        score = np.array([row["score"] for row in history], dtype=np.float64)
        score[~np.isfinite(score)] = np.nan
        maximize = sign_of(direction) > 0.0
        best = None
        if np.isfinite(score).any():
            best = int(np.nanargmax(score if maximize else -score))
        return cls(
            arm=np.array([row["arm"] for row in history], dtype=np.int64),
            epoch=np.array([row["epoch"] for row in history], dtype=np.int64),
            score=score,
            best=best,
            maximize=maximize,
            labels=labels or {},
            metric=as_text(metric),
        )

    def name(self, arm: int) -> str:
        """Return the label of an arm, shortened to fit a figure."""
        return as_text(str(self.labels.get(arm, f"arm {arm}")))

    def describe(self, row: int) -> str:
        """Return the name of a row's arm, with the score and epoch of the row."""
        name = self.name(int(self.arm[row]))
        return f"{name}: {self.score[row]:.4g} at epoch {self.epoch[row]}"

    @property
    def n_arms(self) -> int:
        """How many arms were opened."""
        return len(np.unique(self.arm))

    def limits(self) -> tuple[float, float]:
        """Return the range of the scores without those that are far out."""
        return score_limits(self.score, maximize=self.maximize)


def score_limits(given: ArrayLike, *, maximize: bool) -> tuple[float, float]:
    """Return the range of scores without those that are far out.

    Far out is beyond Tukey's outer fence, at the bad end only: one diverged run must
    not flatten all others.

    Examples
    --------
    >>> score_limits([0.5, 0.55, 0.7, 0.65, 0.6, -900.0], maximize=True)
    (0.5, 0.7)
    """
    scores = np.asarray(given, dtype=np.float64)
    scores = scores[np.isfinite(scores)]
    if len(scores) == 0:
        return 0.0, 1.0
    quarter, three_quarters = np.quantile(scores, (0.25, 0.75))
    reach = 3.0 * (three_quarters - quarter)
    if reach > 0 and maximize:
        scores = scores[scores >= quarter - reach]
    elif reach > 0:
        scores = scores[scores <= three_quarters + reach]
    return float(scores.min()), float(scores.max())


def best_rows(epochs: Epochs) -> list[int]:
    """Return the best row of every arm that has one, the best arm first."""
    good = epochs.score if epochs.maximize else -epochs.score
    best: dict[int, int] = {}
    for row in np.flatnonzero(np.isfinite(good)).tolist():
        arm = int(epochs.arm[row])
        if arm not in best or good[row] > good[best[arm]]:
            best[arm] = row
    return sorted(best.values(), key=lambda row: (-good[row], row))


def as_text(given: str) -> str:
    """Return a text that fits a figure, of which matplotlib makes no formula."""
    if len(given) > LABEL_LENGTH:
        given = given[: LABEL_LENGTH - 1].rstrip() + "…"
    return given.replace("$", r"\$")


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure, in inches."""
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise missing("matplotlib", extra="plot") from error
    _, ax = pyplot.subplots(figsize=(width, height), dpi=150, layout="constrained")
    return ax


def whole_numbers(ax: Axes) -> None:
    """Count epochs in whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
