"""What it costs: the suites ``speed``, ``overhead`` and ``scaling``."""
