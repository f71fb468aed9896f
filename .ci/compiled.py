"""Compile what pip has unpacked while it unpacks the rest: python compiled.py DONE.

The tests' workers begin with the same imports, and each would compile all of it. Ends
when the file DONE is there.
"""

import sys
import time
from compileall import compile_dir, compile_file
from importlib.metadata import distributions
from pathlib import Path

# Of these, most modules are imported.
NEEDED = {
    *("configspace", "botocore", "dask", "datasets", "distributed", "hypothesis"),
    *("ipython", "joblib", "lightning", "matplotlib", "narwhals", "nbformat", "numba"),
    *("numpy", "optuna", "pandas", "pydantic", "pytest", "ray", "rich", "scikit-learn"),
    *("scipy", "sphinx", "sqlalchemy", "sympy", "tensorboard", "torch", "torchmetrics"),
}
NEVER = {"_inductor", "rllib", "serve", "test", "testing", "tests"}

done = Path(sys.argv[1])
for folder in ("risingsearch", "integrations", "benchmarks"):
    compile_dir(folder, quiet=2)
unpacked = set()
while not done.exists():
    for package in distributions(path=[*map(str, Path(".venv/lib").glob("*/*"))]):
        # pip writes INSTALLER last; before METADATA is there, no name is known.
        name = (package.name or "").lower()
        if name not in NEEDED - unpacked or not package.read_text("INSTALLER"):
            continue
        unpacked.add(name)
        for file in package.files or ():
            if done.exists():
                break
            if file.suffix == ".py" and not NEVER & set(file.parts):
                compile_file(package.locate_file(file), quiet=2)
    time.sleep(0.5)
