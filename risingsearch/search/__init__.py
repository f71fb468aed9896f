"""Searches over anything trainable: run jobs, keep what they produce, resume."""
