"""``jax.config``: double precision, which is what NumPy has, may be asked for."""

from typing import Any


def update(name: str, value: Any) -> None:
    """Take ``jax_enable_x64``, which is always so here.

    Parameters
    ----------
    name : str
        A setting of JAX's.
    value : object
        Its value.

    Raises
    ------
    NotImplementedError
        For any other setting, and for single precision.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> jax.config.update("jax_enable_x64", True)
    """
    if name == "jax_enable_x64" and value:
        return
    raise NotImplementedError(
        f"jax.config.update({name!r}, {value!r}) has no counterpart in fwdad. NumPy's arrays have "
        "double precision unless they are made otherwise: write x.astype(np.float32)"
        if name == "jax_enable_x64"
        else f"jax.config.update({name!r}, ...) has no counterpart in fwdad: take the line out"
    )
