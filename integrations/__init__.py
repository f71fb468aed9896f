"""Adapters: thin layers that translate between a framework and the search.

Each imports its framework when it is itself imported, and says how to install it where
it is missing; this package imports none.

``risingsearch.integrations.sklearn``
    ``RisingSearchCV``, a search estimator beside ``GridSearchCV``.
"""
