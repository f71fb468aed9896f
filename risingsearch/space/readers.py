"""Readers of parameters: one for each library that describes them."""

from collections.abc import Callable

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.space.from_configspace import of_configspace
from risingsearch.space.from_lists import of_list
from risingsearch.space.from_mappings import is_form, of_mapping
from risingsearch.space.from_optuna import of_optuna
from risingsearch.space.from_scipy import of_draws, of_quantiles
from risingsearch.space.kinds import Kind

Reader = Callable[[str, object], Kind | None]
"""Takes a parameter's name and description; None if this is not of its library."""

READERS: list[Reader] = [
    of_quantiles,
    of_configspace,
    of_optuna,
    of_draws,
    of_list,
    of_mapping,
]
"""The first that knows a description reads it."""


def is_distribution(value: object) -> bool:
    """Return whether a value is a distribution of some library, or as plain data.

    Parameters
    ----------
    value : object
        What a space has for a parameter.

    Returns
    -------
    bool
        False for a list of values, and for a single value.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> is_distribution(uniform(0, 1)), is_distribution([0, 1])
    (True, False)
    """
    has_ends = all(hasattr(value, name) for name in ("low", "high", "log"))
    is_drawn = has_ends or hasattr(value, "rvs") or hasattr(value, "choices")
    return is_drawn or is_form(value)


def kind_of(name: str, value: object) -> Kind:
    """Return the kind of a parameter: a list, or a distribution of any library.

    Parameters
    ----------
    name : str
        The parameter, for messages.
    value : object
        A list of values, a distribution of SciPy, Optuna or ConfigSpace, one with
        ``rvs``, a mapping with a ``type``, or a kind.

    Returns
    -------
    Kind
        The values, along a coordinate from 0 to 1.

    Raises
    ------
    InvalidParameterError
        If the name is no text, or the value is none of these.

    Examples
    --------
    >>> from optuna.distributions import FloatDistribution
    >>> kind_of("rate", FloatDistribution(0.001, 1.0, log=True))
    Interval(low=0.001, high=1.0, log=True, step=None, whole=False)
    >>> kind_of("depth", [3, 2, 4]).listed
    [2, 3, 4]
    """
    if not isinstance(name, str) or not name:
        raise InvalidParameterError(
            f"the parameters of a space have names, as text; got {name!r}"
        )
    if isinstance(value, Kind):
        return value
    for read in READERS:
        kind = read(name, value)
        if kind is not None:
            return kind
    raise InvalidParameterError(
        f"a space must give {name!r} a list of values, not empty, or a distribution, "
        f"with rvs or of Optuna; got {shown(value)}"
    )
