"""What a pull pays: every environment by its name.

>>> import numpy as np
>>> arms = make_environment("two-arm", horizon=30_000)
>>> arms.optimal(np.array([30_000]))
array([20000.5])
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from risingsearch.checks import checked_int
from risingsearch.curves import raven, rising, rotting, shifting, smooth
from risingsearch.curves.analytic import LinearThenFlat
from risingsearch.curves.base import PAPERS, Environment
from risingsearch.curves.clicks import ClickLog, click_log, make_click_log
from risingsearch.curves.files import LoadedCurves, load_curves
from risingsearch.curves.inputs import checked_generator
from risingsearch.curves.noise import Noise, make_noise
from risingsearch.curves.recorded import CurveTable
from risingsearch.curves.restless import DriftingMeans, Sinusoid
from risingsearch.errors import InvalidParameterError, unknown_name

__all__ = [
    "ENVIRONMENTS",
    "ClickLog",
    "CurveTable",
    "DriftingMeans",
    "Environment",
    "EnvironmentInfo",
    "LinearThenFlat",
    "LoadedCurves",
    "Noise",
    "Sinusoid",
    "click_log",
    "list_environments",
    "load_curves",
    "make_click_log",
    "make_environment",
    "make_noise",
]

RESTED = "rested"
RESTLESS = "restless"


class EnvironmentInfo(NamedTuple):
    """What there is to know about an environment before using it.

    Parameters
    ----------
    name : str
        Its registered name.
    parameters : dict
        Names and defaults of what ``make_environment`` takes besides horizon and seed;
        ``...`` where there is no default.
    paper : str
        Where it comes from, with the section.
    summary : str
        The first line of its documentation.
    setting : str
        "rested" (an arm moves when it is pulled) or "restless" (with the rounds).
    """

    name: str
    parameters: dict[str, Any]
    paper: str
    summary: str
    setting: str


class _Entry(NamedTuple):
    generator: Callable[..., Environment]
    setting: str


_ENTRIES: dict[str, _Entry] = {
    "add-remove": _Entry(shifting.add_remove, RESTLESS),
    "bernoulli": _Entry(raven.bernoulli, RESTLESS),
    "blip": _Entry(shifting.blip, RESTLESS),
    "clicks": _Entry(smooth.click_counterfactual, RESTLESS),
    "clicks-fitted": _Entry(smooth.click_fitted, RESTLESS),
    "concave": _Entry(rising.concave, RESTED),
    "gradual": _Entry(shifting.gradual, RESTLESS),
    "imdb": _Entry(rising.imdb_replay, RESTED),
    "incremental": _Entry(shifting.incremental, RESTLESS),
    "localised-jump": _Entry(shifting.localised_jump, RESTLESS),
    "logistics": _Entry(raven.logistics, RESTLESS),
    "ltf": _Entry(rising.ltf, RESTED),
    "periodic": _Entry(shifting.periodic, RESTLESS),
    "rotting-anv": _Entry(rotting.rotting_anv, RESTED),
    "rotting-av": _Entry(rotting.rotting_av, RESTED),
    "rotting-np": _Entry(rotting.rotting_np, RESTED),
    "sensitivity-blips": _Entry(raven.sensitivity_blips, RESTLESS),
    "sensitivity-incremental": _Entry(raven.sensitivity_incremental, RESTLESS),
    "sensitivity-variance": _Entry(raven.sensitivity_variance, RESTLESS),
    "sinusoid": _Entry(smooth.sinusoid, RESTLESS),
    "two-arm": _Entry(rising.two_arm, RESTED),
    "variance-drift": _Entry(shifting.variance_drift, RESTLESS),
}

ENVIRONMENTS: dict[str, Callable[..., Environment]] = {
    name: entry.generator for name, entry in _ENTRIES.items()
}


def make_environment(
    name: str,
    horizon: int,
    seed: int | np.random.Generator | None = None,
    **parameters: Any,
) -> Environment:
    """Build an environment by its registered name.

    Parameters
    ----------
    name : str
        A registered name, see ``list_environments``.
    horizon : int
        Number of rounds it is meant for, at least 1.
    seed : int or numpy.random.Generator, optional
        What draws the arms: the same seed gives the same arms.
    **parameters
        The environment's own, see ``list_environments``.

    Raises
    ------
    UnknownNameError
        If there is no such environment or parameter; the message names the closest one.
    InvalidParameterError
        If a value is missing or outside its range.

    Examples
    --------
    >>> make_environment("ltf", horizon=1_000, seed=0, n_arms=3).n_arms
    3
    >>> make_environment("lft", horizon=1_000)
    Traceback (most recent call last):
    ...
    risingsearch.errors.UnknownNameError: unknown environment 'lft'; did you mean ...
    """
    if not isinstance(name, str) or name not in _ENTRIES:
        raise unknown_name("environment", name, _ENTRIES)
    known = _parameters(name)
    for parameter in parameters:
        if parameter not in known:
            raise unknown_name(f"parameter of {name}:", parameter, known)
    for parameter, default in known.items():
        if default is ... and parameter not in parameters:
            msg = f"the environment {name} needs {parameter}=; it has no default"
            raise InvalidParameterError(msg)
    horizon = checked_int("horizon", horizon, 1)
    return ENVIRONMENTS[name](checked_generator(seed), horizon, **parameters)


def list_environments() -> list[EnvironmentInfo]:
    """Return what there is to know about every environment, in the order of names.

    Examples
    --------
    >>> [info.name for info in list_environments() if info.setting == "rested"][:3]
    ['concave', 'imdb', 'ltf']
    """
    return [
        EnvironmentInfo(
            name=name,
            parameters=_parameters(name),
            paper=PAPERS[entry.generator],
            summary=(inspect.getdoc(entry.generator) or "").splitlines()[0],
            setting=entry.setting,
        )
        for name, entry in sorted(_ENTRIES.items())
    ]


def _parameters(name: str) -> dict[str, Any]:
    signature = inspect.signature(ENVIRONMENTS[name])
    return {
        parameter.name: ...
        if parameter.default is parameter.empty
        else parameter.default
        for parameter in signature.parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
