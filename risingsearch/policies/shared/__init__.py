"""Formulas that policies of several families use."""
