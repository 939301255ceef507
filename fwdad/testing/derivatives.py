"""``check_derivatives``: the rule that the builder derives, beside the one that was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fwdad.eager.build import build_frule
from fwdad.errors import MissingRuleError
from fwdad.rules.core.registry import RULES
from fwdad.testing.frules import check_frule
from fwdad.testing.structure import lanes_of
from fwdad.testing.trial import Trial, make_trial

DERIVED_RTOL = 1e-10


def check_derivatives(
    f: Callable[..., Any],
    *args: Any,
    chunk: Sequence[int] = (1, 2, 3),
    rng: np.random.Generator | None = None,
    argnums: Sequence[int | str] | None = None,
    **options: Any,
) -> None:
    """Compare the rule that the builder derives from a function's source with the written one.

    The derived rule is also compared with finite differences, in every way of
    :func:`check_frule`; a function without a written rule has that comparison only.

    Parameters
    ----------
    f : callable
        A function with a Python source.
    *args
        Its arguments.
    chunk : sequence of int, default (1, 2, 3)
        The chunk widths.
    rng : numpy.random.Generator, optional
        Where seeds come from.
    argnums : sequence of int or str, optional
        The arguments that are differentiated; by default every one that has a tangent space.
    **options
        Keyword arguments of ``f``.

    Raises
    ------
    AssertionError
        If the two rules differ by more than 1e-10 of the largest derivative, or the derived one
        differs from finite differences.
    MissingRuleError
        If f has no Python source to derive a rule from.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.testing import check_derivatives
    >>> check_derivatives(np.trapezoid, np.array([1.0, 4.0, 2.0]), np.array([0.0, 1.0, 3.0]))
    """
    written = make_trial(f, args, options, chunk, rng, argnums)
    if written.rule is not None:
        _compare(written)
    with without_rule(f):
        check_frule(f, *args, chunk=chunk, rng=rng, argnums=argnums, second_order=False, **options)


@contextmanager
def without_rule(f: Callable[..., Any]) -> Iterator[None]:
    """Forget a function's written rule, so that the builder goes through its source."""
    rule = RULES.pop(f, None)
    try:
        yield
    finally:
        if rule is not None:
            RULES[f] = rule


def _compare(written: Trial) -> None:
    for pattern in written.patterns():
        for n in written.widths:
            lanes = {path: written.seeds[path][:n] for path in pattern}
            want = written.run(lanes)
            tangents = written.tangents(written.primals, lanes)
            try:
                with without_rule(written.f):
                    y, y_dot = build_frule(written.dispatched)(tuple(written.primals), tangents)
            except MissingRuleError as error:
                error.add_note(f"{written.name} has no Python source to derive a rule from")
                raise
            got = lanes_of(y, y_dot, n)
            written.compare(
                "derivatives",
                {key: value for key, value in got.items() if key in want},
                want,
                1e-4 if written.single else DERIVED_RTOL,
                f"N = {n}, active {written.names(pattern)}",
                "the written rule and the derived one differ; compare each with check_frule",
                atol=1e-14,
            )
