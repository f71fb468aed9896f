"""How a check says which rule is broken."""

from __future__ import annotations


def require(condition: bool, message: str) -> None:
    """Raise an AssertionError that says what was found, unless the rule holds."""
    if not condition:
        raise AssertionError(message)
