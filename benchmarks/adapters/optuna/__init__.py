"""``RisingSampler`` beside Optuna's pruners: the suite ``optuna``."""
