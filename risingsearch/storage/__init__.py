"""What survives a process: run directory, journal, checkpoints."""
