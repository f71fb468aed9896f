"""The smooth non-stationary bandits paper: the suite ``smooth``."""
