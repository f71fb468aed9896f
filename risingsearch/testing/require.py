"""How a check reports a broken rule."""

from __future__ import annotations


def require(condition: bool, message: str) -> None:
    """Raise an AssertionError with the message, unless the condition holds."""
    if not condition:
        raise AssertionError(message)
