"""Short names for the arrays that policies are made of, and for their generator."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = np.random.Generator
