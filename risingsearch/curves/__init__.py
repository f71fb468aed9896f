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
from risingsearch.curves.base import Environment
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

RISING = "Song et al., arXiv 2602.10727"
ROTTING = "Levine, Crammer, Mannor 2017, NIPS"
SMOOTH = "Jia et al., Smooth Non-Stationary Bandits"
RAVEN = "Fang et al., From Theory to Practice with RAVEN-UCB"


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
    paper: str
    setting: str


_ENTRIES: dict[str, _Entry] = {
    "add-remove": _Entry(shifting.add_remove, f"{RAVEN}, table 1", RESTLESS),
    "bernoulli": _Entry(raven.bernoulli, f"{RAVEN}, section 4.1", RESTLESS),
    "blip": _Entry(shifting.blip, f"{RAVEN}, table 1", RESTLESS),
    "clicks": _Entry(smooth.click_counterfactual, f"{SMOOTH}, section 7.3", RESTLESS),
    "clicks-fitted": _Entry(smooth.click_fitted, f"{SMOOTH}, section 7.3", RESTLESS),
    "concave": _Entry(rising.concave, f"{RISING}, appendix A.1.2", RESTED),
    "gradual": _Entry(shifting.gradual, f"{RAVEN}, table 1", RESTLESS),
    "imdb": _Entry(
        rising.imdb_replay, f"Metelli et al. 2022, ICML; {RISING}, section 6.3", RESTED
    ),
    "incremental": _Entry(shifting.incremental, f"{RAVEN}, table 1", RESTLESS),
    "localised-jump": _Entry(shifting.localised_jump, f"{RAVEN}, table 1", RESTLESS),
    "logistics": _Entry(raven.logistics, f"{RAVEN}, section 4.3", RESTLESS),
    "ltf": _Entry(rising.ltf, f"{RISING}, appendix A.1.1", RESTED),
    "periodic": _Entry(shifting.periodic, f"{RAVEN}, table 1", RESTLESS),
    "rotting-anv": _Entry(rotting.rotting_anv, f"{ROTTING}, section 5", RESTED),
    "rotting-av": _Entry(rotting.rotting_av, f"{ROTTING}, section 5", RESTED),
    "rotting-np": _Entry(rotting.rotting_np, f"{ROTTING}, section 5", RESTED),
    "sensitivity-blips": _Entry(raven.sensitivity_blips, f"{RAVEN}, fig. 3", RESTLESS),
    "sensitivity-incremental": _Entry(
        raven.sensitivity_incremental, f"{RAVEN}, fig. 3", RESTLESS
    ),
    "sensitivity-variance": _Entry(
        raven.sensitivity_variance, f"{RAVEN}, fig. 3", RESTLESS
    ),
    "sinusoid": _Entry(smooth.sinusoid, f"{SMOOTH}, section 7.2", RESTLESS),
    "two-arm": _Entry(rising.two_arm, f"{RISING}, fig. 1", RESTED),
    "variance-drift": _Entry(shifting.variance_drift, f"{RAVEN}, table 1", RESTLESS),
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

    Returns
    -------
    Environment

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

    Returns
    -------
    list of EnvironmentInfo

    Examples
    --------
    >>> [info.name for info in list_environments() if info.setting == "rested"][:3]
    ['concave', 'imdb', 'ltf']
    """
    return [
        EnvironmentInfo(
            name=name,
            parameters=_parameters(name),
            paper=entry.paper,
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
