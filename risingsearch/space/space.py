"""Spaces of configurations, as points of a cube with a coordinate per parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.arms import Configuration, Params
from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.identity.comparison import DIGEST, TEXT, adopted, described
from risingsearch.json_values import Json
from risingsearch.space.coordinates import PART, Coordinate
from risingsearch.space.from_configspace import coordinates_of
from risingsearch.space.from_mappings import coordinate_of
from risingsearch.space.kinds import ROOT, Choices, Drawn, Kind, Places, place_of
from risingsearch.space.readers import is_distribution, kind_of
from risingsearch.space.values import key_of_all

TRIES = 1_000
"""Draws in a row that a space may forbid."""
TRIES_PER_KNOWN = 20
"""Draws in a row without a new configuration, before giving up."""


class Space:
    """The configurations of a search, as points of a cube that are equally likely.

    Parameters may apply only where others have some values, and whole configurations
    may be forbidden, by clauses as ConfigSpace has them.

    Parameters
    ----------
    coordinates : iterable of Coordinate
        The parameters, those that others need before them.
    forbidden : iterable of object, optional
        Clauses with a method ``is_forbidden_value(params)``.

    Examples
    --------
    >>> space = Space.of({"depth": range(1, 5), "loss": ["hinge", "log"]})
    >>> space.from_unit([0.6, 0.2])
    {'depth': 3, 'loss': 'hinge'}
    >>> space.to_unit({"depth": 3, "loss": "hinge"}).tolist()
    [0.625, 0.25]
    """

    def __init__(
        self,
        coordinates: Iterable[Coordinate],
        forbidden: Iterable[object] = (),
    ) -> None:
        self.coordinates = list(coordinates)
        self._forbidden: dict[str | None, list[Any]] = {None: list(forbidden)}

    @classmethod
    def of(cls, value: Any) -> Space:
        """Return a space as scikit-learn, Optuna and ConfigSpace describe it.

        Parameters
        ----------
        value : Space, dict, ConfigurationSpace or list of these
            A dict gives each parameter a list of values, a distribution, or plain data
            as the file of a sweep has them, ``{"type": "int", "low": 1, "high": 9}``,
            also with a ``when``. Of a list, each is a part: a configuration is of one
            of them.

        Returns
        -------
        Space
            The given one, or a new one.

        Raises
        ------
        InvalidParameterError
            If a parameter has neither a list of values nor a distribution.

        Examples
        --------
        >>> parts = [{"kernel": ["linear"]}, {"kernel": ["rbf"], "gamma": [1, 2]}]
        >>> Space.of(parts).names
        ['', 'kernel', 'kernel', 'gamma']
        """
        if isinstance(value, Space):
            return value
        if hasattr(value, "forbidden_clauses"):
            return cls(coordinates_of(value), value.forbidden_clauses)
        if isinstance(value, Mapping):
            kinds: dict[str, Kind] = {}
            coordinates = []
            for name, form in value.items():
                kind = kind_of(name, form)
                coordinates.append(coordinate_of(name, kind, form, kinds))
                kinds[name] = kind
            return cls(coordinates)
        parts = [cls.of(part) for part in value]
        if len(parts) == 1:
            return parts[0]
        return cls._of_parts(parts)

    @classmethod
    def _of_parts(cls, parts: Sequence[Space]) -> Space:
        numbers = [str(k) for k in range(len(parts))]
        whole = cls([Coordinate(PART, Choices(numbers))])
        for number, part in zip(numbers, parts, strict=True):
            for coordinate in part.coordinates:
                whole.coordinates.append(replace(coordinate, part=number))
            whole._forbidden[number] = part._forbidden[None]
        return whole

    @property
    def names(self) -> list[str]:
        """The parameter of each coordinate; "" where that is none."""
        return [coordinate.name for coordinate in self.coordinates]

    @property
    def is_open(self) -> bool:
        """Whether configurations can be proposed: not of mere lists, or of draws."""
        if any(isinstance(each.kind, Drawn) for each in self.coordinates):
            return False
        return not self._is_finite

    @property
    def _is_finite(self) -> bool:
        return all(coordinate.kind.is_finite for coordinate in self.coordinates)

    @property
    def description(self) -> Json:
        """All that tells it from other spaces, as JSON, by the name of a parameter."""
        whole: Json = {}

        def entries(part: str | None) -> Json:
            if part is None:
                return whole
            inside: Json = whole.setdefault(f"space {part}", {})
            return inside

        for coordinate in self.coordinates:
            kind: Any = coordinate.kind.described()
            if coordinate.when is not None:
                kind |= {"when": coordinate.when}
            entries(coordinate.part)[coordinate.name or "one of"] = kind
        for part, clauses in self._forbidden.items():
            if clauses:
                entries(part)["forbidden clauses"] = [str(clause) for clause in clauses]
        return whole

    def permits(self, params: Configuration) -> bool:
        """Return whether a configuration is allowed.

        Parameters
        ----------
        params : dict
            A configuration with the parameters that apply.

        Returns
        -------
        bool
            Whether no clause forbids it.
        """
        part = self._part_of(params).get(PART)
        clauses = self._forbidden[part]
        values = dict(params)
        return not any(clause.is_forbidden_value(values) for clause in clauses)

    def problem_of(self, params: Configuration, *, beyond: bool = False) -> str | None:
        """Return why this is no configuration of the space, None if it is one.

        Parameters
        ----------
        params : dict
            The value of each parameter.
        beyond : bool, default False
            Whether values may be others than those of the space.

        Returns
        -------
        str or None
            The first reason, to be put after the name of the configuration.

        Examples
        --------
        >>> space = Space.of({"depth": [1, 2]})
        >>> space.problem_of({"depth": 3})
        'depth=3 is not a value of the space'
        >>> space.problem_of({"depth": 3}, beyond=True)
        """
        unknown = params.keys() - {*self.names}
        if unknown:
            names = ", ".join(dict.fromkeys(filter(None, self.names)))
            return f"{min(unknown)!r} is not one of {names}"
        values = self._part_of(params) | dict(params)
        active = [each for each in self.coordinates if each.is_active(values)]
        for coordinate in active:
            name = coordinate.name
            if name not in values:
                return f"{name!r} is missing"
            if not (beyond or coordinate.kind.has(values[name])):
                return f"{name}={shown(values[name])} is not a value of the space"
        extra = params.keys() - {coordinate.name for coordinate in active}
        if extra:
            return f"{min(extra)!r} does not apply"
        if not self.permits(params):
            return "the space forbids it"
        return None

    def sample(self, rng: np.random.Generator) -> Params:
        """Return a random configuration that is allowed.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of randomness.

        Returns
        -------
        dict
            The value of each parameter that applies.

        Raises
        ------
        InvalidParameterError
            If the space forbids 1,000 draws in a row.

        Examples
        --------
        >>> Space.of({"depth": [1, 2, 3]}).sample(np.random.default_rng(0))
        {'depth': 2}
        """
        return next(self._allowed(rng, 1))

    def _allowed(
        self,
        rng: np.random.Generator,
        at_once: int,
    ) -> Iterator[Params]:
        """Yield random configurations that are allowed, without end."""
        n_forbidden = 0
        while n_forbidden < TRIES:
            points = rng.random((at_once, len(self.coordinates)))
            for params in self.from_units(points):
                if self.permits(params):
                    n_forbidden = 0
                    yield params
                else:
                    n_forbidden += 1
        raise InvalidParameterError(
            f"the space forbids {TRIES:,} draws in a row: allow more of it"
        )

    def every(self) -> Iterator[Params]:
        """Yield all configurations, if all of its values are ``listed``.

        Yields
        ------
        dict
            A configuration that is allowed.

        Examples
        --------
        >>> list(Space.of({"depth": [1, 2], "loss": ["hinge"]}).every())
        [{'depth': 1, 'loss': 'hinge'}, {'depth': 2, 'loss': 'hinge'}]
        """
        yield from filter(self.permits, self._every({}, self.coordinates))

    def _every(
        self,
        chosen: Params,
        left: Sequence[Coordinate],
    ) -> Iterator[Params]:
        if not left:
            params = dict(chosen)
            params.pop(PART, None)
            yield params
            return
        coordinate, *others = left
        if not coordinate.is_active(chosen):
            yield from self._every(chosen, others)
            return
        for value in coordinate.kind.listed or ():
            yield from self._every({**chosen, coordinate.name: value}, others)

    def draw(
        self,
        n: int,
        rng: np.random.Generator,
        known: Sequence[Configuration] = (),
    ) -> Configurations:
        """Return random configurations that are allowed, all of them different.

        Parameters
        ----------
        n : int
            How many; fewer are returned where there are no more.
        rng : numpy.random.Generator
            The source of randomness.
        known : sequence of dict, optional
            Configurations to leave out.

        Returns
        -------
        Configurations
            Their ``space`` is None if they are all that there are.

        Examples
        --------
        >>> Space.of({"depth": [1, 2]}).draw(5, np.random.default_rng(0))
        [{'depth': 1}, {'depth': 2}]
        """
        if self._is_finite:
            everything = list(islice(self.every(), n + 1))
            if len(everything) <= n:
                return Configurations(everything, None)
        keys = {key_of_all(params) for params in known}
        drawn: list[Params] = []
        n_in_vain = 0
        for params in self._allowed(rng, n):
            key = key_of_all(params)
            if key in keys:
                n_in_vain += 1
            else:
                n_in_vain = 0
                keys.add(key)
                drawn.append(params)
            most_in_vain = TRIES_PER_KNOWN * (len(keys) + 50)
            if len(drawn) == n or n_in_vain > most_in_vain:
                break
        if self.is_open and len(drawn) == n:
            return Configurations(drawn, self)
        return Configurations(drawn, None)

    def restored(self, params: Configuration) -> Params:
        """Return a configuration with the values that JSON holds as their digests.

        Parameters
        ----------
        params : dict
            A configuration as it was saved.

        Returns
        -------
        dict
            The same with the values of the space.

        Raises
        ------
        RunDirError
            If several values of the space are saved alike.
        """
        whole = dict(params)
        for coordinate in self.coordinates:
            saved = params.get(coordinate.name)
            if isinstance(saved, dict) and TEXT in saved and coordinate.kind.listed:
                whole[coordinate.name] = _listed_value(coordinate, saved)
        return whole

    def from_unit(self, unit: ArrayLike) -> Params:
        """Return the configuration at a point, perhaps one that is not allowed.

        Parameters
        ----------
        unit : array of shape (n_coordinates,)
            Places from 0 to 1.

        Returns
        -------
        dict
            The value of each parameter that applies.

        Examples
        --------
        >>> Space.of({"depth": [1, 2, 3]}).from_unit([0.9])
        {'depth': 3}
        """
        [params] = self.from_units(_as_rows(unit))
        return params

    def from_units(self, rows: Places) -> list[Params]:
        """Return the configurations at points, perhaps some that are not allowed.

        Parameters
        ----------
        rows : array of shape (n, n_coordinates)
            Places from 0 to 1.

        Returns
        -------
        list of dict
            One for each row.
        """
        configurations: list[Params] = [{} for _ in rows]
        for coordinate, places in zip(self.coordinates, rows.T, strict=True):
            values = coordinate.kind.values_at(places)
            for params, value in zip(configurations, values, strict=True):
                if coordinate.is_active(params):
                    params[coordinate.name] = value
        for params in configurations:
            params.pop(PART, None)
        return configurations

    def to_unit(self, params: Configuration) -> Places:
        """Return the point of a configuration.

        Parameters
        ----------
        params : dict
            Any configuration.

        Returns
        -------
        array of shape (n_coordinates,)
            0.5 is the place of a parameter that it lacks, an end that of a number
            beyond, and NaN that of a category that the space does not have.

        Examples
        --------
        >>> Space.of({"depth": [1, 2], "loss": ["hinge", "log"]}).to_unit({"depth": 2})
        array([0.75, 0.5 ])
        """
        values = self._part_of(params) | dict(params)
        unit = np.full(len(self.coordinates), 0.5)
        for k, coordinate in enumerate(self.coordinates):
            if coordinate.name in values and coordinate.is_active(values):
                unit[k] = place_of(values[coordinate.name], coordinate.kind)
        return unit

    def _part_of(self, params: Configuration) -> Params:
        """Return which part a configuration is of, as the value of its coordinate."""
        if len(self._forbidden) == 1:
            return {}

        def unlike(part: str) -> tuple[int, int]:
            kinds = {
                each.name: each.kind for each in self.coordinates if each.part == part
            }
            n_unlike = len(kinds.keys() ^ params.keys())
            n_beyond = 0
            for name, kind in kinds.items():
                value = params.get(name)
                n_unlike += math.isnan(place_of(value, kind))
                n_beyond += not kind.has(value)
            return n_unlike, n_beyond

        parts = self.coordinates[0].kind.listed or ()
        return {PART: min(parts, key=unlike)}

    def features(self, units: ArrayLike) -> Places:
        """Return a row for a model per point, as ``encoding.encode``, 0 to 1 each.

        Parameters
        ----------
        units : array of shape (n, n_coordinates)
            Points, as ``to_unit`` returns them.

        Returns
        -------
        array of shape (n, n_features)
            A number is a column, and each category one; a parameter that may not
            apply has a column more.

        Examples
        --------
        >>> space = Space.of({"depth": [1, 2, 3], "loss": ["hinge", "log"]})
        >>> space.features([[0.9, 0.2]])
        array([[1.    , 0.7071, 0.    ]])
        """
        rows = _as_rows(units)
        columns: list[Places] = []
        active = self._active(rows)
        for coordinate, places, on in zip(
            self.coordinates, rows.T, active, strict=True
        ):
            if_not = 0.0 if coordinate.kind.is_category else 0.5
            features = coordinate.kind.columns(places)
            columns += [np.where(on, feature, if_not) for feature in features]
            if coordinate.parents:
                columns.append(np.where(on, ROOT, 0.0))
        if not columns:
            return np.empty((len(rows), 0))
        return np.column_stack(columns)

    def _active(self, rows: Places) -> list[NDArray[np.bool_]]:
        """Return of every coordinate in which rows its parameter applies."""
        active = []
        kinds: dict[str, Kind] = {}  # of spaces in parts, those of the part
        known: dict[str, list[float | None]] = {}
        parents = {name for each in self.coordinates for name in each.parents}
        for coordinate, column in zip(self.coordinates, rows.T, strict=True):
            on = np.ones(len(rows), dtype=np.bool_)
            if coordinate.parents:
                columns = [known[name] for name in coordinate.parents]
                combinations = list(zip(*columns, strict=True))
                applies = {}
                # It is asked once for all rows whose parents have the same values.
                for combination in set(combinations):
                    values: Params = {}
                    places = dict(zip(coordinate.parents, combination, strict=True))
                    for name, place in places.items():
                        if place is not None:
                            values[name] = kinds[name].value(place)
                    applies[combination] = coordinate.is_active(values)
                on = np.array([applies[each] for each in combinations], dtype=np.bool_)
            active.append(on)
            kinds[coordinate.name] = coordinate.kind
            if coordinate.name in parents:
                snapped = coordinate.kind.snapped(column)
                snapped = np.where(on, snapped, math.nan)
                known[coordinate.name] = [
                    None if math.isnan(place) else place for place in snapped.tolist()
                ]
        return active

    def perturbed(
        self,
        units: ArrayLike,
        rng: np.random.Generator,
    ) -> Places:
        """Return points near these, each with some of its coordinates changed.

        Parameters
        ----------
        units : array of shape (n, n_coordinates)
            Points, as ``to_unit`` returns them.
        rng : numpy.random.Generator
            The source of randomness.

        Returns
        -------
        array of shape (n, n_coordinates)
            Two of five numbers are moved, and one category of ten is drawn anew.
        """
        rows = _as_rows(units)
        shape = rows.shape
        scale = 10.0 ** rng.uniform(-2.0, -0.5, (len(rows), 1))
        steps = scale * rng.standard_normal(shape)
        is_moved = rng.random(shape) < 0.4
        moved = np.abs(rows + steps * is_moved)
        mirrored = 2.0 - moved
        moved = np.where(moved > 1.0, mirrored, moved)
        moved = np.clip(moved, 0.0, 1.0)
        fresh = rng.random(shape)
        is_redrawn = (rng.random(shape) < 0.1) | np.isnan(rows)
        redrawn = np.where(is_redrawn, fresh, rows)
        is_category = np.array([each.kind.is_category for each in self.coordinates])
        return np.where(is_category, redrawn, moved)


def _as_rows(points: ArrayLike) -> Places:
    """Return points as rows; a single one is a row, too."""
    return np.atleast_2d(np.asarray(points, dtype=float))


def _listed_value(coordinate: Coordinate, saved: Json) -> object:
    """Return the listed value that was saved like this; else the saved one."""
    same = {}
    for value in coordinate.kind.listed or ():
        current = described(value)
        if adopted(saved, current) == current:
            same[current[DIGEST]] = value
    if len(same) > 1:
        raise RunDirError(
            f"an earlier release saved {coordinate.name}={saved[TEXT]}, and "
            f"{len(same)} values of the space look like that: continue the search "
            "with the release that began it"
        )
    return next(iter(same.values()), saved)


def is_space(value: object) -> bool:
    """Return whether this is a space or a list of some, not of configurations.

    Parameters
    ----------
    value : object
        What was given as candidates.

    Returns
    -------
    bool
        True for a dict, a ``Space``, and a list with one of them in it.

    Examples
    --------
    >>> is_space({"depth": [1, 2]}), is_space([{"depth": 1}, {"depth": 2}])
    (True, False)
    """
    if not isinstance(value, Sequence):
        return isinstance(value, Space | Mapping)
    for part in value:
        if isinstance(part, Space):
            return True
        if isinstance(part, Mapping) and any(map(is_distribution, part.values())):
            return True
    return False


class Configurations(list[Params]):
    """Configurations drawn from a ``space``.

    Parameters
    ----------
    drawn : iterable of dict
        The configurations.
    space : Space or None
        What others can be drawn from; None if they are all that is searched.
    most : int, optional
        How many of the space are tried; by default there is no limit.

    Examples
    --------
    >>> space = Space.of({"depth": [1, 2, 3]})
    >>> Configurations(space.every(), space=None)
    [{'depth': 1}, {'depth': 2}, {'depth': 3}]
    """

    def __init__(
        self,
        drawn: Iterable[Params],
        space: Space | None,
        most: int | None = None,
    ) -> None:
        super().__init__(drawn)
        self.space = space
        self.most = most
