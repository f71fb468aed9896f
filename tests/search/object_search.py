"""A search with its checkpoints in an object store, as a program that can be killed.

``python object_search.py RUN_DIR URL`` begins once a line comes in.
"""

import sys
from pathlib import Path

from kept_search import Rising

from risingsearch.search.search import RisingSearch

CANDIDATES = [{"arm": i, "top": 0.3 + 0.1 * i, "speed": 1 + i % 3} for i in range(5)]


class Large(Rising):
    """Its states do not fit into one packet."""

    def start(self, params, seed):
        return {"weights": b"w" * 200_000, **super().start(params, seed)}


def object_search(run_dir, url, trainable=None, **options):
    defaults = {"budget": 16, "max_epochs": 5, "seed": 4, "deterministic": True}
    return RisingSearch(
        trainable or Large(),
        CANDIDATES,
        run_dir=run_dir,
        checkpoints=url,
        **defaults | options,
    )


if __name__ == "__main__":
    sys.stdin.readline()
    object_search(Path(sys.argv[1]), sys.argv[2]).run()
