"""Scheduler: which arm trains next, within a budget: no model, no disk, no clock.

Its state is a fold over events; ``ledger`` reserves epochs, ``decisions`` asks the
policy, ``in_order`` holds results back where a run is to be deterministic, ``replay``
reads events again without deciding.
"""
