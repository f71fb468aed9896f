"""YAML as people write it: 1e-4 is a number, and a repeated key is an error.

What a few lines can blow up is refused while it is read, before it is built: aliases of
aliases, merges of merges, nesting, numbers of thousands of digits.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from risingsearch.errors import InvalidParameterError
from risingsearch.scripts.problems import cut

LARGEST_FILE = 1 << 18  # bytes
MOST_NODES = 5_000
"""Keys, values, lists and mappings of a document; those behind an alias count again."""
DEEPEST = 50  # lists and mappings inside each other
LONGEST_NUMBER = 100  # characters

_TAG = "tag:yaml.org,2002:"
MERGE = f"{_TAG}merge"  # a key that may be repeated
PLAIN = {
    f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map")
} | {MERGE}
_NUMBERS = (f"{_TAG}int", f"{_TAG}float")
_MISREAD = re.compile(r"[-+]?(0[\d_]+|.*:.*)")  # YAML 1.1: 010 is 8, and 1:30 is 90
_LIKE_A_NUMBER = re.compile(r"[-+.]*\d[\w.:+-]*")


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Plain values only: what JSON has."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.name = "the file"  # in messages, which name it
        self._n_nodes = 0
        self._depth = 0
        self._sizes: dict[int, int] = {}  # nodes in each node, by its id

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node, once it is known to be small enough."""
        before = self._n_nodes
        self._count(1)
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._refused(f"it is more than {DEEPEST} lists and mappings deep")
        event = self.peek_event()
        if getattr(event, "tag", None) is not None:
            raise self._refused(f"the tag {event.tag!r} is not allowed")
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise self._refused("an alias stands inside what it names", node)
            self._count(self._sizes[id(node)] - 1)
        else:
            self._check_kind(node)
            self._sizes[id(node)] = self._n_nodes - before
        self._depth -= 1
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Return the tag of a node; what is too long for a number is no number."""
        if kind is yaml.ScalarNode and len(value) > LONGEST_NUMBER and implicit[0]:
            if _LIKE_A_NUMBER.fullmatch(value):
                raise self._refused(
                    f"a number has at most {LONGEST_NUMBER} characters; put text in "
                    "quotes"
                )
            return f"{_TAG}str"
        tag = super().resolve(kind, value, implicit)
        if tag in _NUMBERS and implicit[0] and _MISREAD.fullmatch(value):
            raise self._refused(
                f"{value} would be read as another number: write it without colons and "
                "leading zeros, or put text in quotes"
            )
        return tag

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping whose keys are all different."""
        known = set()
        for key_node, _ in node.value:
            if key_node.tag == MERGE:
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise self._refused("a list or a mapping cannot be a key", key_node)
            if key in known:
                raise self._refused(f"the key {key!r} stands twice", key_node)
            known.add(key)
        return super().construct_mapping(node, deep=deep)

    def _count(self, n_nodes: int) -> None:
        self._n_nodes += n_nodes
        if self._n_nodes > MOST_NODES:
            problem = (
                f"it has more than {MOST_NODES:,} keys and values, where those behind "
                "an alias count again"
            )
            raise self._refused(problem)

    def _check_kind(self, node: Any) -> None:
        if node.tag not in PLAIN:
            kind = node.tag.removeprefix(_TAG)
            problem = (
                f"{kind!r} is no kind of value here: write a number, true, false or "
                "text, in quotes where it looks like something else"
            )
            raise self._refused(problem, node)

    def _refused(self, problem: str, node: Any = None) -> yaml.YAMLError:
        mark = self.get_mark() if node is None else node.start_mark
        mark.buffer = None  # else the message shows the line, however long it is
        return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes what the loader reads, each value where it stands."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return that nothing is written as an alias."""
        return True


for _kind in (_Loader, _Dumper):
    # YAML 1.1, which the library reads, wants a dot in 1.0e-4.
    _kind.add_implicit_resolver(
        f"{_TAG}float",
        re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )


def read_yaml(path: Path) -> Any:
    """Return the plain values in a YAML or JSON file, or raise what is wrong."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        msg = f"{path} cannot be read ({problem})"
        raise InvalidParameterError(msg) from error
    if len(content) > LARGEST_FILE:
        msg = f"{path} is larger than {LARGEST_FILE:,} bytes, which no sweep has to be"
        raise InvalidParameterError(msg)
    try:
        return load_yaml(content.decode())
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{path} is not YAML: {cut(' '.join(str(error).split()))}"
        raise InvalidParameterError(msg) from error


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
    except ValueError as error:  # 0x_ is a number by its looks only
        raise yaml.YAMLError(str(error)) from error
    finally:
        loader.dispose()


def dump_yaml(values: Any) -> str:
    """Return plain values as a document that ``load_yaml`` reads as the same.

    Examples
    --------
    >>> print(dump_yaml({"low": 1e-05, "name": "1e-4", "lists": [[1, 2]]}), end="")
    low: 1.0e-05
    name: '1e-4'
    lists:
    - [1, 2]
    """
    return str(
        yaml.dump(
            values,
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=None,
            width=88,
        )
    )
