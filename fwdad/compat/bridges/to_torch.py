"""``to_torch``: a function of fwdad's as one of PyTorch's."""

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
from fwdad.drivers.pullback import vjp


def to_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of PyTorch tensors, which PyTorch differentiates, of one of NumPy arrays.

    Parameters
    ----------
    f : callable
        ``f(*args)``, any NumPy program. Its arguments and its value are arrays, numbers, or tuples,
        lists, dicts and dataclasses of these.

    Returns
    -------
    callable
        It takes tensors in place of arrays, and returns them. Python's ints, strings and the like
        are passed on; tensors of ints and bools have no gradient.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    UnsupportedTypeError
        If f is no function; when it is called with numbers of other types than float32 and float64.

    Notes
    -----
    A ``torch.autograd.Function`` around ``f``: the value is computed on the CPU, and copied back to
    the device of the first tensor. ``backward`` pulls back what the forward pass has kept. With
    ``create_graph=True`` it is bridged itself, so that it has derivatives of any order; each of
    these runs f again. Forward mode and ``torch.func`` (``jvp``, ``vmap``, ``jacrev``, ``hessian``)
    work, ``vmap`` by one call for each element.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat import to_torch
    >>> def burgers(u):
    ...     u = u.copy()
    ...     u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    ...     return u
    >>> step = to_torch(burgers)  # doctest: +SKIP
    >>> u = torch.linspace(0.0, 1.0, 8, requires_grad=True)  # doctest: +SKIP
    >>> step(u).sum().backward()  # doctest: +SKIP
    """
    check_function(f, "to_torch")
    torch = peer("torch", "torch")

    @functools.wraps(f)
    def bridged(*args: Any) -> Any:
        call = _Call(f, Arguments(args, torch.is_tensor))
        tensors = call.arguments.arrays
        call.keeps = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        found = _function().apply(call, *tensors)
        return call.value(found)

    return bridged


class _Call:
    """One call of f; after it, where the arrays of the value stand."""

    def __init__(self, f: Callable[..., Any], arguments: Arguments) -> None:
        self.f = f
        self.arguments = arguments
        self.keeps = False
        self.pullback: Any = None
        self.value: Any = None

    def run(self, tensors: Any) -> tuple[Any, ...]:
        args = self.arguments([_array(x) for x in tensors])
        argnums = self.arguments.argnums
        if self.keeps and argnums:
            y, self.pullback = vjp(self.f, args[0], args=args[1:], argnums=argnums)
        else:
            y = self.f(*args)
        self.value = Layout(y, is_number)
        return _tensors(self.value.arrays, tensors)

    def pull(self, bars: Any, tensors: Any) -> list[Any]:
        """The cotangent of each real tensor."""
        torch = peer("torch", "torch")
        if self.pullback is not None and not torch.is_grad_enabled():
            y_bar = self.value.tangent([_array(b) for b in bars])
            trees = self.pullback(y_bar)
            return list(_tensors(self.arguments.cotangents(trees), tensors))
        backward = to_torch(pulled(self.f, self.arguments.argnums))
        trees = backward(self.value.tangent(bars), *self.arguments(tensors))
        return self.arguments.cotangents(trees)

    def push(self, dots: Any, tensors: Any) -> list[Any]:
        """The tangent of each real tensor of the value."""
        forward = to_torch(pushed(self.f, self.arguments.argnums))
        return self.value.parts(forward(self.arguments.tangents(dots), *self.arguments(tensors)))


def _array(x: Any) -> Any:
    """A tensor as an array, or a number if it has no axes."""
    return np.array(x.detach().cpu().numpy())[()]


def _tensors(arrays: Any, like: Any) -> tuple[Any, ...]:
    """Arrays as tensors on the device of others."""
    torch = peer("torch", "torch")
    device = next((x.device for x in like), None)
    return tuple([torch.as_tensor(np.array(a), device=device) for a in arrays])


@functools.cache
def _function() -> Any:
    """The ``autograd.Function`` of all bridged functions."""
    torch = peer("torch", "torch")

    Function: Any = torch.autograd.Function

    class Bridge(Function):  # type: ignore[misc]
        @staticmethod
        def forward(call: _Call, *tensors: Any) -> Any:
            return call.run(tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.call, *tensors = inputs
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            real = ctx.call.value.real
            ctx.mark_non_differentiable(*[y for y, r in zip(output, real, strict=True) if not r])

        @staticmethod
        def backward(ctx: Any, *bars: Any) -> Any:
            call = ctx.call
            found = iter(call.pull(call.value.only_real(bars), ctx.saved_tensors))
            return (None, *[next(found) if real else None for real in call.arguments.real])

        @staticmethod
        def jvp(ctx: Any, _: None, *dots: Any) -> Any:
            call, tensors = ctx.call, ctx.saved_tensors
            given = [
                torch.zeros_like(x) if dot is None else dot
                for x, dot in zip(tensors, dots, strict=True)
            ]
            found = iter(call.push(call.arguments.only_real(given), tensors))
            return tuple([next(found) if real else None for real in call.value.real])

        @staticmethod
        def vmap(info: Any, in_dims: Any, call: _Call, *tensors: Any) -> Any:
            rows = []
            for k in range(info.batch_size):
                once = _Call(call.f, call.arguments)  # each keeps what its own backward needs
                once.keeps = call.keeps
                one = [
                    x if dim is None else x.select(dim, k)
                    for x, dim in zip(tensors, in_dims[1:], strict=True)
                ]
                rows.append(Bridge.apply(once, *one))
                call.value = once.value
            stacked = tuple([torch.stack(column) for column in zip(*rows, strict=True)])
            return stacked, (0,) * len(stacked)

    return Bridge
