"""Parameters of a space: the values of each, along a coordinate from 0 to 1."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from risingsearch.checks import shown
from risingsearch.comparison import described
from risingsearch.errors import InvalidParameterError
from risingsearch.fingerprint import digest
from risingsearch.json_values import plain

Places = NDArray[np.float64]

ROOT = math.sqrt(0.5)
NARROW = 1e-6  # width of a range by its lower end, where a logarithm bends no more


def is_number(value: Any) -> bool:
    """Return whether a parameter's value is a number that a float can hold."""
    if type(value) is float:  # most are
        return math.isfinite(value)
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # it is an integer that no float can hold
        return False


def key_of(value: Any) -> Any:
    """Return a hashable, equal for values of one type and content, as all NaN."""
    value = plain(value)
    if isinstance(value, tuple):
        return tuple(map(key_of, value))
    if type(value) is object:  # a mark, as of what is absent
        return value
    is_own = value is None or (isinstance(value, (str, int, float)) and value == value)
    # 1, 1.0 and True may mean different things.
    return type(value).__name__, value if is_own else digest(value)


def key_of_all(params: Mapping[str, Any]) -> Hashable:
    """Return the same for configurations of the same values."""
    return frozenset((name, key_of(value)) for name, value in params.items())


def is_between(value: Any, low: float, high: float) -> bool:
    """Return whether a value is a number between two ends, except for rounding."""
    if not is_number(value):
        return False
    # A whole number is compared exactly, as large as it may be: no 0.0 is added.
    rounding = 0 if isinstance(value, Integral) else _rounding_of(value)
    return bool(low - rounding <= value <= high + rounding)


def _rounding_of(value: Any) -> float:
    """Return how far a number may be from the one it stands for, 32 bits at best."""
    eps = float(np.finfo(value).eps) if isinstance(value, np.floating) else 0.0
    return max(eps, 2.0**-23) * abs(float(value))


class Kind(ABC):
    """The values of a parameter, along its coordinate from 0 to 1."""

    is_category = False  # whether values near each other have nothing in common
    is_finite = False  # whether the values are a list

    @property
    def listed(self) -> Sequence[Any] | None:
        """All values; None if there is no end of them."""
        return None

    def value(self, place: float) -> Any:
        """Return the value at a place; define this or ``values_at``."""
        return self.values_at(np.array([place]))[0]

    def values_at(self, places: Places) -> list[Any]:
        """Return the values at some places."""
        return [self.value(place) for place in places.tolist()]

    @abstractmethod
    def place(self, value: Any) -> float:
        """Return the place of a value, the middle of its part of the coordinate."""

    def has(self, value: Any) -> bool:
        """Return whether this is one of the values, as far as that is known."""
        return True

    def snapped(self, places: Places) -> Places:
        """Return the places of the values at these places."""
        return places

    def columns(self, places: Places) -> list[Places]:
        """Return the features of the values at these places."""
        return [self.snapped(places)]

    @abstractmethod
    def described(self) -> Any:
        """Return all that tells it from others, as JSON."""


def exact(number: Any) -> Decimal:
    """Return a number as it is written: 0.1 and 0.2 are 0.3."""
    return Decimal(repr(plain(number)))


@dataclass(frozen=True)
class Interval(Kind):
    """Numbers between two ends, even or in the logarithm; perhaps at equal steps."""

    low: float
    high: float
    log: bool = False
    step: float | None = None  # from the lower end; whole numbers have 1 at least
    whole: bool = False

    def __post_init__(self) -> None:
        width = self.high - self.low
        if not (is_number(width) and is_number(width / (self.step or 1))):
            steps = f" in steps of {self.step:g}" if self.step else ""
            raise InvalidParameterError(
                f"the numbers from {self.low:g} to {self.high:g}{steps} are more than "
                "a float can hold: bring the ends nearer together"
            )
        if self.log and self.whole and 0 < width < NARROW * self.low:
            # There the logarithm is even, and of large numbers too coarse.
            object.__setattr__(self, "log", False)

    def _ends(self) -> tuple[float, float]:
        ends = self.low, self.high
        if self.log:
            half = 0.5 if self.whole else 0.0
            return float(np.log(ends[0] - half)), float(np.log(ends[1] + half))
        return ends

    @property
    def _n_steps(self) -> int | None:
        """How many values there are at equal distances; None without these."""
        if self.log or not (self.whole or self.step):
            return None
        if self.whole:
            return int(self.high - self.low) // int(self.step or 1) + 1
        low, high = exact(self.low), exact(self.high)
        return int((high - low) / exact(self.step or 1)) + 1

    def _at(self, k: int) -> float | int:
        if self.whole:
            return int(self.low) + k * int(self.step or 1)
        return float(exact(self.low) + k * exact(self.step or 1))

    @property
    def listed(self) -> Sequence[Any] | None:
        if self.whole:
            return range(int(self.low), int(self.high) + 1, int(self.step or 1))
        n_steps = self._n_steps
        return None if n_steps is None else [self._at(k) for k in range(n_steps)]

    def value(self, place: float) -> float | int:
        low, high = self._ends()
        if n_steps := self._n_steps:
            return self._at(min(int(place * n_steps), n_steps - 1))
        found = low + place * (high - low)
        found = float(np.exp(found)) if self.log else found
        found = min(max(found, self.low), self.high)
        return round(found) if self.whole else float(found)

    def place(self, value: Any) -> float:
        low, high = self._ends()
        number = min(max(value, self.low), self.high)
        if n_steps := self._n_steps:
            k = round((number - self.low) / (self.step or 1))
            return float((min(k, n_steps - 1) + 0.5) / n_steps)
        number = float(np.log(number)) if self.log else number
        return float((number - low) / (high - low)) if high > low else 0.5

    def has(self, value: Any) -> bool:
        if not is_between(value, self.low, self.high):
            return False
        if self.whole:
            return isinstance(value, Integral) and value in (self.listed or ())
        step = self.step or 1
        most = max(1e-6 * step, min(_rounding_of(value), step / 4))
        is_at_step = abs(self.value(self.place(value)) - float(value)) <= most
        return self._n_steps is None or is_at_step

    def snapped(self, places: Places) -> Places:
        if self.low == self.high:
            return np.full_like(places, 0.5)
        if n_steps := self._n_steps:
            return (np.minimum(np.floor(places * n_steps), n_steps - 1) + 0.5) / n_steps
        if not self.whole:
            return places
        low, high = self._ends()
        whole = np.rint(np.exp(low + places * (high - low)))
        found: Places = np.log(np.clip(whole, self.low, self.high))
        return (found - low) / (high - low)

    def described(self) -> Any:
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Uneven(Interval):
    """Numbers between two ends with a distribution: ConfigSpace's normal or beta."""

    within: Any = None  # of scipy, from 0 to 1
    text: str = ""

    def _ends(self) -> tuple[float, float]:
        ends = np.array([self.low, self.high])
        low, high = (np.log(ends) if self.log else ends).tolist()
        return low, high

    def value(self, place: float) -> float | int:
        return self.values_at(np.array([place]))[0]

    def values_at(self, places: Places) -> list[float | int]:
        return [super(Uneven, self).value(at) for at in self.within.ppf(places)]

    def place(self, value: Any) -> float:
        return float(self.within.cdf(super().place(value)))

    def snapped(self, places: Places) -> Places:
        if not self.whole:
            return places
        inside = super().snapped(self.within.ppf(places))
        return np.asarray(self.within.cdf(inside), dtype=float)

    def described(self) -> Any:
        return {"distribution": self.text}


@dataclass(frozen=True)
class Quantiles(Kind):
    """Numbers of a distribution with ``cdf`` and ``ppf`` (scipy) or ``inv_cdf``."""

    distribution: Any

    @property
    def _is_discrete(self) -> bool:
        return hasattr(self.distribution, "pmf")

    def values_at(self, places: Places) -> list[float | int]:
        own, inside = self.distribution, np.clip(places, 1e-12, 1.0 - 1e-12)
        if not hasattr(own, "ppf"):
            return [own.inv_cdf(place) for place in inside.tolist()]
        found = np.asarray(own.ppf(inside), dtype=float).tolist()
        return list(map(int, found)) if self._is_discrete else found

    def place(self, value: Any) -> float:
        return float(self._places(value))

    def _places(self, values: Any) -> Any:
        below = self.distribution.cdf(values)
        half = 0.5 * self.distribution.pmf(values) if self._is_discrete else 0.0
        return below - half

    def has(self, value: Any) -> bool:
        own: Any = self.distribution
        ends = own.support() if hasattr(own, "support") else (-math.inf, math.inf)
        is_whole = isinstance(value, Integral) or not self._is_discrete
        return is_whole and is_between(value, *ends)

    def snapped(self, places: Places) -> Places:
        if not self._is_discrete:
            return places
        inside = np.clip(places, 1e-12, 1.0 - 1e-12)
        return np.asarray(self._places(self.distribution.ppf(inside)), dtype=float)

    def described(self) -> Any:
        own: Any = self.distribution
        name = getattr(getattr(own, "dist", None), "name", None)  # of scipy
        if name is None:
            return described(own)
        return {"distribution": name, "of": described((own.args, own.kwds))}


class Choices(Kind):
    """Some values, each as likely as its weight; numbers among themselves in order."""

    is_finite = True

    def __init__(
        self,
        values: Iterable[Any],
        weights: Iterable[float] | None = None,
        *,
        ordered: bool = False,
    ) -> None:
        listed = [plain(value) for value in values]
        shares = [1.0] * len(listed) if weights is None else [float(w) for w in weights]
        found: dict[Any, Any] = {}
        total: dict[Any, float] = {}
        for value, share in zip(listed, shares, strict=True):
            key = key_of(value)
            found.setdefault(key, value)
            total[key] = total.get(key, 0.0) + share
        is_numeric = all(is_number(value) for value in found.values())
        keys = sorted(found, key=found.__getitem__) if is_numeric else list(found)
        self.values = [found[key] for key in keys]
        self.is_category = not (ordered or is_numeric)
        self._codes = {key: code for code, key in enumerate(keys)}
        self._is_numeric = is_numeric
        parts = np.array([total[key] for key in keys])
        self._ends = np.cumsum(parts) / parts.sum()
        self._middles = self._ends - 0.5 * parts / parts.sum()

    def _code_of(self, value: Any) -> int | None:
        code = self._codes.get(key_of(value))
        same = (code for code, one in enumerate(self.values) if one is value)
        return next(same, None) if code is None else code

    @property
    def listed(self) -> Sequence[Any]:
        return self.values

    def has(self, value: Any) -> bool:
        # Of numbers, 1 is 1.0.
        is_near = self._is_numeric and any(is_between(value, v, v) for v in self.values)
        return is_near or self._code_of(value) is not None

    def codes(self, places: Places) -> NDArray[np.int64]:
        """Return the numbers of the values at these places; -1 for none of them."""
        codes = np.searchsorted(self._ends, places, side="right")
        return np.where(np.isnan(places), -1, np.minimum(codes, len(self.values) - 1))

    def values_at(self, places: Places) -> list[Any]:
        return [self.values[code] for code in self.codes(places).tolist()]

    def place(self, value: Any) -> float:
        code = self._code_of(value)
        if code is None and is_number(value) and self._is_numeric:
            numbers = np.array([float(one) for one in self.values])
            code = int(np.argmin(np.abs(numbers - float(value))))
        if code is None:
            return math.nan if self.is_category else 0.5
        return float(self._middles[code])

    def snapped(self, places: Places) -> Places:
        return np.where(np.isnan(places), math.nan, self._middles[self.codes(places)])

    def columns(self, places: Places) -> list[Places]:
        codes, n = self.codes(places), len(self.values)
        if n == 1:
            return []
        if not self.is_category:
            return [np.where(codes < 0, 0.5, codes / (n - 1))]
        return [ROOT * (codes == code) for code in range(n)]

    def described(self) -> Any:
        return {
            "values": [described(value) for value in self.values],
            "ends": self._ends.tolist(),
        }


@dataclass(frozen=True)
class Drawn(Kind):
    """Values that can be drawn, and have no places: a distribution with ``rvs``."""

    distribution: Any

    def value(self, place: float) -> Any:
        random = np.random.RandomState(int(place * 2**32))
        return plain(self.distribution.rvs(random_state=random))

    def place(self, value: Any) -> float:
        return 0.5

    def described(self) -> Any:
        return described(self.distribution)


def is_distribution(value: Any) -> bool:
    """Return whether a value is a distribution of some library."""
    has_ends = all(hasattr(value, name) for name in ("low", "high", "log"))
    return has_ends or hasattr(value, "rvs") or hasattr(value, "choices")


def kind_of(name: str, value: Any) -> Kind:
    """Return the kind of a parameter: a list, or a distribution of any library."""
    if not isinstance(name, str) or not name:
        msg = f"the parameters of a space have names, as text; got {name!r}"
        raise InvalidParameterError(msg)
    if isinstance(value, Interval | Quantiles | Choices | Drawn):
        return value
    if shapes := getattr(value, "shapes", None):  # of scipy, before it is called
        own = f"scipy.stats.{value.name}"
        raise InvalidParameterError(
            f"{name!r} has {own} without its numbers: write {own}({shapes}), with a "
            f"number for each, and loc and scale if need be"
        )
    if hasattr(value, "ppf") and hasattr(value, "cdf"):
        with np.errstate(invalid="ignore"):
            has_width = not np.isnan(value.ppf(np.array([0.5]))).any()
        # a scale of 0: scipy has no quantiles, and draws the same number always
        return Quantiles(value) if has_width else Choices([value.rvs()])
    if hasattr(value, "choices"):  # of Optuna, ConfigSpace
        return Choices(value.choices, getattr(value, "probabilities", None))
    if hasattr(value, "sequence"):
        return Choices(value.sequence, ordered=True)
    low: Any = getattr(value, "low", None)  # of Optuna
    high: Any = getattr(value, "high", None)
    if not is_number(low) and hasattr(value, "lower"):  # of ConfigSpace
        low, high = plain(value.lower), plain(value.upper)
        if hasattr(value, "sigma") or hasattr(value, "alpha"):
            if not hasattr(getattr(value, "_vector_dist", None), "rv"):
                return Drawn(value)
            log, rv = bool(value.log), value._vector_dist.rv
            return Uneven(low, high, log, None, type(low) is int, rv, str(value))
    if is_number(low) and is_number(high) and hasattr(value, "log"):
        step, whole = getattr(value, "step", None), isinstance(low, int)
        return Interval(low, high, bool(value.log), None if value.log else step, whole)
    if hasattr(value, "value") and hasattr(value, "default_value"):  # a constant
        return Choices([value.value])
    if hasattr(value, "rvs"):
        return Drawn(value)
    listed = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    if not (listed and getattr(value, "ndim", True) and len(value)):
        raise InvalidParameterError(
            f"a space must give {name!r} a list of values, not empty, or a "
            f"distribution, with rvs or of Optuna; got {shown(value)}"
        )
    if isinstance(value, tuple) and len(value) == 2 and all(map(is_number, value)):
        low, high = sorted(map(plain, value))
        such_as = f"uniform({low}, {high - low:g})"
        if isinstance(low, int) and isinstance(high, int):
            such_as = f"randint({low}, {high + 1})"
        elif low > 0:
            such_as = f"loguniform({low}, {high})"
        raise InvalidParameterError(
            f"{name!r} has {value}, which may be a choice or a range: write "
            f"[{low}, {high}] for a choice, scipy.stats.{such_as} for a range"
        )
    return Choices(value)


def place_of(value: Any, kind: Kind) -> float:
    """Return the place of a value; the middle if it is to be a number, and is none."""
    return kind.place(value) if kind.is_finite or is_number(value) else 0.5
