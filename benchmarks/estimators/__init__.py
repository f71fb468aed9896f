"""Curated spaces: their portfolio of starts, and what searches in them are worth."""
