"""Run one suite: ``python -m benchmarks SUITE [--quick | --full] [--out DIR] ...``."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path

SUITES = {
    "overhead": "what scheduling costs, and what a search costs above its training",
    "peers": "RisingSearchCV beside other searches, epochs audited inside the model",
}


def main(argv: list[str] | None = None) -> None:
    """Run the suite that the arguments name."""
    listing = "\n".join(f"  {name:10} {what}" for name, what in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Suites:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=sorted(SUITES), metavar="SUITE")
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument("--quick", action="store_true", help="within two minutes")
    scale.add_argument("--full", action="store_true", help="more repetitions")
    parser.add_argument(
        "--out", type=Path, default=Path("benchmark-results"), help="where results go"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first repetition")
    arguments = parser.parse_args(argv)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    out = arguments.out / arguments.suite
    out.mkdir(parents=True, exist_ok=True)
    suite = importlib.import_module(f"benchmarks.{arguments.suite}")
    chosen = "quick" if arguments.quick else "full" if arguments.full else "default"
    suite.run(out, scale=chosen, seed=arguments.seed)


if __name__ == "__main__":
    main()
