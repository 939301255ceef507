"""What the network learns from."""

import numpy as np

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(64, 20))
LABELS = RNG.integers(0, 5, 64)
