"""Adapters: thin layers that translate between a framework and the search.

Each imports its framework when it is itself imported, and says how to install it where
it is missing; this package imports none.

``risingsearch.integrations.sklearn``
    ``RisingSearchCV``, a search estimator beside ``GridSearchCV``.
``risingsearch.integrations.torch``
    ``TorchTrainable`` and its kin: training loops that pause and resume bit for bit.
``risingsearch.integrations.optuna``
    ``RisingSampler`` and ``RisingPruner``: Optuna trials that pause and come back.
``risingsearch.integrations.dask``
    ``executor=client.get_executor()``: searches on the workers of a Dask cluster.
``risingsearch.integrations.ray``
    ``RisingScheduler``: Ray Tune trials that pause and come back; ``results``.
``risingsearch.integrations.trackers``
    ``MLflowTracker``, ``TensorBoardTracker``, ``WandbTracker``: live views.
"""
