"""Dask workers among which the GPUs of a machine are divided."""

from typing import Any

from distributed import Nanny

from risingsearch.search.gpus import variables_of_workers


def gpu_workers(
    gpus: float = 1.0, n_workers: int | None = None
) -> dict[int, dict[str, Any]]:
    """Return the workers of a ``SpecCluster``, each with GPUs or a share of one.

    For a Dask cluster on one machine in which several workers share a GPU. Each has one
    thread, sees only its GPUs by ``CUDA_VISIBLE_DEVICES``, and has them as the resource
    ``"GPU"`` too. For one worker per GPU there is ``dask-cuda``.

    Parameters
    ----------
    gpus : float, default 1.0
        GPUs of each worker: a whole number, or the share of one.
    n_workers : int, optional
        Number of workers, from 1 to 1000; by default as many as have room.

    Returns
    -------
    dict
        The argument of ``distributed.SpecCluster(workers=...)``.

    Raises
    ------
    InvalidParameterError
        If this process sees no GPU, or fewer than the workers need.

    Examples
    --------
    >>> import os
    >>> os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"  # as a cluster sets it
    >>> workers = gpu_workers(gpus=0.5)
    >>> [workers[k]["options"]["env"]["CUDA_VISIBLE_DEVICES"] for k in range(4)]
    ['2', '3', '2', '3']
    >>> os.environ.pop("CUDA_VISIBLE_DEVICES")
    '2,3'
    """
    variables = variables_of_workers(gpus, "n_workers", n_workers)
    return {
        number: {
            "cls": Nanny,
            "options": {
                "nthreads": 1,
                "env": env,
                "resources": {"GPU": gpus},
            },
        }
        for number, env in enumerate(variables)
    }
