import sys
from pathlib import Path

# The benchmarks are run from a checkout; they are no part of what is installed.
sys.path.insert(0, str(Path(__file__).parents[2]))
