"""The searches of ``risingsearch demo`` with more seeds: the suite ``demo``."""
