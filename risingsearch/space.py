"""Spaces of configurations, as points of a cube with a coordinate per parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.checks import shown
from risingsearch.comparison import DIGEST, TEXT, adopted, described
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.parameters import (
    ROOT,
    Choices,
    Drawn,
    Kind,
    Places,
    is_distribution,
    key_of_all,
    kind_of,
    place_of,
)

Params = dict[str, Any]

PART = ""  # the coordinate that says which space of several a configuration is of
TRIES = 1_000  # draws in a row that a space may forbid
TRIES_PER_KNOWN = 20  # draws in a row without a new configuration, before giving up


@dataclass(frozen=True)
class Coordinate:
    """A parameter of a space, and when it applies."""

    name: str
    kind: Kind
    needs: tuple[str, ...] = ()  # the earlier parameters that decide if it applies
    applies: Callable[[Mapping[str, Any]], bool] | None = None  # by their values
    when: Any = None  # the same as JSON, to be compared
    part: str | None = None  # the space of several that it is of

    @property
    def parents(self) -> tuple[str, ...]:
        """Parameters that decide if it applies, with the part."""
        return self.needs if self.part is None else (PART, *self.needs)

    def is_active(self, values: Mapping[str, Any]) -> bool:
        """Return whether it applies where others have these values."""
        if self.part is not None and values.get(PART) != self.part:
            return False
        return self.applies is None or self.applies(values)


class Space:
    """The configurations of a search, as points of a cube that are equally likely.

    Parameters may apply only where others have some values, and whole configurations
    may be forbidden, by clauses as ConfigSpace has them.

    Examples
    --------
    >>> space = Space.of({"depth": range(1, 5), "loss": ["hinge", "log"]})
    >>> space.from_unit([0.6, 0.2])
    {'depth': 3, 'loss': 'hinge'}
    >>> space.to_unit({"depth": 3, "loss": "hinge"}).tolist()
    [0.625, 0.25]
    """

    def __init__(
        self, coordinates: Iterable[Coordinate], forbidden: Iterable[Any] = ()
    ) -> None:
        self.coordinates = list(coordinates)
        self._forbidden: dict[str | None, list[Any]] = {None: list(forbidden)}

    @classmethod
    def of(cls, value: Any) -> Space:
        """Return a space as scikit-learn, Optuna and ConfigSpace describe it."""
        if isinstance(value, Space):
            return value
        if hasattr(value, "forbidden_clauses"):
            return cls(_of_configspace(value), value.forbidden_clauses)
        if isinstance(value, Mapping):
            return cls(Coordinate(name, kind_of(name, value[name])) for name in value)
        parts = [cls.of(part) for part in value]
        if len(parts) == 1:
            return parts[0]
        whole = cls([Coordinate(PART, Choices(map(str, range(len(parts)))))])
        for k, part in enumerate(parts):
            whole.coordinates += (replace(one, part=str(k)) for one in part.coordinates)
            whole._forbidden[str(k)] = part._forbidden[None]
        return whole

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
    def description(self) -> dict[str, Any]:
        """All that tells it from other spaces, as JSON, by the name of a parameter."""
        found: dict[str, Any] = {}
        for one in self.coordinates:
            place = f"space {one.part}"
            own = found if one.part is None else found.setdefault(place, {})
            own[one.name or "one of"] = one.kind.described()
            if one.when is not None:
                own[one.name] |= {"when": one.when}
        for part, clauses in self._forbidden.items():
            own = found if part is None else found[f"space {part}"]
            if clauses:
                own["forbidden clauses"] = [str(clause) for clause in clauses]
        return found

    def permits(self, params: Mapping[str, Any]) -> bool:
        """Return whether a configuration is allowed."""
        clauses = self._forbidden[self._part_of(params).get(PART)]
        return not any(clause.is_forbidden_value(dict(params)) for clause in clauses)

    def problem_of(
        self, params: Mapping[str, Any], *, beyond: bool = False
    ) -> str | None:
        """Return why this is no configuration, but ``beyond`` the values at most."""
        if unknown := params.keys() - {*self.names}:
            names = ", ".join(dict.fromkeys(filter(None, self.names)))
            return f"{min(unknown)!r} is not one of {names}"
        values = self._part_of(params) | dict(params)
        active = [one for one in self.coordinates if one.is_active(values)]
        for one in active:
            if one.name not in values:
                return f"{one.name!r} is missing"
            if not (beyond or one.kind.has(value := values[one.name])):
                return f"{one.name}={shown(value)} is not a value of the space"
        if extra := params.keys() - {one.name for one in active}:
            return f"{min(extra)!r} does not apply"
        return None if self.permits(params) else "the space forbids it"

    def sample(self, rng: np.random.Generator) -> Params:
        """Return a random configuration that is allowed."""
        return next(self._allowed(rng, 1))

    def _allowed(self, rng: np.random.Generator, at_once: int) -> Iterator[Params]:
        """Yield random configurations that are allowed, without end."""
        n_forbidden = 0
        while n_forbidden < TRIES:
            for params in self.from_units(rng.random((at_once, len(self.coordinates)))):
                n_forbidden = 0 if self.permits(params) else n_forbidden + 1
                if n_forbidden == 0:
                    yield params
        msg = f"the space forbids {TRIES:,} draws in a row: allow more of it"
        raise InvalidParameterError(msg)

    def every(self) -> Iterator[Params]:
        """Yield all configurations, if all of its values are ``listed``."""
        yield from filter(self.permits, self._every({}, self.coordinates))

    def _every(self, chosen: Params, left: Sequence[Coordinate]) -> Iterator[Params]:
        if not left:
            yield {name: value for name, value in chosen.items() if name != PART}
            return
        one, *rest = left
        if not one.is_active(chosen):
            yield from self._every(chosen, rest)
            return
        for value in one.kind.listed or ():
            yield from self._every({**chosen, one.name: value}, rest)

    def draw(
        self, n: int, rng: np.random.Generator, known: Sequence[Mapping[str, Any]] = ()
    ) -> Configurations:
        """Return ``n`` different configurations, none of them known, or all others."""
        if all(one.kind.is_finite for one in self.coordinates):
            everything = list(islice(self.every(), n + 1))
            if len(everything) <= n:
                return Configurations(everything, None)
        keys, found = {key_of_all(params) for params in known}, list[Params]()
        n_in_vain = 0
        for params in self._allowed(rng, n):
            key = key_of_all(params)
            n_in_vain = n_in_vain + 1 if key in keys else 0
            if key not in keys:
                keys.add(key)
                found.append(params)
            if len(found) == n or n_in_vain > TRIES_PER_KNOWN * (len(keys) + 50):
                break
        is_open = self.is_open and len(found) == n
        return Configurations(found, self if is_open else None)

    def restored(self, params: Mapping[str, Any]) -> Params:
        """Return a configuration with the values that JSON holds as their digests."""
        found = dict(params)
        for one in self.coordinates:
            saved = found.get(one.name)
            if isinstance(saved, dict) and TEXT in saved and one.kind.listed:
                same = {}
                for value in one.kind.listed:
                    current = described(value)
                    if adopted(saved, current) == current:
                        same[current[DIGEST]] = value
                if len(same) > 1:
                    raise RunDirError(
                        f"an earlier release saved {one.name}={saved[TEXT]}, and "
                        f"{len(same)} values of the space look like that: continue the "
                        "search with the release that began it"
                    )
                found[one.name] = next(iter(same.values()), saved)
        return found

    def from_unit(self, unit: ArrayLike) -> Params:
        """Return the configuration at a point, perhaps one that is not allowed."""
        [params] = self.from_units(np.asarray(unit, dtype=float)[None, :])
        return params

    def from_units(self, rows: Places) -> list[Params]:
        """Return the configurations at points, perhaps some that are not allowed."""
        found: list[Params] = [{} for _ in rows]
        for one, places in zip(self.coordinates, rows.T, strict=True):
            for values, value in zip(found, one.kind.values_at(places), strict=True):
                if one.is_active(values):
                    values[one.name] = value
        for values in found:
            values.pop(PART, None)
        return found

    def to_unit(self, params: Mapping[str, Any]) -> Places:
        """Return the point of a configuration.

        0.5 is the place of a parameter that it lacks, an end that of a number beyond,
        and NaN that of a category that the space does not have.
        """
        values = self._part_of(params) | dict(params)
        unit = np.full(len(self.coordinates), 0.5)
        for k, one in enumerate(self.coordinates):
            if one.name in values and one.is_active(values):
                unit[k] = place_of(values[one.name], one.kind)
        return unit

    def _part_of(self, params: Mapping[str, Any]) -> Params:
        """Return which part a configuration is of, as the value of its coordinate."""
        if not self.coordinates or self.coordinates[0].name != PART:
            return {}
        kind: Any = self.coordinates[0].kind

        def unlike(part: str) -> tuple[int, int]:
            own = [one for one in self.coordinates if one.part == part]
            names = {one.name for one in own}
            found = [place_of(params.get(one.name), one.kind) for one in own]
            beyond = (not one.kind.has(params.get(one.name)) for one in own)
            return len(names ^ params.keys()) + sum(map(math.isnan, found)), sum(beyond)

        return {PART: min(kind.values, key=unlike)}

    def features(self, units: ArrayLike) -> Places:
        """Return a row for a model per point, as ``encoding.encode``, 0 to 1 each."""
        rows = np.atleast_2d(np.asarray(units, dtype=float))
        found: list[Places] = [np.empty((len(rows), 0))]
        active = self._active(rows)
        for one, places, on in zip(self.coordinates, rows.T, active, strict=True):
            for column in one.kind.columns(places):
                other = 0.0 if one.kind.is_category else 0.5
                found.append(np.where(on, column, other)[:, None])
            if one.parents:
                found.append(np.where(on, ROOT, 0.0)[:, None])
        return np.hstack(found)

    def _active(self, rows: Places) -> list[NDArray[np.bool_]]:
        """Return of every coordinate in which rows its parameter applies."""
        active: list[NDArray[np.bool_]] = []
        at: dict[str, int] = {}  # of spaces in parts, those of the part
        needed = {name for one in self.coordinates for name in one.parents}
        codes: dict[str, NDArray[np.int64]] = {}
        for k, one in enumerate(self.coordinates):
            on = np.ones(len(rows), dtype=np.bool_)
            at[one.name] = k
            if one.parents:
                parents = np.stack([codes[name] for name in one.parents], axis=1)
                _, first, row_of = np.unique(
                    parents, axis=0, return_index=True, return_inverse=True
                )
                flags = [
                    one.is_active(
                        {
                            name: self.coordinates[at[name]].kind.value(row[at[name]])
                            for name, code in zip(one.parents, parents[i], strict=True)
                            if code >= 0
                        }
                    )
                    for i, row in zip(first, rows[first], strict=True)
                ]
                on = np.array(flags, dtype=np.bool_)[row_of.reshape(-1)]
            active.append(on)
            if one.name in needed:
                places = one.kind.snapped(rows[:, k])
                order = np.unique(places, return_inverse=True)[1]
                codes[one.name] = np.where(on & ~np.isnan(places), order, -1)
        return active

    def perturbed(self, units: ArrayLike, rng: np.random.Generator) -> Places:
        """Return points near these, each with some of its coordinates changed."""
        rows = np.atleast_2d(np.asarray(units, dtype=float))
        scale = 10.0 ** rng.uniform(-2.0, -0.5, (len(rows), 1))
        steps = scale * rng.standard_normal(rows.shape)
        moved = np.abs(rows + steps * (rng.random(rows.shape) < 0.4))
        moved = np.clip(np.where(moved > 1.0, 2.0 - moved, moved), 0.0, 1.0)
        fresh = rng.random(rows.shape)
        drawn = (rng.random(rows.shape) < 0.1) | np.isnan(rows)
        is_category = np.array([one.kind.is_category for one in self.coordinates])
        return np.where(is_category, np.where(drawn, fresh, rows), moved)


def is_space(value: Any) -> bool:
    """Return whether this is a space or a list of some, not of configurations."""
    if not isinstance(value, Sequence):
        return isinstance(value, Space | Mapping)
    dicts = (one for one in value if isinstance(one, Mapping))
    return any(isinstance(one, Space) for one in value) or any(
        is_distribution(each) for one in dicts for each in one.values()
    )


class Configurations(list[Params]):
    """Configurations drawn from a ``space``, None if they are all that is searched."""

    def __init__(
        self, drawn: Iterable[Params], space: Space | None, most: int | None = None
    ) -> None:
        super().__init__(drawn)
        self.space = space
        self.most = most  # that are tried of the space; None without a limit


def _is_satisfied(condition: Any, values: Mapping[str, Any]) -> bool:
    """Return whether a condition of ConfigSpace holds; parents may be absent."""
    from ConfigSpace.types import NotSet

    parents = (one.parent.name for one in _leaves(condition))
    found = {name: values.get(name, NotSet) for name in parents}
    return bool(condition.satisfied_by_value(found))


def _of_configspace(space: Any) -> Iterable[Coordinate]:
    conditions = {one.child.name: one for one in space.conditions}
    for name in space:
        kind = kind_of(name, space[name])
        if (condition := conditions.get(name)) is None:
            yield Coordinate(name, kind)
            continue
        needs = tuple({one.parent.name: None for one in _leaves(condition)})
        applies = partial(_is_satisfied, condition)
        yield Coordinate(name, kind, needs, applies, str(condition))


def _leaves(condition: Any) -> Iterable[Any]:
    return getattr(condition, "dlcs", [condition])  # type: ignore[no-any-return]
