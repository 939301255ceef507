"""Reductions that leave NaN out: those without the prefix, under the mask of what is a number.

NumPy writes these in Python, with copies and stores that cost the builder ten times what a mask
does. ``nanmedian`` and ``nanquantile`` are built from their source.
"""

import numpy as np

from fwdad.rules.core.define import call_rule, frule
from fwdad.rules.reductions import (
    LARGEST,
    SMALLEST,
    deviation_dot,
    tangent_of_extreme,
    variance_dot,
)
from fwdad.tangents.laws.listing import cast, or_default
from fwdad.tangents.plain import plain
from fwdad.tangents.symbolic import array_of
from fwdad.tangents.zero import ZERO


def numbers(a, where):
    """Where an array holds numbers that the caller's mask leaves in."""
    a = array_of(a)
    where = or_default(where, True)
    return ~np.isnan(a) if where is True else ~np.isnan(a) & np.broadcast_to(where, a.shape)


def _of_numbers_alone(function, of_all):
    """A sum or a mean of the numbers: the tangents' by ``of_all``, under a mask."""

    @frule(function)
    def reduced_frule(primals, tangents, *, axis, keepdims, where, **options):
        (a,), (a_dot,) = primals, tangents
        y = function(a, axis=axis, keepdims=keepdims, where=where, **options)
        y_dot = of_all(
            a_dot, axis=axis, keepdims=or_default(keepdims, False), where=numbers(a, where)
        )
        return y, cast(y_dot, plain(y).dtype)


_of_numbers_alone(np.nansum, np.sum)
_of_numbers_alone(np.nanmean, np.mean)


@frule(np.nanprod)
def nanprod_frule(primals, tangents, *, axis, where, **options):
    """Push a tangent through the product of the numbers."""
    (a,), _ = primals, tangents
    y = np.nanprod(a, axis=axis, where=where, **options)
    mask = numbers(a, where)
    _, y_dot = call_rule(
        np.prod, (np.where(mask, a, 1),), tangents, axis=axis, where=mask, **options
    )
    return y, y_dot


@frule(np.nanvar, argnums=("a", "mean"))
def nanvar_frule(primals, tangents, **options):
    """Push tangents through the variance of the numbers."""
    y = np.nanvar(primals[0], mean=primals[1], **options)
    return y, variance_dot(*_of_numbers(primals, tangents, y, options))


@frule(np.nanstd, argnums=("a", "mean"))
def nanstd_frule(primals, tangents, **options):
    """Push tangents through the standard deviation of the numbers; 0 where it is 0."""
    y = np.nanstd(primals[0], mean=primals[1], **options)
    return y, deviation_dot(*_of_numbers(primals, tangents, y, options))


def _of_numbers(primals, tangents, y, options):
    """The arguments of ``variance_dot`` for the numbers only, what is not one read as 0."""
    a, mean = primals
    mask = numbers(a, options["where"])
    return (np.where(mask, a, 0), mean), tangents, y, {**options, "where": mask}


def _extreme(function, kind):
    """The tangent of the extreme number; of the first NaN if there is no number."""

    @frule(function)
    def extreme_frule(primals, tangents, **options):
        (a,), (a_dot,) = primals, tangents
        y = function(a, **options)
        options["where"] = numbers(a, options["where"])
        return y, tangent_of_extreme(a, a_dot, y, kind, **options)


_extreme(np.nanmax, LARGEST)
_extreme(np.nanmin, SMALLEST)


@frule(np.nancumsum)
def nancumsum_frule(primals, tangents, *, axis, dtype, out):
    """Push a tangent through the running sum of the numbers."""
    (a,), (a_dot,) = primals, tangents
    y = np.nancumsum(a, axis=axis, dtype=dtype)
    y_dot = np.cumsum(np.where(numbers(a, True), a_dot, ZERO), axis=axis)
    return y, cast(y_dot, plain(y).dtype)


@frule(np.nancumprod)
def nancumprod_frule(primals, tangents, *, axis, dtype, out):
    """Push a tangent through the running product of the numbers."""
    (a,), (a_dot,) = primals, tangents
    y = np.nancumprod(a, axis=axis, dtype=dtype)
    mask = numbers(a, True)
    masked_dot = np.where(mask, a_dot, ZERO)
    _, y_dot = call_rule(np.cumprod, (np.where(mask, a, 1),), (masked_dot,), axis=axis, dtype=dtype)
    return y, y_dot
