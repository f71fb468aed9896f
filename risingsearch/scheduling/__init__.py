"""Scheduler: which arm trains next, within a budget: no model, no disk, no clock.

Its state is a fold over events; ``ledger`` reserves epochs, ``decisions`` asks the
policy, ``replay`` reads events again without deciding.
"""
