"""``to_jax``: a function of fwdad's as one of JAX's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.compat.bridges.functions import (
    Arguments,
    Layout,
    check_function,
    is_number,
    peer,
    pulled,
    pushed,
)


def to_jax(f: Callable[..., Any], *, result: Any = None) -> Callable[..., Any]:
    """Make a function that JAX differentiates, compiles and maps of one that it could not.

    Parameters
    ----------
    f : callable
        ``f(*args)``, any NumPy program. Its arguments and its value are arrays, numbers, or tuples,
        lists, dicts and dataclasses of these.
    result : structure or callable, optional
        What f's value looks like, for calls under ``jax.jit`` and ``jax.vmap``: a structure of
        arrays or ``jax.ShapeDtypeStruct``; or a function that makes one of arguments like f's. By
        default f is called once, with ones, for each kind of arguments.

    Returns
    -------
    callable
        It takes JAX's arrays in place of NumPy's, and returns them. Python's ints, strings and the
        like are passed on; arrays of ints and bools have no derivative.

    Raises
    ------
    ImportError
        If JAX is not installed.
    UnsupportedTypeError
        If f is no function; when it is called with numbers of other types than float32 and float64.

    Notes
    -----
    A ``jax.custom_jvp`` around ``jax.pure_callback``, whose rule is a linear operation that is
    transposed by ``vjp``: so all of JAX's transformations work, in any order. ``vmap`` calls f for
    each element. Derivatives are bridged themselves, and each product runs f again. What f puts out
    or writes outside may happen more or less often, as JAX says of callbacks. f gets single
    precision unless JAX is told ``jax_enable_x64``.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat import to_jax
    >>> def burgers(u):
    ...     u = u.copy()
    ...     u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    ...     return u
    >>> step = to_jax(burgers)  # doctest: +SKIP
    >>> jax.jit(jax.jacrev(step))(jnp.linspace(0.0, 1.0, 8))  # doctest: +SKIP
    """
    check_function(f, "to_jax")
    jax = peer("jax", "jax")

    def is_array(x: Any) -> bool:
        return isinstance(x, (jax.Array, np.ndarray, np.generic, float))

    @functools.wraps(f)
    def bridged(*args: Any) -> Any:
        arguments = Arguments(args, is_array)
        arrays = [jax.numpy.asarray(x) for x in arguments.arrays]
        call = _Call(f, arguments, result)
        found = call.custom()(*arrays)
        return call.value(found)

    return bridged


class _Call:
    """A call of f with arguments of one kind; after it, where the arrays of the value stand."""

    def __init__(self, f: Callable[..., Any], arguments: Arguments, result: Any) -> None:
        self.f = f
        self.arguments = arguments
        self.result = result
        self.value: Any = None

    def custom(self) -> Any:
        """The call as a function of JAX's arrays, with its rule."""
        jax = peer("jax", "jax")

        @jax.custom_jvp
        def run(*arrays: Any) -> Any:
            if not any(isinstance(x, jax.core.Tracer) for x in arrays):
                return [jax.numpy.asarray(y) for y in self.on_arrays(*arrays)]
            self.value = self.value or self.layout(arrays)
            like = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in self.value.arrays]
            return jax.pure_callback(self.on_arrays, like, *arrays, vmap_method="sequential")

        @run.defjvp
        def rule(arrays: Any, dots: Any) -> Any:
            found = run(*arrays)
            y_dots = iter(
                _linear().bind(
                    *arrays,
                    *self.arguments.only_real(dots),
                    push=self.push,
                    pull=self.pull,
                    count=len(arrays),
                )
            )
            return found, [
                next(y_dots) if real else np.zeros(y.shape, jax.dtypes.float0)
                for y, real in zip(found, self.value.real, strict=True)
            ]

        return run

    def on_arrays(self, *arrays: Any) -> Any:
        """The arrays of the value, of the dtypes that JAX has."""
        found = Layout(self.f(*self.arguments([np.array(x)[()] for x in arrays])), is_number)
        if self.value is None:
            self.value = found
        elif self.value.structure.kind != found.structure.kind or [
            np.shape(x) for x in found.arrays
        ] != [np.shape(x) for x in self.value.arrays]:
            raise ValueError(
                f"the value has arrays of shapes {[np.shape(x) for x in found.arrays]}, where "
                f"{[np.shape(x) for x in self.value.arrays]} was expected: pass to_jax(f, "
                "result=...) the structure of the value"
            )
        return [np.asarray(x, _dtype(x)) for x in found.arrays]

    def layout(self, arrays: Any) -> Layout:
        """Where the arrays of the value stand, and their shapes, without its numbers."""
        if self.result is not None:
            return self._told(arrays)
        ones = [np.ones(x.shape, x.dtype)[()] for x in arrays]
        try:
            y = self.f(*self.arguments(ones))
        except Exception as error:
            error.add_note(
                "to_jax has called the function with ones, to see the shapes of its value: pass "
                "to_jax(f, result=...) to say what they are"
            )
            raise
        found = Layout(y, is_number)
        return Layout(found([_like(x) for x in found.arrays]), _has_shape)

    def _told(self, arrays: Any) -> Layout:
        result = self.result
        if callable(result):
            result = result(*self.arguments([_like(x) for x in arrays]))
        return Layout(result, _has_shape)

    def push(self, arrays: Any, dots: Any) -> Any:
        """The tangents of the value's real arrays, for those of the arguments'."""
        forward = to_jax(
            pushed(self.f, self.arguments.argnums), result=self.value.tangent(self._real_values())
        )
        args = self.arguments(arrays)
        return self.value.parts(forward(self.arguments.tangents(dots), *args))

    def pull(self, arrays: Any, bars: Any) -> Any:
        """The cotangents of the arguments' real arrays, for those of the value's."""
        like = self.arguments.only_real([_like(x) for x in self.arguments.arrays])
        backward = to_jax(
            pulled(self.f, self.arguments.argnums), result=self.arguments.tangents(like)
        )
        trees = backward(self.value.tangent(bars), *self.arguments(arrays))
        return self.arguments.cotangents(trees)

    def _real_values(self) -> list[Any]:
        return self.value.only_real([_like(y) for y in self.value.arrays])


def _dtype(x: Any) -> Any:
    """The dtype that JAX has for a NumPy array or a number: single precision, unless told."""
    return peer("jax", "jax").dtypes.canonicalize_dtype(np.result_type(x))


def _like(x: Any) -> Any:
    """The shape and the dtype of an array."""
    dtype = x.dtype if hasattr(x, "dtype") else np.result_type(x)
    return peer("jax", "jax").ShapeDtypeStruct(
        np.shape(x), peer("jax", "jax").dtypes.canonicalize_dtype(dtype)
    )


def _has_shape(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")


@functools.cache
def _linear() -> Any:
    """A linear operation of JAX's, given by two functions that are each other's transposes.

    Its operands are ``count`` arrays on which it depends in any way, and those in which it is
    linear: ``push(arrays, dots)`` and ``pull(arrays, bars)`` are lists.
    """
    jax = peer("jax", "jax")
    ad = peer("jax.interpreters.ad", "jax")
    batching = peer("jax.interpreters.batching", "jax")
    mlir = peer("jax.interpreters.mlir", "jax")
    linear = peer("jax.extend.core", "jax").Primitive("fwdad_linear")
    linear.multiple_results = True

    @linear.def_impl
    def run(*operands: Any, push: Any, pull: Any, count: int) -> Any:
        return push(operands[:count], operands[count:])

    @linear.def_abstract_eval
    def abstract(*operands: Any, push: Any, pull: Any, count: int) -> Any:
        like = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands]
        found = jax.eval_shape(push, like[:count], like[count:])
        return [jax.core.ShapedArray(x.shape, x.dtype) for x in found]

    def pushes(operands: Any, dots: Any, *, push: Any, pull: Any, count: int) -> Any:
        same = {"push": push, "pull": pull, "count": count}
        arrays, linear_in = operands[:count], operands[count:]
        found = linear.bind(*operands, **same)
        total = [jax.numpy.zeros_like(y) for y in found]
        if any(type(d) is not ad.Zero for d in dots[count:]):
            given = [ad.instantiate_zeros(d) for d in dots[count:]]
            total = linear.bind(*arrays, *given, **same)
        moving = [k for k in range(count) if type(dots[k]) is not ad.Zero and _is_real(arrays[k])]
        if moving:

            def along(*some: Any) -> Any:
                every = list(arrays)
                for k, x in zip(moving, some, strict=True):
                    every[k] = x
                return push(every, linear_in)

            primals = [arrays[k] for k in moving]
            _, more = jax.jvp(along, primals, [dots[k] for k in moving])
            total = [a + b for a, b in zip(total, more, strict=True)]
        return found, total

    def pulls(bars: Any, *operands: Any, push: Any, pull: Any, count: int) -> Any:
        given = [ad.instantiate_zeros(b) for b in bars]
        found = linear.bind(*operands[:count], *given, push=pull, pull=push, count=count)
        wanted = [ad.is_undefined_primal(x) for x in operands[count:]]
        return [None] * count + [b if w else None for b, w in zip(found, wanted, strict=True)]

    def maps(operands: Any, dims: Any, *, push: Any, pull: Any, count: int) -> Any:
        mapped = [d if isinstance(d, int) else None for d in dims]
        sizes = {x.shape[d] for x, d in zip(operands, mapped, strict=True) if d is not None}
        dots = [
            jax.numpy.broadcast_to(x, (*sizes, *x.shape))
            if d is None
            else jax.numpy.moveaxis(x, d, 0)
            for x, d in zip(operands[count:], mapped[count:], strict=True)
        ]
        axes = (mapped[:count], 0)
        found = linear.bind(
            *operands[:count],
            *dots,
            push=_mapped(push, axes),
            pull=_mapped(pull, axes),
            count=count,
        )
        return found, [0] * len(found)

    ad.primitive_jvps[linear] = pushes
    ad.primitive_transposes[linear] = pulls
    batching.primitive_batchers[linear] = maps
    mlir.register_lowering(linear, mlir.lower_fun(run, multiple_results=True))
    return linear


def _mapped(function: Any, axes: Any) -> Any:
    def each(arrays: Any, others: Any) -> Any:
        return peer("jax", "jax").vmap(function, in_axes=axes)(list(arrays), list(others))

    return each


def _is_real(x: Any) -> bool:
    return np.issubdtype(x.dtype, np.floating)
