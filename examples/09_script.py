"""
A script, in any language
=========================

``risingsearch run`` searches over a command: it continues from a checkpoint folder,
trains the epochs that it is told, and prints a line of JSON for each. The script here
is in Python, and uses nothing but its standard library; the command comes with
``pip install "risingsearch[cli,plot]"``.
"""

import sys
import tempfile
from pathlib import Path

from risingsearch import RisingSearch
from risingsearch.cli.main import main

folder = Path(tempfile.mkdtemp())
script, sweep, run_dir = folder / "train.py", folder / "sweep.yaml", folder / "run"
script.write_text("""
import json, os
from pathlib import Path

rate = json.loads(os.environ["RISINGSEARCH_PARAMS"])["rate"]
first = int(os.environ["RISINGSEARCH_FROM_EPOCH"])
last = int(os.environ["RISINGSEARCH_TO_EPOCH"])
kept = Path(os.environ["RISINGSEARCH_CHECKPOINT_DIR"], "x.json")

x = json.loads(kept.read_text()) if first else 2.0
for epoch in range(first + 1, last + 1):
    x -= rate * 4 * x * (x * x - 1)  # the gradient of (x^2 - 1)^2
    print(json.dumps({"epoch": epoch, "score": -((x * x - 1) ** 2)}))
kept.write_text(json.dumps(x))
""")
sweep.write_text(f"""
command: [python3, {script}]
parameters:
  rate: {{type: log-uniform, low: 1e-4, high: 1e-1}}
budget: 24
max_epochs: 8
epochs_per_job: 2
seed: 0
""")

# %%
# In a terminal this is ``risingsearch run sweep.yaml --run-dir run``.

if failed := main(["run", str(sweep), "--run-dir", str(run_dir)]):
    sys.exit(failed)

# %%
# What it has found is in its run directory, also while it goes on.

RisingSearch.saved_result(run_dir).plot_curves()
