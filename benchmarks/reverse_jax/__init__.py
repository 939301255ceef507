"""The programs again, as JAX has to have them: ``fori_loop``, ``scan``, ``.at[]``.

Where the loops of the program in NumPy depend on one another, they are loops here; where a user of
JAX would take whole arrays, this does. Nobody imports JAX who does not ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def programs() -> dict[str, Callable[..., Any]]:
    """The programs by name; of bundle adjustment its Jacobian."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from benchmarks.reverse_jax import bundle, factorisations, fields, others, products, stencils

    return {
        name: f
        for module in (stencils, factorisations, products, others, fields, bundle)
        for name, f in vars(module).items()
        if getattr(f, "__module__", "") == module.__name__ and not name.startswith("_")
    }
