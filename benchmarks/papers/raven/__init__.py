"""The RAVEN-UCB paper: the suite ``raven``."""
