"""Policies of hyperparameter tuning: which configuration trains on."""
