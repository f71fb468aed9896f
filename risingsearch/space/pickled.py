"""Pickled spaces, of this release and of those before it."""

import io
import pickle
from typing import Any

_MOVED = {
    "risingsearch.parameters": "risingsearch.space",
    "risingsearch.space._is_satisfied": "risingsearch.space.from_configspace",
}
"""Modules and names of earlier releases, and the modules that have them today."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = _MOVED.get(f"{module}.{name}", _MOVED.get(module, module))
        return super().find_class(module, name)


def unpickled(content: bytes) -> Any:
    """Return a pickled space or configurations; this can run any code.

    Parameters
    ----------
    content : bytes
        What ``pickle.dumps`` has returned, perhaps of an earlier release, whose classes
        had other modules.

    Returns
    -------
    object
        What was pickled.

    Examples
    --------
    >>> from risingsearch.space import Space
    >>> unpickled(pickle.dumps(Space.of({"depth": [1, 2]}))).names
    ['depth']
    """
    return _Unpickler(io.BytesIO(content)).load()
