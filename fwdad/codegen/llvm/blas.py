"""Products of matrices and vectors as calls of BLAS, in LLVM code.

Numba compiles ``np.dot`` as three functions with a library each, which takes as long as a small
program. Importing this module needs Numba.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, typing
from numba.core import types as _types
from numba.core.datamodel import models
from numba.extending import register_model
from numba.np.linalg import call_xxdot, check_blas_return, get_blas_kind, make_constant_slot

from fwdad.codegen.llvm import vectors
from fwdad.codegen.llvm.allocation import allocate, copied
from fwdad.codegen.llvm.checks import require
from fwdad.codegen.llvm.elements import Held, get_itemsize, held
from fwdad.codegen.llvm.outlining import OpaqueCallable, call_own

types: Any = _types

_BIT, _BYTE, _WORD = ir.IntType(1), ir.IntType(8), ir.IntType(64)
_ANY = _BYTE.as_pointer()
_MOST = 2**31 - 1  # BLAS counts in C's ints
_FEW = 10  # rows, summands and columns of products that are quicker without BLAS
_VECTOR = 4  # elements of a row at once
_REAL = (types.float32, types.float64)
_KINDS = {types.float32, types.float64, types.complex64, types.complex128}


class ProductType(OpaqueCallable):
    """The type of ``np.dot`` in compiled programs, with our own code where BLAS applies."""

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for some arguments."""
        if kws or not fits(args):
            return context.resolve_function_type(plain(context), args, kws)
        if len(args) == 3:
            return typing.signature(args[2], *args)
        ranks = sum(t.ndim for t in args)
        return typing.signature(types.Array(args[0].dtype, ranks - 2, "C"), *args)


register_model(ProductType)(models.OpaqueModel)


class Product:
    """What a compiled program calls in place of ``np.dot``."""

    _numba_type_ = ProductType("fwdad_product")


def plain(context: Any) -> Any:
    """Numba's type of ``np.dot``."""
    return context.resolve_value_type(np.dot)


def fits(given: Any) -> bool:
    """Whether :func:`product` supports such arguments."""
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
    """The product of two arrays whose types :func:`fits`: a new array, or the third argument."""
    a, b, *into = (held(context, builder, t, x) for t, x in zip(signature.args, args, strict=True))
    lengths = [*a.lengths[:-1], *b.lengths[1:]]
    same = builder.icmp_signed("==", a.lengths[-1], b.lengths[0])
    message = "incompatible array sizes for np.dot(a, b)"
    require(context, builder, same, ValueError, message)
    made_type = signature.return_type
    if into:
        for n, m in zip(lengths, into[0].lengths, strict=True):
            same = builder.icmp_signed("==", n, m)
            require(context, builder, same, ValueError, "np.dot(a, b, out) does not fit into out")
        made, target = args[2], into[0].data
        context.nrt.incref(builder, made_type, made)
    else:
        made, target, _ = allocate(context, builder, made_type, lengths)
    (a, a_copy), (b, b_copy) = (
        _without_steps(context, builder, x, array) for x, array in zip((a, b), args, strict=False)
    )
    by_columns = [_BIT(x.type.ndim == 2 and x.type.layout == "F") for x in (a, b)]
    pointers = [builder.bitcast(p, _ANY) for p in (a.data, b.data, target)]
    arguments = [*pointers, *by_columns, *a.lengths, *b.lengths[1:]]
    name = f"fwdad_product_{a.type.ndim}_{b.type.ndim}_{made_type.dtype}"
    write = functools.partial(_write, context, made_type, (a.type.ndim, b.type.ndim))
    counted = call_own(builder, name, _BIT, arguments, write)
    require(context, builder, counted, ValueError, "a matrix is too long for BLAS")
    for t, copy in (*a_copy, *b_copy):
        context.nrt.decref(builder, t, copy)
    return made


def _without_steps(context: Any, builder: Any, x: Held, array: Any) -> tuple[Held, list[Any]]:
    """A factor as BLAS takes it, and the type and value of the copy made for it, if any."""
    if x.type.layout in "CF":
        return x, []
    t = x.type.copy(layout="C", readonly=False)
    copy = copied(context, builder, x.type, array)
    return held(context, builder, t, copy), [(t, copy)]


def _write(
    context: Any, made_type: Any, ranks: tuple[int, int], builder: Any, given: Sequence[Any]
) -> None:
    """Write the function that multiplies; it returns whether the lengths fit into BLAS's ints."""
    a, b, out, a_by_columns, b_by_columns, *lengths = given
    is_empty, fits = _BIT(0), _BIT(1)
    for n in lengths:
        fits = builder.and_(fits, builder.icmp_signed("<=", n, n.type(_MOST)))
        is_empty = builder.or_(is_empty, builder.icmp_signed("==", n, n.type(0)))
    with builder.if_then(builder.not_(fits), likely=False):
        builder.ret(fits)
    k = lengths[ranks[0] - 1]
    with builder.if_then(is_empty, likely=False):
        size = _WORD(get_itemsize(context, made_type))
        for n in [*lengths[: ranks[0] - 1], *lengths[ranks[0] :]]:
            size = builder.mul(size, n)
        cgutils.memset(builder, out, size, 0)
        builder.ret(fits)
    blas = _Blas(context, builder, made_type.dtype)
    if ranks == (2, 1):
        blas.times_column(a, a_by_columns, lengths, b, out)
    elif ranks == (1, 2):
        blas.row_times(a, b, b_by_columns, lengths, out)
    else:
        m, _, n = lengths
        one_row, one_column = (builder.icmp_signed("==", x, x.type(1)) for x in (m, n))
        # matrices of one row or column are vectors to BLAS, which is quicker
        with builder.if_else(one_column) as (narrow, wide):
            with narrow, builder.if_else(one_row) as (number, column):
                with number:
                    call_xxdot(context, builder, False, made_type.dtype, k, a, b, out)
                with column:
                    blas.times_column(a, a_by_columns, (m, k), b, out)
            with wide, builder.if_else(one_row) as (row, matrix):
                with row:
                    blas.row_times(a, b, b_by_columns, (k, n), out)
                with matrix:
                    if made_type.dtype in _REAL:
                        few = [builder.icmp_signed("<=", x, x.type(_FEW)) for x in lengths]
                        with builder.if_then(functools.reduce(builder.and_, few)):
                            _write_few(context, builder, made_type.dtype, given)
                            builder.ret(fits)
                    blas.matrices(a, a_by_columns, b, b_by_columns, lengths, out)
    builder.ret(fits)


def _write_few(context: Any, builder: Any, dtype: Any, given: Sequence[Any]) -> None:
    """Write loops for the product of two matrices of a few rows and columns."""
    number = context.get_data_type(dtype)
    a, b, out = (builder.bitcast(p, number.as_pointer()) for p in given[:3])
    a_by_columns, b_by_columns, m, k, n = given[3:]
    one, zero = n.type(1), n.type(0)
    a_steps = builder.select(a_by_columns, one, k), builder.select(a_by_columns, m, one)
    b_steps = builder.select(b_by_columns, one, n), builder.select(b_by_columns, k, one)
    whole = builder.select(b_by_columns, zero, builder.and_(n, n.type(-_VECTOR)))

    def at(array: Any, i: Any, j: Any, steps: tuple[Any, Any]) -> Any:
        place = builder.add(builder.mul(i, steps[0]), builder.mul(j, steps[1]))
        return builder.gep(array, [place])

    def row(i: Any, start: Any, stop: Any, width: int) -> None:
        """The elements of a row between two columns, some at once."""
        t = ir.VectorType(number, width) if width > 1 else number

        def whole_vector(pointer: Any) -> Any:
            return builder.bitcast(pointer, t.as_pointer())

        step = n.type(width)
        with cgutils.for_range_slice(builder, start, stop, step, inc=True) as (j, _):
            total = cgutils.alloca_once(builder, t)
            builder.store(t(None), total)
            with cgutils.for_range(builder, k) as summands:
                x = builder.load(at(a, i, summands.index, a_steps))
                x = vectors.splat(builder, x, width) if width > 1 else x
                y = builder.load(whole_vector(at(b, summands.index, j, b_steps)), align=1)
                more = builder.fmul(x, y, flags=("contract",))
                builder.store(builder.fadd(builder.load(total), more, flags=("contract",)), total)
            builder.store(builder.load(total), whole_vector(at(out, i, j, (n, one))), align=1)

    with cgutils.for_range(builder, m) as rows:
        row(rows.index, zero, whole, _VECTOR)
        row(rows.index, whole, n, 1)


class _Blas:
    """Calls of BLAS, for matrices that are stored row by row or column by column."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context = context
        self.builder = builder
        self.kind = _BYTE(ord(get_blas_kind(dtype)))
        self.factors = [
            builder.bitcast(make_constant_slot(context, builder, dtype, x), _ANY)
            for x in (1.0, 0.0)
        ]

    def times_column(
        self, matrix: Any, by_columns: Any, lengths: Sequence[Any], x: Any, out: Any
    ) -> None:
        """``matrix @ x``."""
        turned = self._letter(by_columns, "n", "t")
        self._matrix_and_vector(matrix, by_columns, turned, lengths, x, out)

    def row_times(
        self, x: Any, matrix: Any, by_columns: Any, lengths: Sequence[Any], out: Any
    ) -> None:
        """``x @ matrix``."""
        turned = self._letter(by_columns, "t", "n")
        self._matrix_and_vector(matrix, by_columns, turned, lengths, x, out)

    def matrices(
        self, a: Any, a_by_columns: Any, b: Any, b_by_columns: Any, lengths: Sequence[Any], out: Any
    ) -> None:
        """``a @ b``: for BLAS, which stores matrices by columns, the transposed product."""
        m, k, n = lengths
        one, zero = self.factors
        turned = [self._letter(held, "t", "n") for held in (b_by_columns, a_by_columns)]
        b_step = self.builder.select(b_by_columns, k, n)
        a_step = self.builder.select(a_by_columns, m, k)
        self._call("numba_xxgemm", *turned, n, m, k, one, b, b_step, a, a_step, zero, out, n)

    def _matrix_and_vector(
        self, matrix: Any, by_columns: Any, turned: Any, lengths: Sequence[Any], x: Any, out: Any
    ) -> None:
        rows, columns = lengths
        one, zero = self.factors
        step = self.builder.select(by_columns, rows, columns)
        other = self.builder.select(by_columns, columns, rows)
        self._call("numba_xxgemv", turned, step, other, one, matrix, step, x, zero, out)

    def _letter(self, condition: Any, then: str, other: str) -> Any:
        return self.builder.select(condition, _BYTE(ord(then)), _BYTE(ord(other)))

    def _call(self, name: str, *given: Any) -> None:
        given = self.kind, *given
        kind = ir.FunctionType(ir.IntType(32), [x.type for x in given])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        check_blas_return(self.context, self.builder, self.builder.call(function, given))


__all__ = ["Product", "ProductType", "fits", "plain", "product"]
