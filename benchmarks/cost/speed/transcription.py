"""CURE-UCB in C (``cure_ucb.c``), compiled on the spot."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cost.speed.stepping import (
    HORIZON,
    N_ARMS,
    NOISE,
    PLATEAUS,
    SLOPES,
    AbsentToolError,
    Contestant,
    Run,
)
from risingsearch.policies import make_policy

SOURCE = Path(__file__).with_name("cure_ucb.c")
COMPILERS = ("cc", "gcc", "clang")
# Without contraction to fused multiply-adds every compiler rounds as Python does.
FLAGS = ("-O3", "-ffp-contract=off", "-shared", "-fPIC")


def contestant(tool: str) -> Contestant:
    """Return the compiled transcription, or raise why there is none."""
    c_play = _compiled()
    own: Any = make_policy("cure-ucb", N_ARMS, HORIZON)

    def play(seed: int) -> Run:
        generator = np.random.PCG64(seed)
        sums, pulls = np.zeros((N_ARMS, HORIZON + 1)), np.zeros(N_ARMS, dtype=np.int64)
        arguments = (
            *(N_ARMS, HORIZON, own.eps, own.sigma),
            *(np.array(SLOPES), np.array(PLATEAUS), NOISE),
            *(generator.ctypes.bit_generator, sums, pulls),
        )
        begin = time.process_time_ns()
        total = c_play(*arguments)
        spent = time.process_time_ns() - begin
        return Run(spent / HORIZON, total, pulls.tolist())

    return Contestant("cure-ucb", tool, play)


def _compiled() -> Callable[..., float]:
    """Return ``play`` of the C source."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise AbsentToolError(f"no compiler found, looked for {', '.join(COMPILERS)}")
    distributions = Path(np.random.__path__[0], "lib", "libnpyrandom.a")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "cure_ucb.so")
        files = [str(SOURCE), str(distributions), "-lm", "-o", str(library)]
        command = [compiler, *FLAGS, f"-I{np.get_include()}", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AbsentToolError(
                f"{compiler} failed: {done.stderr.strip().splitlines()[-1]}"
            )
        play: Any = ctypes.CDLL(str(library)).play
    integer, real = ctypes.c_int64, ctypes.c_double
    reals, integers = (
        np.ctypeslib.ndpointer(kind, flags="C") for kind in (np.float64, np.int64)
    )
    play.restype = real
    play.argtypes = [
        *(integer, integer, real, real),
        *(reals, reals, real),
        *(ctypes.c_void_p, reals, integers),
    ]
    c_play: Callable[..., float] = play
    return c_play
