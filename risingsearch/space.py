"""Spaces of configurations, as points of a cube with a coordinate per parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.checks import shown
from risingsearch.contents import described, digest
from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import plain

Params = dict[str, Any]
Places = NDArray[np.float64]

PART = ""
"""Name of the coordinate that says which space of several a configuration is of."""
TRIES = 1_000  # draws in a row that a space may forbid, or that are known
_ROOT = math.sqrt(0.5)


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
    """Return the value if it is hashable, else its digest."""
    try:
        hash(value)
    except TypeError:
        return digest(value)
    return value


# ------------------------------------------------------------------------------- kinds


class Kind(Protocol):
    """The values of a parameter, along its coordinate from 0 to 1."""

    is_category: bool  # whether values near each other have nothing in common
    is_finite: bool  # whether the values are a list

    def value(self, place: float) -> Any:
        """Return the value at a place."""
        ...

    def place(self, value: Any) -> float:
        """Return the place of a value, the middle of its part of the coordinate."""
        ...

    def snapped(self, places: Places) -> Places:
        """Return the places of the values at these places."""
        ...

    def columns(self, places: Places) -> list[Places]:
        """Return the features of the values at these places."""
        ...

    def described(self) -> Any:
        """Return all that tells it from others, as JSON."""
        ...


class _Numbers:
    """Numbers whose places are their features."""

    is_category = is_finite = False

    def columns(self, places: Places) -> list[Places]:
        """Return the places."""
        return [self.snapped(places)]

    def snapped(self, places: Places) -> Places:
        """Return the places, of which each has a value."""
        return places


@dataclass(frozen=True)
class Interval(_Numbers):
    """Numbers between two ends, even or in the logarithm; perhaps at equal steps."""

    low: float
    high: float
    log: bool = False
    step: float | None = None  # from the lower end; whole numbers have 1 at least
    whole: bool = False

    def _ends(self) -> tuple[float, float]:
        ends = self.low, self.high
        if self.log:
            half = 0.5 if self.whole else 0.0
            return float(np.log(ends[0] - half)), float(np.log(ends[1] + half))
        return ends

    @property
    def _n_steps(self) -> int | None:
        """How many values there are at equal distances; None without these."""
        step = 1 if self.whole and self.step is None else self.step
        if step is None or self.log:
            return None
        return int(round((self.high - self.low) / step, 9)) + 1

    def value(self, place: float) -> float | int:
        """Return the number at a place."""
        low, high = self._ends()
        if n_steps := self._n_steps:
            k = min(int(place * n_steps), n_steps - 1)
            found = self.low + k * (self.step or 1)
        else:
            found = low + place * (high - low)
            found = float(np.exp(found)) if self.log else found
        found = min(max(found, self.low), self.high)
        return round(found) if self.whole else float(found)

    def place(self, value: Any) -> float:
        """Return where a number lies, not beyond the ends."""
        low, high = self._ends()
        number = min(max(float(value), self.low), self.high)
        if n_steps := self._n_steps:
            k = round((number - self.low) / (self.step or 1))
            return (min(k, n_steps - 1) + 0.5) / n_steps
        number = float(np.log(number)) if self.log else number
        return (number - low) / (high - low) if high > low else 0.5

    def snapped(self, places: Places) -> Places:
        """Return the places of the numbers at these places."""
        if n_steps := self._n_steps:
            return (np.minimum(np.floor(places * n_steps), n_steps - 1) + 0.5) / n_steps
        if not self.whole:
            return places
        low, high = self._ends()
        whole = np.rint(np.exp(low + places * (high - low)))
        found: Places = np.log(np.clip(whole, self.low, self.high))
        return (found - low) / (high - low)

    def described(self) -> Any:
        """Return ends, scale and steps."""
        return {name: value for name, value in vars(self).items() if value}


@dataclass(frozen=True)
class Quantiles(_Numbers):
    """Numbers of a distribution with ``ppf`` and ``cdf``, as those of scipy."""

    distribution: Any

    @property
    def _is_discrete(self) -> bool:
        return hasattr(self.distribution, "pmf")

    def value(self, place: float) -> float | int:
        """Return the quantile of a place."""
        found = self.distribution.ppf(min(max(place, 1e-12), 1.0 - 1e-12))
        return int(found) if self._is_discrete else float(found)

    def place(self, value: Any) -> float:
        """Return how much of the distribution lies below a number."""
        return float(self._places(value))

    def _places(self, values: Any) -> Any:
        below = self.distribution.cdf(values)
        half = 0.5 * self.distribution.pmf(values) if self._is_discrete else 0.0
        return below - half

    def snapped(self, places: Places) -> Places:
        """Return the places of the quantiles of these places."""
        if not self._is_discrete:
            return places
        inside = np.clip(places, 1e-12, 1.0 - 1e-12)
        return np.asarray(self._places(self.distribution.ppf(inside)), dtype=float)

    def described(self) -> Any:
        """Return name and arguments of the distribution, or its digest."""
        given: Any = self.distribution
        name = getattr(getattr(given, "dist", None), "name", None)  # of scipy
        if name is None:
            return described(given)
        return {"distribution": name, "of": described((given.args, given.kwds))}


class Choices:
    """Some values, each as likely as its weight; numbers among themselves in order."""

    is_finite = True

    def __init__(
        self,
        values: Iterable[Any],
        weights: Iterable[float] | None = None,
        *,
        ordered: bool = False,
    ) -> None:
        given = [plain(value) for value in values]
        shares = [1.0] * len(given) if weights is None else [float(w) for w in weights]
        found: dict[Any, Any] = {}
        total: dict[Any, float] = {}
        for value, share in zip(given, shares, strict=True):
            key = self._key(value)
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

    @staticmethod
    def _key(value: Any) -> Any:
        value = plain(value)
        return type(value), key_of(value)  # 1 is not True

    def codes(self, places: Places) -> NDArray[np.int64]:
        """Return the numbers of the values at these places; -1 for none of them."""
        codes = np.searchsorted(self._ends, places, side="right")
        return np.where(np.isnan(places), -1, np.minimum(codes, len(self.values) - 1))

    def value(self, place: float) -> Any:
        """Return the value at a place."""
        return self.values[int(self.codes(np.array(place)))]

    def place(self, value: Any) -> float:
        """Return the place of a value; NaN for a category that is none of them."""
        code = self._codes.get(self._key(value))
        if code is None and is_number(value) and self._is_numeric:
            numbers = np.array([float(one) for one in self.values])
            code = int(np.argmin(np.abs(numbers - float(value))))
        if code is None:
            return math.nan if self.is_category else 0.5
        return float(self._middles[code])

    def snapped(self, places: Places) -> Places:
        """Return the places of the values at these places."""
        return np.where(np.isnan(places), math.nan, self._middles[self.codes(places)])

    def columns(self, places: Places) -> list[Places]:
        """Return ranks of what has an order, else a column per value."""
        codes, n = self.codes(places), len(self.values)
        if n == 1:
            return []
        if not self.is_category:
            return [np.where(codes < 0, 0.5, codes / (n - 1))]
        return [_ROOT * (codes == code) for code in range(n)]

    def described(self) -> Any:
        """Return the values with their places."""
        return {
            "values": [described(value) for value in self.values],
            "ends": self._ends.tolist(),
        }


@dataclass(frozen=True)
class Drawn(_Numbers):
    """Values that can be drawn, and have no places: a distribution with ``rvs``."""

    distribution: Any

    def value(self, place: float) -> Any:
        """Return the value that is drawn with the place as seed."""
        random = np.random.RandomState(int(place * 2**32))
        return plain(self.distribution.rvs(random_state=random))

    def place(self, value: Any) -> float:
        """Return the middle, as nothing is known of it."""
        return 0.5

    def described(self) -> Any:
        """Return its digest."""
        return described(self.distribution)


def kind_of(name: str, given: Any) -> Kind:
    """Return the kind of a parameter: a list, or a distribution of any library."""
    if isinstance(given, Interval | Quantiles | Choices | Drawn):
        return given
    if hasattr(given, "ppf") and hasattr(given, "cdf"):
        return Quantiles(given)
    if hasattr(given, "choices"):  # of Optuna, ConfigSpace
        return Choices(given.choices, getattr(given, "probabilities", None))
    if hasattr(given, "sequence"):
        return Choices(given.sequence, ordered=True)
    low: Any = getattr(given, "low", None)  # of Optuna
    high: Any = getattr(given, "high", None)
    if not is_number(low) and not hasattr(given, "sigma") and hasattr(given, "lower"):
        low, high = plain(given.lower), plain(given.upper)  # of ConfigSpace
    if is_number(low) and is_number(high) and hasattr(given, "log"):
        step, whole = getattr(given, "step", None), isinstance(low, int)
        return Interval(low, high, bool(given.log), None if given.log else step, whole)
    if hasattr(given, "value") and hasattr(given, "default_value"):  # a constant
        return Choices([given.value])
    if hasattr(given, "rvs"):
        return Drawn(given)
    listed = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
    if not listed or not len(given):
        msg = (
            f"a space must give {name!r} a list of values, not empty, or a "
            f"distribution, with rvs or of Optuna; got {shown(given)}"
        )
        raise InvalidParameterError(msg)
    return Choices(given)


def _place_of(value: Any, kind: Kind) -> float:
    """Return the place of a value; the middle if it is to be a number, and is none."""
    return kind.place(value) if kind.is_finite or is_number(value) else 0.5


# ------------------------------------------------------------------------------- space


@dataclass(frozen=True)
class Coordinate:
    """A parameter of a space, and when it applies."""

    name: str
    kind: Kind
    needs: tuple[str, ...] = ()  # the earlier parameters that decide if it applies
    applies: Callable[[Mapping[str, Any]], bool] | None = None  # by their values
    when: Any = None  # the same as JSON, to be compared


class Space:
    """The configurations of a search, each a point of a cube.

    A coordinate from 0 to 1 is as likely as any other. Parameters may apply only where
    others have some values, and whole configurations may be forbidden.

    Parameters
    ----------
    coordinates : iterable of Coordinate
        The parameters, each after those that it needs.
    forbidden : iterable of clauses
        As ConfigSpace has them, with ``is_forbidden_value(params)``.

    Examples
    --------
    >>> space = Space.of({"depth": range(1, 5), "loss": ["hinge", "log"]})
    >>> space.from_unit([0.6, 0.2])
    {'depth': 3, 'loss': 'hinge'}
    >>> space.to_unit({"depth": 3, "loss": "hinge"}).tolist()
    [0.625, 0.25]
    >>> space.is_open
    False
    """

    def __init__(
        self,
        coordinates: Iterable[Coordinate],
        forbidden: Iterable[Any] = (),
    ) -> None:
        self.coordinates = list(coordinates)
        self._forbidden = list(forbidden)

    @classmethod
    def of(cls, given: Any) -> Space:
        """Return a space as scikit-learn, Optuna and ConfigSpace describe it.

        Parameters
        ----------
        given : Space, dict, list of dict or ConfigurationSpace
            By name, a list of values or a distribution: of scipy, of Optuna, or one
            with ``rvs``. Of a list of dicts each is as likely.

        Raises
        ------
        InvalidParameterError
            If it is none of these.
        """
        if isinstance(given, Space):
            return given
        if hasattr(given, "forbidden_clauses"):
            return cls(_of_configspace(given), given.forbidden_clauses)
        if isinstance(given, Mapping):
            return cls(Coordinate(name, kind_of(name, given[name])) for name in given)
        parts = list(given)
        if len(parts) == 1:
            return cls.of(parts[0])
        coordinates = [Coordinate(PART, Choices(map(str, range(len(parts)))))]
        for k, part in enumerate(parts):
            is_part = (PART,), _IsPart(str(k)), k
            coordinates += (
                Coordinate(name, kind_of(name, part[name]), *is_part) for name in part
            )
        return cls(coordinates)

    @property
    def names(self) -> list[str]:
        """The parameter of each coordinate; "" where that is none."""
        return [one.name for one in self.coordinates]

    @property
    def is_open(self) -> bool:
        """Whether configurations can be proposed: not of mere lists, or of draws."""
        kinds = [one.kind for one in self.coordinates]
        is_drawn = any(isinstance(kind, Drawn) for kind in kinds)
        return not is_drawn and not all(kind.is_finite for kind in kinds)

    @property
    def description(self) -> list[Any]:
        """All that tells it from other spaces, as JSON."""
        found = []
        for one in self.coordinates:
            when = {} if one.when is None else {"when": one.when}
            found.append({"name": one.name, **when, "values": one.kind.described()})
        return found + [{"forbidden": str(clause)} for clause in self._forbidden]

    def permits(self, params: Mapping[str, Any]) -> bool:
        """Return whether a configuration is allowed."""
        known = dict(params)
        return not any(clause.is_forbidden_value(known) for clause in self._forbidden)

    def sample(self, rng: np.random.Generator) -> Params:
        """Return a random configuration that is allowed."""
        for _ in range(TRIES):
            params = self.from_unit(rng.random(len(self.coordinates)))
            if self.permits(params):
                return params
        msg = f"the space forbids {TRIES:,} draws in a row: allow more of it"
        raise InvalidParameterError(msg)

    def from_unit(self, unit: ArrayLike) -> Params:
        """Return the configuration at a point, perhaps one that is not allowed."""
        values: Params = {}
        for one, place in zip(self.coordinates, np.asarray(unit).tolist(), strict=True):
            if one.applies is None or one.applies(values):
                values[one.name] = one.kind.value(place)
        values.pop(PART, None)
        return values

    def to_unit(self, params: Mapping[str, Any]) -> Places:
        """Return the point of a configuration.

        0.5 is the place of a parameter that it lacks, an end that of a number beyond,
        and NaN that of a category that the space does not have.
        """
        values = self._part_of(params) | dict(params)
        unit = np.full(len(self.coordinates), 0.5)
        for k, one in enumerate(self.coordinates):
            if one.name in values and (one.applies is None or one.applies(values)):
                unit[k] = _place_of(values[one.name], one.kind)
        return unit

    def _part_of(self, params: Mapping[str, Any]) -> Params:
        """Return which part a configuration is of, as the value of its coordinate."""
        if not self.coordinates or self.coordinates[0].name != PART:
            return {}
        kind: Any = self.coordinates[0].kind

        def unlike(part: str) -> int:
            own = [one for one in self.coordinates if one.when == int(part)]
            names = {one.name for one in own}
            places = [_place_of(params.get(one.name), one.kind) for one in own]
            return len(names ^ params.keys()) + sum(map(math.isnan, places))

        return {PART: min(kind.values, key=unlike)}

    def features(self, units: ArrayLike) -> Places:
        """Return what a model takes for these points, (n, k), 0 to 1 in each column.

        A number is its place, a category has a column of 0 and the root of 1/2 per
        value. A parameter that does not always apply has a column more that says if it
        does, and one half as its number where not.
        """
        rows = np.atleast_2d(np.asarray(units, dtype=float))
        found: list[Places] = [np.empty((len(rows), 0))]
        active = self._active(rows)
        for one, places, on in zip(self.coordinates, rows.T, active, strict=True):
            for column in one.kind.columns(places):
                other = 0.0 if one.kind.is_category else 0.5
                found.append(np.where(on, column, other)[:, None])
            if one.applies is not None:
                found.append(np.where(on, _ROOT, 0.0)[:, None])
        return np.hstack(found)

    def _active(self, rows: Places) -> list[NDArray[np.bool_]]:
        """Return of every coordinate in which rows its parameter applies."""
        active: list[NDArray[np.bool_]] = []
        at = {one.name: k for k, one in enumerate(self.coordinates)}
        needed = {name for one in self.coordinates for name in one.needs}
        codes: dict[str, NDArray[np.int64]] = {}
        for k, one in enumerate(self.coordinates):
            on = np.ones(len(rows), dtype=np.bool_)
            if one.applies is not None:
                parents = np.stack([codes[name] for name in one.needs], axis=1)
                _, first, row_of = np.unique(
                    parents, axis=0, return_index=True, return_inverse=True
                )
                said = [
                    one.applies(
                        {
                            name: self.coordinates[at[name]].kind.value(row[at[name]])
                            for name, code in zip(one.needs, parents[i], strict=True)
                            if code >= 0
                        }
                    )
                    for i, row in zip(first, rows[first], strict=True)
                ]
                on = np.array(said, dtype=np.bool_)[row_of.reshape(-1)]
            active.append(on)
            if one.name in needed:
                places = one.kind.snapped(rows[:, k])
                order = np.unique(places, return_inverse=True)[1]
                codes[one.name] = np.where(on & ~np.isnan(places), order, -1)
        return active

    def perturbed(self, units: ArrayLike, rng: np.random.Generator) -> Places:
        """Return points near these, each with some of its coordinates changed.

        Four in ten numbers move, by a scale of 0.01 to 0.3 that differs from point to
        point, and one in ten categories is drawn anew.
        """
        rows = np.atleast_2d(np.asarray(units, dtype=float))
        scale = 10.0 ** rng.uniform(-2.0, -0.5, (len(rows), 1))
        steps = scale * rng.standard_normal(rows.shape)
        moved = np.abs(rows + steps * (rng.random(rows.shape) < 0.4))
        moved = np.clip(np.where(moved > 1.0, 2.0 - moved, moved), 0.0, 1.0)
        fresh = rng.random(rows.shape)
        drawn = (rng.random(rows.shape) < 0.1) | np.isnan(rows)
        is_category = np.array([one.kind.is_category for one in self.coordinates])
        return np.where(is_category, np.where(drawn, fresh, rows), moved)


@dataclass(frozen=True)
class _IsPart:
    """Condition of the parameters of one space of several."""

    part: str

    def __call__(self, values: Mapping[str, Any]) -> bool:
        return bool(values.get(PART) == self.part)


@dataclass(frozen=True)
class _Satisfied:
    """Condition of a ConfigSpace."""

    condition: Any

    def __call__(self, values: Mapping[str, Any]) -> bool:
        return _is_satisfied(self.condition, values)


def _is_satisfied(condition: Any, values: Mapping[str, Any]) -> bool:
    if hasattr(condition, "components"):
        found = (_is_satisfied(one, values) for one in condition.components)
        return all(found) if "And" in type(condition).__name__ else any(found)
    known = condition.parent.name in values  # it applies itself
    return known and bool(condition.satisfied_by_value(dict(values)))


def _of_configspace(given: Any) -> Iterable[Coordinate]:
    conditions = {one.child.name: one for one in given.conditions}
    for name in given:
        kind = kind_of(name, given[name])
        if (condition := conditions.get(name)) is None:
            yield Coordinate(name, kind)
            continue
        parents = (one.parent.name for one in _leaves(condition))
        needs = tuple(dict.fromkeys(parents))
        yield Coordinate(name, kind, needs, _Satisfied(condition), str(condition))


def _leaves(condition: Any) -> Iterable[Any]:
    if not hasattr(condition, "components"):
        yield condition
        return
    for one in condition.components:
        yield from _leaves(one)
