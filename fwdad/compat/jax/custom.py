"""``custom_jvp`` and ``custom_vjp``: rules as JAX writes them, registered as fwdad's.

What they return is a copy of the function, with the methods that JAX's have.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from fwdad.compat.conventions import conjugate, copy_of
from fwdad.eager_reverse.define import rrule
from fwdad.rules.core.define import frule
from fwdad.rules.core.registry import function_name
from fwdad.tangents.vectors import zero_tangent
from fwdad.tangents.zero import ZERO, Zero

REGISTERS_FOR_OTHERS = True  # its callers are who registers a rule


def custom_jvp(fun: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> Any:
    """Make a function that has a rule for forward mode, set by its ``defjvp`` or ``defjvps``.

    Parameters
    ----------
    fun : callable
        A Python function whose arguments are passed by position.
    nondiff_argnums : tuple of int, default ()
        Arguments without a tangent, which a rule gets first.

    Returns
    -------
    callable
        A copy of fun. ``defjvp(rule)`` takes ``rule(primals, tangents)``, behind the arguments
        without a tangent, which returns ``(y, y_dot)``. The tangents are a ``Chunk``, N at a time:
        use them in linear operations only. ``defjvps(*rules)`` takes one for each argument,
        ``rule(tangent, ans, *primals)``, or None.

    Raises
    ------
    UnsupportedTypeError
        If fun is no Python function.

    Notes
    -----
    Reverse mode uses the same rule, run backwards: see :func:`fwdad.frule`.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> import fwdad.compat.jax.numpy as jnp
    >>> @jax.custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log(1.0 + jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * x_dot
    >>> jax.grad(log1pexp)(100.0)
    1.0
    """
    made = copy_of(fun)
    made.defjvp = functools.partial(_defjvp, made, nondiff_argnums)
    made.defjvps = functools.partial(_defjvps, made)
    return made


def _defjvp(
    fun: Any, nondiff_argnums: tuple[int, ...], rule: Callable[..., Any], **_options: Any
) -> Callable[..., Any]:
    places = _Places(fun, nondiff_argnums)

    @frule(fun, argnums=places.active)
    def registered(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        return rule(*places.constants(options), primals, _written_out(primals, tangents))

    return rule


def _defjvps(fun: Any, *rules: Any) -> None:
    @frule(fun, argnums=tuple(range(len(rules))))
    def registered(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        ans = fun(*primals, **options)
        y_dot: Any = ZERO
        for rule, x_dot in zip(rules, tangents, strict=True):
            if rule is not None and not isinstance(x_dot, Zero):
                y_dot = y_dot + rule(x_dot, ans, *primals)
        return ans, y_dot


def _written_out(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tangents with zeros in place of ``ZERO``: JAX's rules compute with all of them."""
    n = next(t.n for t in tangents if not isinstance(t, Zero))
    pairs = zip(primals, tangents, strict=True)
    return tuple([zero_tangent(x, n) if isinstance(t, Zero) else t for x, t in pairs])


def custom_vjp(fun: Callable[..., Any], nondiff_argnums: tuple[int, ...] = ()) -> Any:
    """Make a function that has a rule for reverse mode, set by its ``defvjp``.

    Parameters
    ----------
    fun : callable
        A Python function whose arguments are passed by position.
    nondiff_argnums : tuple of int, default ()
        Arguments without a cotangent, which the backward rule gets first.

    Returns
    -------
    callable
        A copy of fun. ``defvjp(fwd, bwd)`` takes ``fwd(*args)``, which returns ``(y, residuals)``,
        and ``bwd(*nondiff_args, residuals, y_bar)``, which returns a tuple with the cotangent of
        each other argument, or None.

    Raises
    ------
    UnsupportedTypeError
        If fun is no Python function.

    Notes
    -----
    Forward mode, which JAX refuses for such a function, differentiates its source: see
    :func:`fwdad.rrule`.

    Examples
    --------
    >>> import fwdad.compat.jax as jax
    >>> import fwdad.compat.jax.numpy as jnp
    >>> @jax.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))
    >>> jax.grad(lambda x: 10.0 * clip_gradient(x))(2.0)
    1.0
    """
    made = copy_of(fun)
    made.defvjp = functools.partial(_defvjp, made, nondiff_argnums)
    return made


def _defvjp(
    fun: Any,
    nondiff_argnums: tuple[int, ...],
    fwd: Callable[..., Any],
    bwd: Callable[..., Any],
    **_options: Any,
) -> None:
    places = _Places(fun, nondiff_argnums)

    @rrule(fun, argnums=places.active)
    def registered(primals: tuple[Any, ...], **options: Any) -> Any:
        constants = places.constants(options)
        y, residuals = fwd(*places.all(primals, constants))

        def pullback(y_bar: Any) -> Any:
            return tuple(conjugate(tuple(bwd(*constants, residuals, conjugate(y_bar)))))

        return y, pullback


class _Places:
    """Which arguments of a function have tangents, and where they stand."""

    def __init__(self, fun: Any, nondiff_argnums: tuple[int, ...]) -> None:
        parameters = list(inspect.signature(fun).parameters.values())
        many = [p.name for p in parameters if p.kind not in _BY_POSITION]
        if many:
            raise ValueError(
                f"{function_name(fun)} has the parameter {many[0]!r}, which is not passed by "
                "position: its rules need a fixed number of positional parameters"
            )
        self.names = [p.name for p in parameters]
        self.inactive = tuple([k % len(parameters) for k in nondiff_argnums])
        self.active = tuple([k for k in range(len(parameters)) if k not in self.inactive])

    def constants(self, options: dict[str, Any]) -> list[Any]:
        """The arguments without tangents."""
        return [options[self.names[k]] for k in self.inactive]

    def all(self, primals: tuple[Any, ...], constants: list[Any]) -> list[Any]:
        """All arguments, in the order of the function."""
        values = dict(zip(self.active, primals, strict=True))
        values.update(zip(self.inactive, constants, strict=True))
        return [values[k] for k in range(len(self.names))]


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
