"""YAML as people write it: 1e-4 is a number, and a repeated key is an error."""

from __future__ import annotations

import re
from typing import Any

import yaml

MERGE = "tag:yaml.org,2002:merge"  # a key that may be repeated


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Plain values only, as ``yaml.safe_load``."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping whose keys are all different."""
        keys = [
            self.construct_object(key, deep=True)
            for key, _ in node.value
            if key.tag != MERGE
        ]
        for key in keys:
            if keys.count(key) > 1:
                problem = f"the key {key!r} stands twice"
                raise yaml.MarkedYAMLError(
                    problem=problem, problem_mark=node.start_mark
                )
        return super().construct_mapping(node, deep=deep)


# YAML 1.1, which the library reads, wants a dot in 1.0e-4.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def load_yaml(text: str) -> Any:
    """Return the plain values of a document, or raise a ``yaml.YAMLError``.

    Examples
    --------
    >>> load_yaml("{low: 1e-4, high: 1}")
    {'low': 0.0001, 'high': 1}
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
