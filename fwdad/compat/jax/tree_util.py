"""``jax.tree_util``: functions of all leaves of a structure of tuples, lists and dicts.

A leaf is anything else, an int too, as in JAX; :func:`fwdad.tree_map` takes what is differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.compat.conventions import refused


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply a function to every leaf, with those at the same place of other structures.

    Parameters
    ----------
    f : callable
        ``f(leaf, *others)``.
    tree, *rest : object
        Structures. None has no leaves.

    Returns
    -------
    like tree

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> jax.tree_util.tree_map(lambda x, y: x + y, {"a": 1, "b": (2.0,)}, {"a": 10, "b": (20.0,)})
    {'a': 11, 'b': (22.0,)}
    """
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {key: tree_map(f, part, *[r[key] for r in rest]) for key, part in tree.items()}
    if isinstance(tree, (tuple, list)):
        parts = [tree_map(f, part, *[r[k] for r in rest]) for k, part in enumerate(tree)]
        if isinstance(tree, list):
            return parts
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return f(tree, *rest)


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a structure, in the order of sorted keys.

    Parameters
    ----------
    tree : object
        A structure. None has no leaves.

    Returns
    -------
    list
    """
    if tree is None:
        return []
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in tree_leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in tree_leaves(part)]
    return [tree]


_INSTEAD = "Write tree_map, or vector, unravel = fwdad.ravel(tree)"
tree_flatten = refused("jax.tree_util.tree_flatten", _INSTEAD)
tree_unflatten = refused("jax.tree_util.tree_unflatten", _INSTEAD)
tree_structure = refused("jax.tree_util.tree_structure", _INSTEAD)
register_pytree_node = refused(
    "jax.tree_util.register_pytree_node",
    "Classes are differentiated field by field; write fwdad.register_tangent_type for another way",
)
