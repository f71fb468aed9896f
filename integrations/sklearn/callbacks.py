"""scikit-learn's callbacks (from 1.9 on), one task per epoch; nothing before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["N_FRAMES", "CallbackSupportMixin", "FitTasks", "with_callbacks"]

N_FRAMES = 1  # that with_callbacks puts between a method and its caller

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ModuleNotFoundError:  # scikit-learn < 1.9
    N_FRAMES = 0

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


class FitTasks:
    """The tasks of a search that callbacks hear of: each epoch, then the refit.

    Parameters
    ----------
    search : RisingSearchCV
        The estimator whose callbacks are told.
    X, y : array-like
        The data, for callbacks that ask for it.
    """

    def __init__(self, search: Any, X: Any, y: Any) -> None:
        self._search = search
        self._data = {"X": X, "y": y}
        self._root: Any = None
        self._epochs: Any = None
        if hasattr(search, "_init_callback_context"):
            self._root = search._init_callback_context(max_subtasks=None)
            self._begin(self._root)
            self._epochs = self._root.subcontext(task_name="search", max_subtasks=None)
            self._begin(self._epochs)

    def epoch_done(self) -> bool:
        """Tell of one epoch; return whether a callback asks to stop."""
        if self._root is None:
            return False
        task = self._epochs.subcontext(task_name="epoch")
        self._begin(task)
        return self._end(task)

    def search_done(self) -> None:
        """Tell that the last epoch was trained."""
        if self._root is not None:
            self._end(self._epochs)

    def refit(self, train: Callable[[], Any]) -> Any:
        """Run the refit as a task of its own."""
        if self._root is None:
            return train()
        task = self._root.subcontext(task_name="refit-with-best-params")
        self._begin(task)
        estimator = train()
        self._end(task)
        return estimator

    def done(self) -> None:
        """Tell that the whole fit is over."""
        if self._root is not None:
            self._end(self._root)

    def _begin(self, task: Any) -> None:
        task.call_on_fit_task_begin(estimator=self._search, **self._data)

    def _end(self, task: Any) -> bool:
        return bool(task.call_on_fit_task_end(estimator=self._search, **self._data))
