"""Measurements: ``python -m benchmarks SUITE``."""
