"""Spaces of configurations: their parameters as each library describes them.

``readers`` has a reader for each library; ``kinds`` the values of a parameter along a
coordinate; ``space`` the configurations as points of a cube.
"""

from risingsearch.arms import Configuration, Params
from risingsearch.space.coordinates import PART, Coordinate
from risingsearch.space.kinds import (
    ROOT,
    Choices,
    Drawn,
    Interval,
    Kind,
    Quantiles,
    Uneven,
    place_of,
)
from risingsearch.space.readers import is_distribution, kind_of
from risingsearch.space.space import Configurations, Space, is_space
from risingsearch.space.values import exact, is_between, is_number, key_of, key_of_all

__all__ = [
    "PART",
    "ROOT",
    "Choices",
    "Configuration",
    "Configurations",
    "Coordinate",
    "Drawn",
    "Interval",
    "Kind",
    "Params",
    "Quantiles",
    "Space",
    "Uneven",
    "exact",
    "is_between",
    "is_distribution",
    "is_number",
    "is_space",
    "key_of",
    "key_of_all",
    "kind_of",
    "place_of",
]
