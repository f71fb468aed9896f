"""What the adapters to Optuna and Ray Tune add: the suites ``optuna``, ``ray``."""
