"""Scheduler: which arm trains next, within a budget: no model, no disk, no clock."""
