"""Continuous spaces, searched beside Optuna's samplers."""
