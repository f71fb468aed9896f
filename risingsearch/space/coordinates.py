"""Coordinates of a space: a parameter each, and when it applies."""

from collections.abc import Callable
from dataclasses import dataclass

from risingsearch.arms import Configuration
from risingsearch.space.kinds import Kind

PART = ""
"""Name of the coordinate that says which space of several a configuration is of."""


@dataclass(frozen=True)
class Coordinate:
    """A parameter of a space, and when it applies.

    Parameters
    ----------
    name : str
        The parameter.
    kind : Kind
        Its values.
    needs : tuple of str, optional
        The earlier parameters that decide if it applies.
    applies : callable, optional
        Whether it applies, given the values of earlier parameters by name; by default
        it always does.
    when : object, optional
        The same as JSON, to be compared.
    part : str, optional
        The space of several that it is of.

    Examples
    --------
    >>> from risingsearch.space import Interval
    >>> def with_sgd(values):
    ...     return values["name"] == "sgd"
    >>> momentum = Coordinate("momentum", Interval(0, 1), ("name",), with_sgd)
    >>> momentum.is_active({"name": "adam"}), momentum.parents
    (False, ('name',))
    """

    name: str
    kind: Kind
    needs: tuple[str, ...] = ()
    applies: Callable[[Configuration], bool] | None = None
    when: object = None
    part: str | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        """Parameters that decide if it applies, with the part."""
        if self.part is None:
            return self.needs
        return (PART, *self.needs)

    def is_active(self, values: Configuration) -> bool:
        """Return whether it applies where others have these values."""
        if self.part is not None and values.get(PART) != self.part:
            return False
        return self.applies is None or self.applies(values)
