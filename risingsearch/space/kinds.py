"""Kinds of parameters: the values of each, along a coordinate from 0 to 1."""

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from risingsearch.errors import InvalidParameterError
from risingsearch.identity.comparison import described
from risingsearch.json_values import plain
from risingsearch.space.values import exact, is_between, is_number, key_of, rounding_of

Places = NDArray[np.float64]

ROOT = math.sqrt(0.5)
"""A category's own feature, so that two categories are 1 apart."""
NARROW = 1e-6
"""Width of a range, by its lower end, where a logarithm bends no more."""
INSIDE = 1e-12
"""Least distance from 0 and 1 of a place whose quantile is asked for."""


class Kind(ABC):
    """The values of a parameter, along its coordinate from 0 to 1.

    A kind defines ``place`` and ``described``, and either ``value`` or ``values_at``.

    Examples
    --------
    >>> class Halves(Kind):
    ...     def value(self, place):
    ...         return place / 2
    ...
    ...     def place(self, value):
    ...         return 2 * value
    ...
    ...     def described(self):
    ...         return "halves"
    >>> Halves().values_at(np.array([0.5, 1.0]))
    [0.25, 0.5]
    """

    is_category = False  # whether values near each other have nothing in common
    is_finite = False  # whether the values are a list

    @property
    def listed(self) -> Sequence[Any] | None:
        """All values; None if there is no end of them."""
        return None

    def value(self, place: float) -> Any:
        """Return the value at a place."""
        return self.values_at(np.array([place]))[0]

    def values_at(self, places: Places) -> Sequence[object]:
        """Return the values at some places."""
        return [self.value(place) for place in places.tolist()]

    @abstractmethod
    def place(self, value: Any) -> float:
        """Return the place of a value, the middle of its part of the coordinate."""

    def has(self, value: object) -> bool:
        """Return whether this is one of the values, as far as that is known."""
        return True

    def snapped(self, places: Places) -> Places:
        """Return the places of the values at these places."""
        return places

    def columns(self, places: Places) -> list[Places]:
        """Return the features of the values at these places, each of shape (n,)."""
        return [self.snapped(places)]

    @abstractmethod
    def described(self) -> object:
        """Return all that tells it from others, as JSON."""


@dataclass(frozen=True)
class Interval(Kind):
    """Numbers between two ends, even or in the logarithm; perhaps at equal steps.

    Parameters
    ----------
    low, high : float
        The ends, which are values too.
    log : bool, default False
        Whether the logarithm is even along the coordinate.
    step : float, optional
        Distance of the values, counted from the lower end; whole numbers have 1.
    whole : bool, default False
        Whether the values are integers.

    Raises
    ------
    InvalidParameterError
        If a float cannot hold the width, or the number of steps.

    Examples
    --------
    >>> rate = Interval(0.001, 1.0, log=True)
    >>> round(rate.value(0.5), 4), rate.place(0.1), rate.has(2.0)
    (0.0316, 0.6666666666666667, False)
    >>> Interval(1, 9, step=4, whole=True).listed
    range(1, 10, 4)
    """

    _rounds_at_ends: ClassVar = True  # to whole numbers, from both sides
    low: float
    high: float
    log: bool = False
    step: float | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        width = self.high - self.low
        if not (is_number(width) and is_number(width / self._step)):
            steps = ""
            if self.step:
                steps = f" in steps of {self.step:g}"
            raise InvalidParameterError(
                f"the numbers from {self.low:g} to {self.high:g}{steps} are more than "
                "a float can hold: bring the ends nearer together"
            )
        if self.log and self.whole and 0 < width < NARROW * self.low:
            # There the logarithm is even, and of large numbers too coarse.
            object.__setattr__(self, "log", False)

    def _ends(self) -> tuple[float, float]:
        """Return the ends of the coordinate, before it is scaled to 0 and 1."""
        if not self.log:
            return self.low, self.high
        beyond = 0.0
        if self.whole and self._rounds_at_ends:
            beyond = 0.5
        low = np.log(self.low - beyond)
        high = np.log(self.high + beyond)
        return float(low), float(high)

    @property
    def _n_steps(self) -> int | None:
        """How many values there are at equal distances; None without these."""
        if self.log:
            return None
        if self.whole:
            width = int(self.high - self.low)
            return width // int(self._step) + 1
        if not self.step:
            return None
        exact_width = exact(self.high) - exact(self.low)
        return int(exact_width / exact(self.step)) + 1

    @property
    def _step(self) -> float:
        return self.step or 1

    def _at(self, k: int) -> float:
        if self.whole:
            return int(self.low) + k * int(self._step)
        number = exact(self.low) + k * exact(self._step)
        return float(number)

    def _numbers(self, places: Places) -> Places:
        """Return the numbers at these places, where they have no equal distances."""
        low, high = self._ends()
        numbers = low + places * (high - low)
        if self.log:
            numbers = np.exp(numbers)
        numbers = np.clip(numbers, self.low, self.high)
        if self.whole:
            return np.rint(numbers)
        return numbers

    def _places(self, numbers: float | Places) -> Any:
        """Return the places of such numbers."""
        low, high = self._ends()
        if self.log:
            numbers = np.log(numbers, dtype=float)
        return (numbers - low) / (high - low)

    @property
    def listed(self) -> Sequence[float] | None:
        if self.whole:
            end = int(self.high) + 1
            return range(int(self.low), end, int(self._step))
        n_steps = self._n_steps
        if n_steps is None:
            return None
        return [self._at(k) for k in range(n_steps)]

    def values_at(self, places: Places) -> list[float]:
        n_steps = self._n_steps
        if n_steps:
            last = n_steps - 1
            steps = (int(place * n_steps) for place in places.tolist())
            return [self._at(min(k, last)) for k in steps]
        numbers: list[float] = self._numbers(places).tolist()
        if self.whole:
            return list(map(int, numbers))
        return numbers

    def place(self, value: float) -> float:
        number = min(max(value, self.low), self.high)
        n_steps = self._n_steps
        if n_steps:
            k = round((number - self.low) / self._step)
            k = min(k, n_steps - 1)
            return (k + 0.5) / n_steps
        if self.low == self.high:
            return 0.5
        return float(self._places(number))

    def has(self, value: object) -> bool:
        if not is_between(value, self.low, self.high):
            return False
        if self.whole:
            return isinstance(value, Integral) and value in (self.listed or ())
        if self._n_steps is None:
            return True
        step = self._step
        tolerance = min(rounding_of(value), step / 4)
        tolerance = max(tolerance, 1e-6 * step)
        nearest = self.value(self.place(value))
        return bool(abs(nearest - float(value)) <= tolerance)

    def snapped(self, places: Places) -> Places:
        if self.low == self.high:
            return np.full_like(places, 0.5)
        n_steps = self._n_steps
        if n_steps:
            steps = np.floor(places * n_steps)
            steps = np.minimum(steps, n_steps - 1)
            return (steps + 0.5) / n_steps
        if not self.whole:
            return places
        numbers = self._numbers(places)
        snapped: Places = self._places(numbers)
        return snapped

    def described(self) -> object:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Uneven(Interval):
    """Numbers between two ends with a distribution: ConfigSpace's normal or beta.

    Parameters
    ----------
    low, high, log, step, whole
        As of ``Interval``.
    within : object
        The distribution along the even coordinate, with ``cdf`` and ``ppf``.
    text : str
        Tells it from others.

    Examples
    --------
    >>> from scipy.stats import beta
    >>> Uneven(0.0, 10.0, within=beta(2, 2), text="beta").value(0.5)
    5.0
    """

    _rounds_at_ends: ClassVar = False
    within: Any = None  # of scipy, from 0 to 1
    text: str = ""

    def values_at(self, places: Places) -> list[float]:
        return super().values_at(self.within.ppf(places))

    def place(self, value: float) -> float:
        return float(self.within.cdf(super().place(value)))

    def snapped(self, places: Places) -> Places:
        if not self.whole:
            return places
        even = super().snapped(self.within.ppf(places))
        snapped: Places = self.within.cdf(even)
        return snapped

    def described(self) -> object:
        return {"distribution": self.text}


@dataclass(frozen=True)
class Quantiles(Kind):
    """Numbers of a distribution, at the places of its quantiles.

    Parameters
    ----------
    distribution : object
        One with ``cdf`` and ``ppf``, as scipy's, or with ``cdf`` and ``inv_cdf``, as
        ``statistics.NormalDist``.

    Examples
    --------
    >>> from statistics import NormalDist
    >>> normal = Quantiles(NormalDist(mu=3.0))
    >>> normal.value(0.5), normal.place(3.0)
    (3.0, 0.5)
    """

    distribution: Any

    @property
    def _is_discrete(self) -> bool:
        return hasattr(self.distribution, "pmf")

    def values_at(self, places: Places) -> list[float]:
        inside = np.clip(places, INSIDE, 1.0 - INSIDE)
        if not hasattr(self.distribution, "ppf"):
            return [self.distribution.inv_cdf(place) for place in inside.tolist()]
        values = np.asarray(self.distribution.ppf(inside), dtype=float)
        numbers: list[float] = values.tolist()
        if self._is_discrete:
            return list(map(int, numbers))
        return numbers

    def place(self, value: float) -> float:
        return float(self._places(value))

    def _places(self, values: float | Places) -> Any:
        below = self.distribution.cdf(values)
        if self._is_discrete:
            return below - 0.5 * self.distribution.pmf(values)
        return below

    def has(self, value: object) -> bool:
        if self._is_discrete and not isinstance(value, Integral):
            return False
        low = -math.inf
        high = math.inf
        if hasattr(self.distribution, "support"):
            low, high = self.distribution.support()
        return is_between(value, low, high)

    def snapped(self, places: Places) -> Places:
        if not self._is_discrete:
            return places
        inside = np.clip(places, INSIDE, 1.0 - INSIDE)
        values = self.distribution.ppf(inside)
        return np.asarray(self._places(values), dtype=float)

    def described(self) -> object:
        frozen = self.distribution
        name = getattr(getattr(frozen, "dist", None), "name", None)  # of scipy
        if name is None:
            return described(frozen)
        return {
            "distribution": name,
            "of": described((frozen.args, frozen.kwds)),
        }


class Choices(Kind):
    """Some values, each as likely as its weight; numbers among themselves in order.

    Parameters
    ----------
    values : iterable of object
        The values; those that come up again add to the weight.
    weights : iterable of float, optional
        The weight of each value; by default they are the same.
    ordered : bool, default False
        Whether neighbours are alike, as of numbers.

    Examples
    --------
    >>> sizes = Choices([64, 16, 32])
    >>> sizes.listed, sizes.place(32), sizes.is_category
    ([16, 32, 64], 0.5, False)
    >>> Choices(["adam", "sgd"], weights=[3, 1]).value(0.7)
    'adam'
    """

    is_finite = True

    def __init__(
        self,
        values: Iterable[object],
        weights: Iterable[float] | None = None,
        *,
        ordered: bool = False,
    ) -> None:
        listed = [plain(value) for value in values]
        if weights is None:
            weights = [1.0] * len(listed)
        first: dict[Hashable, Any] = {}
        total: defaultdict[Hashable, float] = defaultdict(float)
        for value, weight in zip(listed, weights, strict=True):
            key = key_of(value)
            first.setdefault(key, value)
            total[key] += float(weight)
        self._is_numeric = all(map(is_number, first.values()))
        keys = list(first)
        if self._is_numeric:
            keys.sort(key=first.__getitem__)
        self.values = [first[key] for key in keys]
        self.is_category = not (ordered or self._is_numeric)
        self._codes = {key: code for code, key in enumerate(keys)}
        parts = np.array([total[key] for key in keys])
        whole = parts.sum()
        self._ends = np.cumsum(parts) / whole
        self._middles = self._ends - 0.5 * parts / whole

    def _code_of(self, value: object) -> int | None:
        code = self._codes.get(key_of(value))
        if code is not None:
            return code
        # Of some objects the digest differs from time to time.
        for k, known in enumerate(self.values):
            if known is value:
                return k
        return None

    @property
    def listed(self) -> Sequence[object]:
        return self.values

    def has(self, value: object) -> bool:
        if self._code_of(value) is not None:
            return True
        # Of numbers, 1 is 1.0.
        return self._is_numeric and any(is_between(value, v, v) for v in self.values)

    def codes(self, places: Places) -> NDArray[np.int64]:
        """Return the numbers of the values at these places; -1 for none of them."""
        codes = np.searchsorted(self._ends, places, side="right")
        codes = np.minimum(codes, len(self.values) - 1)
        return np.where(np.isnan(places), -1, codes)

    def values_at(self, places: Places) -> list[object]:
        return [self.values[code] for code in self.codes(places).tolist()]

    def place(self, value: object) -> float:
        code = self._code_of(value)
        if code is None and self._is_numeric and is_number(value):
            distances = np.array(self.values, dtype=float) - float(value)
            code = int(np.argmin(np.abs(distances)))
        if code is not None:
            return float(self._middles[code])
        if self.is_category:
            return math.nan
        return 0.5

    def snapped(self, places: Places) -> Places:
        middles = self._middles[self.codes(places)]
        return np.where(np.isnan(places), math.nan, middles)

    def columns(self, places: Places) -> list[Places]:
        n_values = len(self.values)
        if n_values == 1:
            return []
        codes = self.codes(places)
        if self.is_category:
            return [ROOT * (codes == code) for code in range(n_values)]
        positions = codes / (n_values - 1)
        return [np.where(codes < 0, 0.5, positions)]

    def described(self) -> object:
        return {
            "values": [described(value) for value in self.values],
            "ends": self._ends.tolist(),
        }


@dataclass(frozen=True)
class Drawn(Kind):
    """Values that can be drawn, and have no places: a distribution with ``rvs``.

    Parameters
    ----------
    distribution : object
        Its ``rvs(random_state=...)`` draws a value.

    Examples
    --------
    >>> class Coin:
    ...     def rvs(self, random_state):
    ...         return "heads" if random_state.rand() < 0.5 else "tails"
    >>> Drawn(Coin()).value(0.3)
    'heads'
    """

    distribution: Any

    def value(self, place: float) -> Any:
        seed = int(place * 2**32)
        random = np.random.RandomState(seed)
        return plain(self.distribution.rvs(random_state=random))

    def place(self, value: object) -> float:
        return 0.5

    def described(self) -> object:
        return described(self.distribution)


def place_of(value: object, kind: Kind) -> float:
    """Return the place of any value, also of one that the kind does not have.

    Parameters
    ----------
    value : object
        What a configuration has for the parameter.
    kind : Kind
        The values of the parameter.

    Returns
    -------
    float
        From 0 to 1; 0.5 if the parameter is numeric and the value is not, NaN for an
        unknown category.

    Examples
    --------
    >>> place_of("auto", Interval(0.0, 4.0)), place_of(1.0, Interval(0.0, 4.0))
    (0.5, 0.25)
    """
    if kind.is_finite or is_number(value):
        return kind.place(value)
    return 0.5
