"""``jax.scipy``: SciPy's modules of these names, each imported when it is asked for."""
