"""The rotting bandits paper: the suite ``rotting``."""
