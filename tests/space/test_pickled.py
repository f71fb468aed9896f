"""Spaces that an earlier release has pickled into a run directory."""

import pickle

import pytest

from risingsearch.space import Space
from risingsearch.space.pickled import unpickled


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("risingsearch.parameters", "Interval"),
        ("risingsearch.parameters", "Choices"),
        ("risingsearch.space", "Space"),
        ("risingsearch.space", "Coordinate"),
        ("risingsearch.space", "Configurations"),
        ("risingsearch.space", "_is_satisfied"),
    ],
)
def test_what_has_moved_is_found(module, name):
    by_name = f"c{module}\n{name}\n.".encode()
    assert unpickled(by_name).__name__ == name


def test_an_earlier_space_is_the_one_that_was_pickled():
    space = Space.of({"rate": [0.1, 0.2], "kind": ["a", "b"]})
    earlier = pickle.dumps(space, protocol=0)
    earlier = earlier.replace(b"risingsearch.space.kinds", b"risingsearch.parameters")
    earlier = earlier.replace(b"risingsearch.space.space", b"risingsearch.space")
    earlier = earlier.replace(b"risingsearch.space.coordinates", b"risingsearch.space")
    assert unpickled(earlier).description == space.description
