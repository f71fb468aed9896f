"""Tables of the curves that an arm may follow, for the policies that know them."""

import numpy as np
from numpy.typing import ArrayLike

from risingsearch.errors import InvalidParameterError
from risingsearch.policies.arrays import Floats, zeros

EXPONENTS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)


def plateau_models(n_pulls: int, plateau: int = 100) -> Floats:
    """Return the falling plateaus of the rotting benchmark, (n_models, n_pulls).

    Parameters
    ----------
    n_pulls : int
        Pulls of each model, at least 1.
    plateau : int, default 100
        Pulls between two steps, at least 1.

    Returns
    -------
    ndarray of shape (n_models, n_pulls)
        The mean of every pull.

    Examples
    --------
    >>> plateau_models(5, plateau=2)[[0, -1]].round(2)
    array([[1.  , 0.93, 0.93, 0.9 , 0.9 ],
           [1.  , 0.76, 0.76, 0.64, 0.64]])
    """
    # Levine, Crammer, Mannor: "Rotting Bandits", NIPS 2017, section 5. The first one is
    # a pull shorter than the others.
    step = np.arange(1, n_pulls + 1) // plateau + 1.0
    table: Floats = np.power(step, -np.array(EXPONENTS)[:, np.newaxis])
    return table


def model_arrays(models: ArrayLike | None, max_pulls: int) -> tuple[Floats, Floats]:
    """Return the models, pull by pull, and their prefix sums."""
    table = plateau_models(max_pulls) if models is None else checked_models(models)
    if table.shape[1] < max_pulls:
        raise InvalidParameterError(
            f"models must cover the {max_pulls} pulls that an arm can give; these end "
            f"after {table.shape[1]}: give more, or set max_pulls"
        )
    by_pull = np.ascontiguousarray(table.T[:max_pulls])
    sums = zeros((max_pulls + 1, len(table)))
    np.cumsum(by_pull, axis=0, out=sums[1:])
    return by_pull, sums


def checked_models(models: ArrayLike) -> Floats:
    """Return ``models`` as an array, or raise an error."""
    try:
        table = np.asarray(models, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim == 2 and table.size and np.isfinite(table).all():
        return table
    raise InvalidParameterError(
        "models must be a table of finite numbers, (n_models, n_pulls), with the mean "
        f"of every pull under each model; got {models!r}"
    )
