"""Persistent state of a search: run directory, journal, checkpoints.

The journal is the truth: lines of JSON with checksums. It imports no scheduler.
"""
