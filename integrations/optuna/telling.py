"""Callbacks, told of the epochs of a study as a replica of it records them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.study import Study

from risingsearch.integrations.optuna.study_replica import StudyReplica
from risingsearch.search.callbacks import Callback, CallbackList

SEARCH = "rising:search"  # attribute of a study: which search it is


class StudyCallbacks:
    """Tells callbacks of the beginning, the epochs and the end of a study's search."""

    def __init__(
        self, study: Study, replica: StudyReplica, callbacks: Sequence[Callback]
    ) -> None:
        self._replica = replica
        self._has_begun = self._has_ended = False
        if SEARCH not in study.user_attrs:
            study.set_user_attr(SEARCH, secrets.token_hex(8))
        names = study.metric_names
        self._teller = CallbackList(
            lambda: callbacks,
            lambda: replica.scheduler,
            search=study.user_attrs[SEARCH],
            metric=names[0] if names else "value",
            params=self._params,
            reports={},
            name=replica.arm_of,
        )

    def tell(self) -> None:
        """Tell what is new; the replica is up to date."""
        if self._has_ended:
            return
        if not self._has_begun:
            self._has_begun = True
            self._teller.begins()
        self._teller.epochs()
        if self._replica.done:
            self._has_ended = True
            self._teller.ends()

    def _params(self, index: int) -> Mapping[str, Any]:
        return self._replica.params_of(self._replica.arm_of(index))
