"""From a tape to Python source that runs under NumPy or Numba."""
