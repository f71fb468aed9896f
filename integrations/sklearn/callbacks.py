"""scikit-learn's callbacks (from 1.9 on), one task per epoch; nothing before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection._search import BaseSearchCV

from risingsearch.integrations.sklearn.splits import Targets

Context: TypeAlias = Any
"""A task of scikit-learn's; None before 1.9."""


class FitTasks:
    """The tasks that callbacks of a search are told of: each epoch, then the refit."""

    def __init__(
        self,
        search: BaseSearchCV,
        X: ArrayLike,
        y: Targets,
    ) -> None:
        self._arguments = {"estimator": search, "X": X, "y": y}
        self._root: Context = None
        if hasattr(search, "_init_callback_context"):
            self._root = search._init_callback_context(max_subtasks=None)
            self._root.call_on_fit_task_begin(**self._arguments)
        self._epochs = self._begin(self._root, "search", max_subtasks=None)

    def epoch_done(self) -> bool:
        """Tell of one epoch; return whether a callback asks to stop."""
        return self._end(self._begin(self._epochs, "epoch"))

    def search_done(self) -> None:
        """Tell that the last epoch was trained."""
        self._end(self._epochs)

    def refit(self, train: Callable[[], BaseEstimator]) -> BaseEstimator:
        """Run the refit as a separate task."""
        task = self._begin(self._root, "refit-with-best-params")
        estimator = train()
        self._end(task)
        return estimator

    def done(self) -> None:
        """Tell that the whole fit is over."""
        self._end(self._root)

    def _begin(
        self,
        parent: Context,
        name: str,
        **options: object,
    ) -> Context:
        if parent is None:
            return None
        task = parent.subcontext(task_name=name, **options)
        task.call_on_fit_task_begin(**self._arguments)
        return task

    def _end(self, task: Context) -> bool:
        return task is not None and bool(task.call_on_fit_task_end(**self._arguments))
