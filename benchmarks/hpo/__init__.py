"""Epoch schedulers replayed on recorded learning curves: the suite ``hpo``."""
