"""One simulation in a process of its own.

``python -m benchmarks.cost.speed.one_process RUNS`` prints the highest memory in use,
in MB, or nothing where the system does not report it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.cost.speed.stepping import ENVIRONMENT, HORIZON
from risingsearch.simulation import simulate


def main() -> None:
    """Play CURE-UCB as often as the argument says."""
    simulate("cure-ucb", ENVIRONMENT, HORIZON, int(sys.argv[1]), compiled=True)
    print(peak() or "")


def peak() -> float | None:
    """Return the highest resident memory of this process, in MB."""
    # Not through getrusage, which counts the parent's at the time of the fork.
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) / 1024


if __name__ == "__main__":
    main()
