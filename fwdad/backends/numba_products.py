"""Products of matrices and vectors as calls of BLAS, in LLVM code.

Numba compiles ``np.dot`` as three functions with a library each, which takes as long as a small
program. Importing this module needs Numba.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, typing
from numba.core import types as _types
from numba.core.datamodel import models
from numba.extending import register_model
from numba.np.linalg import call_xxdot, call_xxgemm, call_xxgemv

from fwdad.backends.checks import require
from fwdad.backends.numba_elements import Held, as_array, get_itemsize, held, owner_of
from fwdad.backends.numba_memory import New, allocate, copied
from fwdad.backends.own_functions import call_apart

types: Any = _types

_MOST = 2**31 - 1  # BLAS counts in C's ints
_KINDS = {types.float32, types.float64, types.complex64, types.complex128}


class ProductType(types.Callable, types.Opaque):  # type: ignore[misc]
    """The type of ``np.dot`` in compiled programs: ours for matrices as BLAS takes them."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for some arguments."""
        if kws or not fits(args):
            return context.resolve_function_type(plain(context), args, kws)
        if len(args) == 3:
            return typing.signature(args[2], *args)
        ranks = sum(t.ndim for t in args)
        return typing.signature(types.Array(args[0].dtype, ranks - 2, "C"), *args)

    def get_call_signatures(self) -> Any:
        """Nobody has written down any."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        """Written where it is called."""
        return type(self), sig


register_model(ProductType)(models.OpaqueModel)


class Product:
    """What a compiled program calls in the place of ``np.dot``."""

    _numba_type_ = ProductType("fwdad_product")


def plain(context: Any) -> Any:
    """Numba's type of ``np.dot``."""
    return context.resolve_value_type(np.dot)


def fits(given: Any) -> bool:
    """Whether :func:`product` writes the product of such arguments."""
    if len(given) not in (2, 3) or not all(isinstance(t, types.Array) for t in given):
        return False
    left, right, *into = given
    return (
        (left.ndim, right.ndim) in ((2, 2), (1, 2), (2, 1))
        and all(t.dtype == left.dtype for t in given)
        and left.dtype in _KINDS
        and all(t.layout == "C" and t.ndim == left.ndim + right.ndim - 2 for t in into)
    )


def product(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """The product of two arrays: a new array, or the third.

    Parameters
    ----------
    context, builder
        Numba's target context and LLVM builder.
    signature : Signature
        Whose arguments :func:`fits`.
    args : sequence of LLVM value
        The factors, and what to write into.
    """
    write = partial(_write, context, signature)
    if len(args) == 3:
        nothing = typing.signature(types.none, *signature.args)
        call_apart(context, builder, "fwdad_product", nothing, args, write)
        context.nrt.incref(builder, signature.return_type, args[2])
        return args[2]
    made = call_apart(context, builder, "fwdad_product", signature, args, write)
    a, b = (held(context, builder, t, x) for t, x in zip(signature.args, args, strict=True))
    t = signature.return_type  # LLVM is told the lengths, which it cannot see in the function
    new, owner = held(context, builder, t, made), owner_of(context, builder, t, made)
    lengths = [*a.lengths[:-1], *b.lengths[1:]]
    return as_array(context, builder, Held(t, new.data, lengths, []), owner)


def _write(context: Any, signature: Any, builder: Any, args: Any) -> Any:
    """The function that multiplies, of whole arrays."""
    a, b, *into = (held(context, builder, t, x) for t, x in zip(signature.args, args, strict=True))
    k = a.lengths[-1]
    message = "incompatible array sizes for np.dot(a, b)"
    require(context, builder, builder.icmp_signed("==", k, b.lengths[0]), ValueError, message)
    lengths = [*a.lengths[:-1], *b.lengths[1:]]
    is_empty = ir.Constant(ir.IntType(1), 0)
    for n in (*lengths, k):
        is_short = builder.icmp_signed("<=", n, n.type(_MOST))
        require(context, builder, is_short, ValueError, "a matrix is too long for BLAS")
        is_empty = builder.or_(is_empty, builder.icmp_signed("==", n, n.type(0)))
    made_type = signature.return_type
    if into:
        for n, m in zip(lengths, into[0].lengths, strict=True):
            same = builder.icmp_signed("==", n, m)
            require(context, builder, same, ValueError, "np.dot(a, b, out) does not fit into out")
        size = context.get_constant(types.intp, get_itemsize(context, made_type))
        for n in lengths:
            size = builder.mul(size, n)
        made = New(context.get_dummy_value(), into[0].data, size)
    else:
        made = allocate(context, builder, made_type, lengths)
    with builder.if_else(is_empty, likely=False) as (nothing, something):
        with nothing:
            cgutils.memset(builder, made.data, made.size, 0)
        with something:
            a, a_copy = _without_steps(context, builder, a, args[0])
            b, b_copy = _without_steps(context, builder, b, args[1])
            _multiply(context, builder, a, b, made_type, lengths, made.data)
            for t, copy in (*a_copy, *b_copy):
                context.nrt.decref(builder, t, copy)
    return made.value


def _without_steps(context: Any, builder: Any, x: Held, array: Any) -> tuple[Held, list[Any]]:
    """A factor as BLAS takes it, and the copy that was made for that, with its type, if any was."""
    if x.type.layout in "CF":
        return x, []
    t = x.type.copy(layout="C", readonly=False)
    copy = copied(context, builder, x.type, array)
    return held(context, builder, t, copy), [(t, copy)]


def _multiply(
    context: Any, builder: Any, a: Any, b: Any, made_type: Any, lengths: list[Any], data: Any
) -> None:
    """Call BLAS; matrices of one row or column are vectors to it, which is quicker."""

    def by_vector(matrix: Any, vector: Any, *, transposed: bool) -> None:
        call_xxgemv(
            context,
            builder,
            transposed,
            matrix.type,
            matrix.lengths,
            matrix.data,
            vector.data,
            data,
        )

    if b.type.ndim == 1:
        by_vector(a, b, transposed=a.type.layout == "C")
        return
    if a.type.ndim == 1:
        by_vector(b, a, transposed=b.type.layout == "F")
        return
    one_row, one_column = (builder.icmp_signed("==", n, n.type(1)) for n in lengths)
    with builder.if_else(one_column) as (narrow, wide):
        with narrow, builder.if_else(one_row) as (number, column):
            with number:
                call_xxdot(
                    context, builder, False, a.type.dtype, a.lengths[1], a.data, b.data, data
                )
            with column:
                by_vector(a, b, transposed=a.type.layout == "C")
        with wide, builder.if_else(one_row) as (row, matrix):
            with row:
                by_vector(b, a, transposed=b.type.layout == "F")
            with matrix:
                call_xxgemm(
                    context, builder, a.type, a.lengths, a.data, b.type, b.lengths, b.data,
                    made_type, lengths, data,
                )  # fmt: skip


__all__ = ["Product", "ProductType", "fits", "plain", "product"]
