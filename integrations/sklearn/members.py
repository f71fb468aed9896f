"""Estimators around others that can be trained by epochs: the whole can, if they can.

A target that is transformed, and members that vote, change nothing in how a member is
trained: the same rows, all of them, in every fit. So the whole is fitted once an epoch
with members that continue from their last fit. Members that are trained on parts of the
rows, as in stacking and calibration, cannot continue: each fit is of several new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.utils import Bunch

VOTING = VotingClassifier, VotingRegressor
ON_PARTS = StackingClassifier, StackingRegressor, CalibratedClassifierCV
"""Their members are trained on parts of the rows, to predict the others."""


def members_of(estimator: Any) -> dict[str, Any]:
    """Return the members that train whenever the estimator does, by their names.

    >>> members_of(TransformedTargetRegressor(LinearRegression()))
    {'regressor': LinearRegression()}
    """
    if isinstance(estimator, TransformedTargetRegressor):
        regressor = estimator.regressor
        return {"regressor": LinearRegression() if regressor is None else regressor}
    if isinstance(estimator, VOTING):
        return {name: one for name, one in estimator.estimators if one != "drop"}
    return {}


class Continued:
    """A member that trains one epoch more whenever it is fitted, and is its own clone.

    ``trainer`` is an ``EpochTrainer``. All else is that of its estimator.
    """

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def fit(self, X: Any, y: Any, **params: Any) -> Continued:
        """Train one epoch more."""
        self.trainer.train(X, y, **params)
        self.trainer.forget_rows()
        return self

    def __sklearn_clone__(self) -> Continued:
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "trainer":  # asked for before there is one, when unpickled
            raise AttributeError(name)
        return getattr(self.trainer.estimator, name)


def train_members(
    estimator: Any,
    members: Mapping[str, Continued],
    X: Any,
    y: Any,
    params: Mapping[str, Any],
) -> dict[str, Continued]:
    """Fit the whole with these members; return them as they are then.

    The estimator has its own parameters again, and the fitted estimators of the
    members.
    """
    if isinstance(estimator, TransformedTargetRegressor):
        given = estimator.regressor
        estimator.set_params(**members)
        estimator.fit(X, y, **params)
        trained = {"regressor": estimator.regressor_}
        estimator.regressor_ = estimator.regressor_.trainer.estimator
        estimator.set_params(regressor=given)
        return trained
    given = estimator.estimators
    names = [name for name, _ in given]
    estimator.set_params(estimators=[(n, members.get(n, "drop")) for n in names])
    estimator.fit(X, y, **params)
    trained = dict(zip(members, estimator.estimators_, strict=True))
    estimators = {name: one.trainer.estimator for name, one in trained.items()}
    estimator.estimators_ = list(estimators.values())
    estimator.named_estimators_ = Bunch(**dict.fromkeys(names, "drop") | estimators)
    estimator.set_params(estimators=given)
    return trained
