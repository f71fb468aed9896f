"""Persistent state of a search: run directory, journal, checkpoints."""
