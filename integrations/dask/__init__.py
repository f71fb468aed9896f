"""Dask: searches that train on the workers of a ``distributed`` cluster.

The ``executor`` of a search is a client, or ``client.get_executor()``; ``gpu_workers``
divides GPUs among workers.
"""

from risingsearch.errors import needed

with needed("dask.distributed", "dask", of=("distributed", "dask")):
    import distributed  # noqa: F401 - what the rest of the package needs

from risingsearch.integrations.dask.gpu_workers import gpu_workers
from risingsearch.integrations.dask.workers import DaskWorkers

__all__ = ["DaskWorkers", "gpu_workers"]
