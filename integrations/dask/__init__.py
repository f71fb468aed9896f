"""Dask: searches that train on the workers of a ``distributed`` cluster.

A search is given a client, or ``client.get_executor()``, as ``executor``. ``counters``
says what each worker has received.
"""

from risingsearch.errors import missing

try:
    import distributed  # noqa: F401 - what the rest of the package needs
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("distributed", "dask"):
        raise
    raise missing("dask.distributed", extra="dask") from error

from risingsearch.integrations.dask.remote import Counters, counters
from risingsearch.integrations.dask.workers import DaskWorkers

__all__ = ["Counters", "DaskWorkers", "counters"]
