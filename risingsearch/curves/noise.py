"""Noise of rewards around their mean: none, Gaussian, Bernoulli."""

from typing import NamedTuple

from risingsearch.checks import checked_choice, checked_float, checked_int
from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Rng

NONE, GAUSSIAN, BERNOULLI = range(3)
_KINDS = ("none", "gaussian", "bernoulli")


class Noise(NamedTuple):
    """A noise model; ``make_noise`` builds one.

    Good for stating the noise, which a published experiment often leaves open, and
    which decides its ranking.

    Parameters
    ----------
    kind : int
        0 for none, 1 for Gaussian, 2 for Bernoulli.
    sigma : float
        Standard deviation of the Gaussian noise.
    batch : int
        Trials of a Bernoulli pull.

    Examples
    --------
    >>> make_noise("bernoulli", batch=100)
    Noise(kind=2, sigma=1.0, batch=100)
    """

    kind: int
    sigma: float
    batch: int  # trials of a Bernoulli pull


NoiseLike = Noise | str | float
"""A noise model, its kind, or the standard deviation of Gaussian noise."""


def make_noise(
    kind: str = "gaussian",
    sigma: float = 1.0,
    *,
    batch: int = 1,
) -> Noise:
    """Return a noise model.

    Parameters
    ----------
    kind : {"none", "gaussian", "bernoulli"}, default "gaussian"
        ``"none"``: the reward is its mean. ``"gaussian"``: normal. ``"bernoulli"``: the
        share of successes among ``batch`` trials whose probability is the mean, so
        means must lie between 0 and 1.
    sigma : float, default 1.0
        Standard deviation of the Gaussian noise, in units of the reward, at least 0.
        Where an environment has its standard deviations, per arm or per round, it
        multiplies them.
    batch : int, default 1
        Trials per Bernoulli pull, at least 1; e.g. 100 for a mini-batch of 100 reviews.

    Returns
    -------
    Noise
        For ``make_environment`` and the ``create`` of every environment.

    Raises
    ------
    InvalidParameterError
        If a parameter is outside its range.

    Examples
    --------
    >>> from numpy.random import default_rng
    >>> rng = default_rng(0)
    >>> noisy(make_noise("gaussian", 0.1), 0.5, 1.0, rng)
    0.5126
    >>> noisy(make_noise("bernoulli", batch=100), 0.5, 1.0, rng)
    0.55
    """
    code = _KINDS.index(checked_choice("kind", kind, _KINDS))
    sigma = checked_float("sigma", sigma, 0.0)
    return Noise(code, sigma, checked_int("batch", batch, 1))


def checked_noise(
    noise: object,
    lowest: float,
    highest: float,
) -> Noise:
    """Return ``noise`` for means in a range, or raise an error.

    Examples
    --------
    >>> checked_noise(0.0, 0.0, 1.0), checked_noise("bernoulli", 0.0, 1.0)
    (Noise(kind=0, sigma=0.0, batch=1), Noise(kind=2, sigma=1.0, batch=1))
    """
    if isinstance(noise, str):
        noise = make_noise(noise)
    elif not isinstance(noise, Noise):
        sigma = checked_float("noise", noise, 0.0)
        noise = make_noise("gaussian" if sigma > 0.0 else "none", sigma)
    if noise.kind == BERNOULLI and not 0.0 <= lowest <= highest <= 1.0:
        raise InvalidParameterError(
            "Bernoulli noise needs means from 0 to 1; these reach from "
            f"{lowest:g} to {highest:g}: rescale them or choose another noise"
        )
    return noise


def noisy(
    noise: Noise,
    mean: float,
    scale: float,
    rng: Rng,
) -> float:
    """Return a reward of this mean; ``scale`` multiplies the standard deviation.

    Parameters
    ----------
    noise : Noise
        The noise model.
    mean : float
        The mean of the pull.
    scale : float
        Standard deviation of the arm, by which Gaussian noise is multiplied.
    rng : numpy.random.Generator
        Draws the noise.

    Returns
    -------
    float
        The reward.

    Examples
    --------
    >>> from numpy.random import default_rng
    >>> noisy(make_noise("none"), 0.5, 1.0, default_rng(0))
    0.5
    """
    if noise.kind == GAUSSIAN:
        return mean + noise.sigma * scale * rng.standard_normal()
    if noise.kind == BERNOULLI:
        if noise.batch > 1:
            # A mean of exactly 0 or 1 may have been rounded across the limit.
            return rng.binomial(noise.batch, min(1.0, max(0.0, mean))) / noise.batch
        if rng.random() < mean:
            return 1.0
        return 0.0
    return mean
