"""Environments, which give the reward of each pull: all of them by name.

Their arms rise or fall with pulls, drift with time, or replay recorded curves; an
environment also computes the reward of the best policy.
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

from risingsearch.arms import Params
from risingsearch.checks import checked_generator, checked_int, keyword_defaults
from risingsearch.curves import (
    raven,
    rising,
    rotting,
    shifting,
    smooth,
)
from risingsearch.curves.base import Environment
from risingsearch.curves.clicks import ClickLog, click_log, make_click_log
from risingsearch.curves.files import LoadedCurves, load_curves
from risingsearch.curves.noise import Noise, make_noise
from risingsearch.curves.rested import CurveTable
from risingsearch.curves.restless import DriftingMeans, Sinusoid
from risingsearch.errors import InvalidParameterError, unknown_name
from risingsearch.policies.arrays import Rng

__all__ = [
    "ENVIRONMENTS",
    "ClickLog",
    "CurveTable",
    "DriftingMeans",
    "Environment",
    "EnvironmentInfo",
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


class EnvironmentInfo(NamedTuple):
    """Description of an environment: its parameters and its properties.

    Parameters
    ----------
    name : str
        Its registered name.
    parameters : dict
        Names and defaults of the arguments besides horizon and seed;
        ``...`` where there is no default.
    paper : str
        Where it comes from, with the section.
    summary : str
        The first line of its documentation.
    setting : str
        "rested" (an arm moves when it is pulled) or "restless" (with the rounds).

    Examples
    --------
    >>> [info.name for info in list_environments() if "NIPS" in info.paper]
    ['rotting-anv', 'rotting-av', 'rotting-np']
    """

    name: str
    parameters: Params
    paper: str
    summary: str
    setting: str


CURE = "Song et al., arXiv 2602.10727"
RAVEN = "Fang et al., From Theory to Practice with RAVEN-UCB"
ROTTING = 'Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017, section 5'
SMOOTH = "Jia et al., Smooth Non-Stationary Bandits"
_ENTRIES: dict[str, tuple[Callable[..., Environment], str]] = {
    "add-remove": (shifting.add_remove, f"{RAVEN}, table 1"),
    "bernoulli": (raven.bernoulli, f"{RAVEN}, section 4.1"),
    "blip": (shifting.blip, f"{RAVEN}, table 1"),
    "clicks": (smooth.click_counterfactual, f"{SMOOTH}, section 7.3"),
    "clicks-fitted": (smooth.click_fitted, f"{SMOOTH}, section 7.3"),
    "concave": (rising.concave, f"{CURE}, appendix A.1.2"),
    "gradual": (shifting.gradual, f"{RAVEN}, table 1"),
    "imdb": (rising.imdb_replay, f"Metelli et al. 2022, ICML; {CURE}, section 6.3"),
    "incremental": (shifting.incremental, f"{RAVEN}, table 1"),
    "localised-jump": (shifting.localised_jump, f"{RAVEN}, table 1"),
    "logistics": (raven.logistics, f"{RAVEN}, section 4.3"),
    "ltf": (rising.ltf, f"{CURE}, appendix A.1.1"),
    "periodic": (shifting.periodic, f"{RAVEN}, table 1"),
    "rotting-anv": (rotting.rotting_anv, f"{ROTTING}, ANV"),
    "rotting-av": (rotting.rotting_av, f"{ROTTING}, AV"),
    "rotting-np": (rotting.rotting_np, f"{ROTTING}, non-parametric"),
    "sensitivity-blips": (raven.sensitivity_blips, f"{RAVEN}, fig. 3"),
    "sensitivity-incremental": (raven.sensitivity_incremental, f"{RAVEN}, fig. 3"),
    "sensitivity-variance": (raven.sensitivity_variance, f"{RAVEN}, fig. 3"),
    "sinusoid": (smooth.sinusoid, f"{SMOOTH}, section 7.2"),
    "two-arm": (rising.two_arm, f"{CURE}, fig. 1"),
    "variance-drift": (shifting.variance_drift, f"{RAVEN}, table 1"),
}
ENVIRONMENTS = {name: generator for name, (generator, _) in _ENTRIES.items()}
RESTED = (rising.__name__, rotting.__name__)


def make_environment(
    name: str,
    horizon: int,
    seed: int | Rng | None = None,
    **parameters: object,
) -> Environment:
    """Build an environment by its registered name.

    Parameters
    ----------
    name : str
        A registered name, see ``list_environments``.
    horizon : int
        Number of rounds it is meant for, at least 1.
    seed : int or numpy.random.Generator, optional
        Draws the arms: the same seed gives the same arms.
    **parameters
        The environment's own, see ``list_environments``.

    Returns
    -------
    Environment
        For ``simulate``, or to be asked for its ``mean`` and its ``optimal`` sums.

    Raises
    ------
    InvalidParameterError
        If there is no such environment or parameter (the message names the closest
        one), or a value is missing or outside its range.

    Examples
    --------
    >>> arms = make_environment("two-arm", horizon=30_000)
    >>> arms.optimal([30_000])
    array([20000.5])
    >>> make_environment("lft", horizon=1_000)
    Traceback (most recent call last):
    ...
    risingsearch.errors.InvalidParameterError: unknown environment 'lft'; did you ...
    """
    if not isinstance(name, str) or name not in ENVIRONMENTS:
        raise unknown_name("environment", name, ENVIRONMENTS)
    defaults = keyword_defaults(ENVIRONMENTS[name])
    for parameter in parameters:
        if parameter not in defaults:
            raise unknown_name(f"parameter of {name}:", parameter, defaults)
    for parameter, default in defaults.items():
        if default is ... and parameter not in parameters:
            raise InvalidParameterError(
                f"the environment {name} needs {parameter}=; it has no default"
            )
    horizon = checked_int("horizon", horizon, 1)
    return ENVIRONMENTS[name](checked_generator(seed), horizon, **parameters)


def list_environments() -> list[EnvironmentInfo]:
    """Return a description of every environment, in the order of names.

    Returns
    -------
    list of EnvironmentInfo
        One for each name that ``make_environment`` takes.

    Examples
    --------
    >>> [info.name for info in list_environments() if info.setting == "rested"][:3]
    ['concave', 'imdb', 'ltf']
    """
    return [
        EnvironmentInfo(
            name=name,
            parameters=dict(keyword_defaults(ENVIRONMENTS[name])),
            paper=paper,
            summary=(inspect.getdoc(generator) or "").splitlines()[0],
            setting="rested" if generator.__module__ in RESTED else "restless",
        )
        for name, (generator, paper) in sorted(_ENTRIES.items())
    ]
