"""Rounds of xgboost and lightgbm over several fits, as if they were those of one."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator

from risingsearch.arms import Configuration, Params
from risingsearch.errors import InvalidParameterError
from risingsearch.integrations.sklearn.epoch_methods import continuation, params_of

_SEEDS = ("bagging_seed", "feature_fraction_seed", "extra_seed", "objective_seed")
"""Seeds of lightgbm that draw for each round, unless derived from random_state."""
_ENV = ("model", "params", "iteration", "end_iteration", "evaluation_result_list")


class Rounds:
    """State that the fits of one booster hand on: of its seeds and its callbacks."""

    def __init__(self) -> None:
        self._callbacks: list[Any] = []  # of lightgbm, copied for this booster
        self._config = ""  # of xgboost's booster, where callbacks may change it
        self._scores: Params = {}  # of the evaluation sets, by round

    @contextmanager
    def next(
        self,
        estimator: BaseEstimator,
        trained: int,
        steps: int,
        params: Configuration,
    ) -> Iterator[Configuration]:
        """Set an estimator up for more rounds, and yield the arguments of its fit."""
        settings = self._seeds(estimator, trained) | {"n_estimators": steps}
        keyword = continuation(estimator)
        if trained:
            params = {**params, keyword: estimator}
        if keyword == "xgb_model":
            callbacks = estimator.callbacks or ()
            if callbacks or params.get("eval_set"):
                settings["callbacks"] = [self._of_xgboost(callbacks, trained)]
        elif params.get("callbacks"):
            self._callbacks = self._callbacks or _copied(params["callbacks"])
            wrapped = [_CalledForAll(callback) for callback in self._callbacks]
            params = {**params, "callbacks": wrapped}
        with temporarily(estimator, **settings):
            yield params

    def _seeds(self, estimator: BaseEstimator, trained: int) -> Params:
        """Return the seeds of the next rounds; a bag of lightgbm lasts bagging_freq."""
        # With one and the same seed lightgbm would draw the same columns for ever, and
        # xgboost continue with generator numbers that other boosters have used up.
        seeds = {"random_state": estimator.random_state}
        params: Params = {}
        if continuation(estimator) == "init_model":
            params = params_of(estimator)
            seeds |= {name: params[name] for name in _SEEDS if name in params}
        for name, seed in seeds.items():
            if _is_seed(seed):
                seeds[name] = (int(seed or 0) + trained) % 2**31
        lasts = int(params.get("bagging_freq", params.get("subsample_freq")) or 1)
        first = params.get("bagging_seed", estimator.random_state)
        if lasts > 1 and _is_seed(first):
            bag = np.random.SeedSequence([int(first or 0), trained // lasts])
            seeds["bagging_seed"] = int(bag.generate_state(1)[0]) % 2**31
        return seeds

    def _of_xgboost(self, callbacks: Any, trained: int) -> object:
        """Return one callback that tells all others of the rounds of all fits."""
        base: Any = sys.modules["xgboost.callback"].TrainingCallback
        rounds = self

        class Wrapped(base):  # type: ignore[misc]
            def before_training(self, model: Any) -> Any:
                if not trained:
                    return passed("before_training", model)
                # A schedule sets the rate of the next round after each one.
                config = json.loads(rounds._config)
                now = json.loads(model.save_config())["learner"]["generic_param"]
                config["learner"]["generic_param"] = now
                model.load_config(json.dumps(config))
                return model

            def before_iteration(
                self,
                model: Any,
                epoch: int,
                log: Params,
            ) -> bool:
                if not epoch:
                    log.update(deepcopy(rounds._scores))
                return told("before_iteration", model, epoch, log)

            def after_iteration(
                self,
                model: Any,
                epoch: int,
                log: Params,
            ) -> bool:
                rounds._scores = deepcopy(dict(log))
                return told("after_iteration", model, epoch, log)

            def after_training(self, model: Any) -> Any:
                rounds._config = model.save_config()
                return passed("after_training", model)

        def passed(method: str, model: Any) -> Any:
            for callback in callbacks:
                n = model.num_boosted_rounds()
                model = getattr(callback, method)(model)
                if model.num_boosted_rounds() != n:
                    _stopped(callback)
            return model

        def told(
            method: str,
            model: Any,
            epoch: int,
            log: Params,
        ) -> bool:
            for callback in callbacks:
                if getattr(callback, method)(model, trained + epoch, log):
                    _stopped(callback)
            return False

        return Wrapped()


class _CalledForAll:
    """A callback of lightgbm that is told of the rounds of all fits."""

    def __init__(self, callback: Callable[[Any], object]) -> None:
        self._callback = callback
        for name in ("order", "before_iteration"):
            if hasattr(callback, name):
                setattr(self, name, getattr(callback, name))

    def __call__(self, env: Any) -> None:
        facts = {name: getattr(env, name) for name in _ENV}
        try:
            self._callback(type(env)(**facts, begin_iteration=0))
        except Exception as error:
            if type(error).__name__ == "EarlyStopException":
                _stopped(self._callback)
            raise


def _is_seed(value: object) -> bool:
    return value is None or isinstance(value, Integral)


def _copied(callbacks: Any) -> list[Any]:
    try:
        return deepcopy(list(callbacks))
    except TypeError as error:
        raise InvalidParameterError(
            f"callbacks are copied for each model, and these cannot be: {error}"
        ) from error


def _stopped(callback: object) -> NoReturn:
    name = getattr(callback, "__name__", type(callback).__name__)
    raise InvalidParameterError(
        f"the callback {name} stops a booster or changes its rounds: take it out"
    )


@contextmanager
def temporarily(estimator: BaseEstimator, **settings: object) -> Iterator[None]:
    """Set parameters of an estimator, and afterwards those it had."""
    params = vars(estimator)
    if not settings.keys() <= params.keys():  # else no call, in which xgboost may draw
        params = estimator.get_params() | params
    before = {name: params[name] for name in settings if name in params}
    estimator.set_params(**settings)
    try:
        yield
    finally:
        estimator.set_params(**before)
        for name in settings.keys() - before.keys():  # lightgbm takes any
            estimator._other_params.pop(name)
            delattr(estimator, name)
