"""Searches over training scripts, in any language."""
