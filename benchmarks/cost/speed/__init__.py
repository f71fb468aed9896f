"""Steps per second, start, threads and memory: the suite ``speed``."""
