"""``jax.tree``: the short names of ``jax.tree_util``."""

from fwdad.compat.jax.tree_util import tree_leaves as leaves
from fwdad.compat.jax.tree_util import tree_map as map  # noqa: A004  (the name is JAX's)

__all__ = ["leaves", "map"]
