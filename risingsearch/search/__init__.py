"""Searches over anything trainable: run jobs, keep their results, resume."""
