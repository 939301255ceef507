"""``check_grads``: the derivatives of a function of the user's beside finite differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fwdad.core.tracebacks import public
from fwdad.drivers.pullback import vjp
from fwdad.eager.arguments import copied
from fwdad.errors import UnsupportedTypeError, type_in_words
from fwdad.evaluation.differences import directional
from fwdad.evaluation.evaluators import jvp
from fwdad.rules.core.registry import function_name
from fwdad.tangents.composite import Structure, flatten, leaf_order, step_of, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import NoTangent

RTOL = 1e-6
SINGLE_RTOL = 1e-3
_KINK = 1e-3
LOCATED = 256
"""Entries of an argument that are differentiated one by one to find those that are off."""


@public
def check_grads(
    f: Callable[..., Any],
    args: Any,
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    kwargs: dict[str, Any] | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    holomorphic: bool = False,
    rng: np.random.Generator | None = None,
) -> None:
    """Check the derivatives of a function against finite differences, as JAX's ``check_grads``.

    Parameters
    ----------
    f : callable
        ``f(*args, **kwargs)``; smooth around the arguments.
    args : tuple
        Its arguments: numbers, arrays and structures of them, which are all differentiated, and
        others. What is no tuple is one argument.
    order : int, default 2
        Up to which order: 2 also checks the derivatives of the derivatives, in every combination of
        the modes.
    modes : sequence of {"fwd", "rev"}, default ("fwd", "rev")
        Forward mode (:func:`jvp`), reverse mode (:func:`vjp`).
    kwargs : dict, optional
        Keyword arguments of f.
    rtol : float, optional
        How far a derivative may be off, in units of the largest one of its argument; 1e-6 by
        default, 1e-3 for float32 and complex64.
    atol : float, default 0.0
        How far it may be off in addition.
    holomorphic : bool, default False
        Required by "fwd" for complex arguments, see :func:`jvp`.
    rng : numpy.random.Generator, optional
        Draws the directions; ``numpy.random.default_rng(0)`` by default.

    Raises
    ------
    AssertionError
        If a derivative is off. The message has a line for each mode and argument, with the entry
        that is off most, both numbers, and how exact the differences are there.
    UnsupportedTypeError
        If no argument, or no part of the value, has a tangent space; for other modes and orders.

    Notes
    -----
    For each array of the arguments the derivative along a random direction is compared with central
    differences, extrapolated (Richardson) from steps that their own error estimate chooses. Those
    of float32 are taken in double precision. Costs some 25 calls of f for each array, and as many
    for each of its entries (256 at most) where something is off. Differences at a kink are
    inexact: choose another point. To check a rule that you wrote, take
    :func:`fwdad.testing.check_frule`, which checks all that a rule promises.

    Examples
    --------
    >>> import numpy as np
    >>> import fwdad
    >>> def pendulum(state, length):
    ...     return np.array([state[1], -9.81 / length * np.sin(state[0])])
    >>> fwdad.check_grads(pendulum, (np.array([0.5, 1.0]), 2.0))
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or not set(modes) <= set(_MODES):
        raise UnsupportedTypeError(f'modes are "fwd" and "rev", in a tuple; got {modes!r}')
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise UnsupportedTypeError(f"order is a positive integer; got {order!r}")
    if not callable(f):
        raise UnsupportedTypeError(f"check_grads takes a function first; got {type_in_words(f)}")
    # one array in two arguments would move in both of them
    args = tuple(copied(x) for x in (args if isinstance(args, tuple) else (args,)))
    rng = np.random.default_rng(0) if rng is None else rng
    settings = _Settings(modes, rtol, atol, rng, holomorphic=holomorphic)
    wrong = _Check(f, args, kwargs or {}, settings, "").failures(order)
    if wrong:
        lines = "".join(f"\n  {line}" for line in wrong)
        raise AssertionError(f"the derivatives of {function_name(f)} are off:{lines}")


_MODES = ("fwd", "rev")


class _Settings:
    """What :func:`check_grads` was told."""

    def __init__(
        self,
        modes: tuple[str, ...],
        rtol: float | None,
        atol: float,
        rng: np.random.Generator,
        *,
        holomorphic: bool,
    ) -> None:
        self.modes = modes
        self.rtol = rtol
        self.atol = atol
        self.rng = rng
        self.holomorphic = holomorphic


class _Check:
    """The derivatives of one function at one point; ``below`` names those that it consists of."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settings: _Settings,
        below: str,
    ) -> None:
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.settings = settings
        self.modes = settings.modes
        self.below = below
        self.argnums = tuple(k for k, x in enumerate(args) if flatten(x, strict=True)[0])
        if not self.argnums:
            raise UnsupportedTypeError(
                "the arguments hold nothing to differentiate with respect to: write floats, such "
                "as 2.0, and arrays of them"
            )
        self.leaves, self.structure = flatten(tuple(args[k] for k in self.argnums))
        self.paths = _paths(self.structure, "args", self.argnums)
        y = f(*copied(args), **copied(self.kwargs))
        self.y_leaves, self.y_structure = flatten(y)
        if not self.y_leaves:
            raise UnsupportedTypeError(
                f"{function_name(f)} returned {type_in_words(y)}, which has no derivatives"
            )
        self.y_paths = _paths(self.y_structure, "result")
        self.y_places = Counter(leaf_order(self.y_structure))  # each adds its cotangent
        self.bars = [self.random_like(leaf) for leaf in self.y_leaves]

    def failures(self, order: int) -> list[str]:
        """A line for each mode and argument that is off."""
        wrong = []
        for k in range(len(self.leaves)):
            direction = self.random_like(self.leaves[k])
            want, errors = self._differences(k, direction)
            for mode in self.modes:
                wrong += self._compare(mode, k, direction, want, errors)
        if wrong or order == 1:
            return wrong
        is_complex = any(leaf_dtype(plain(x)).kind == "c" for x in self.leaves)
        for mode in self.modes:
            derivative = _Pushed(self) if mode == "fwd" else _Pulled(self)
            name = f"{mode} over {self.below}" if self.below else mode
            check = _Check(derivative, self.args, self.kwargs, self.settings, name)
            if mode == "rev" and is_complex:  # cotangents are conjugates: they are not holomorphic
                check.modes = tuple(m for m in self.modes if m == "rev")
            wrong += check.failures(order - 1)
        return wrong

    # -- derivatives

    def pushed(self, args: tuple[Any, ...], kwargs: dict[str, Any], directions: list[Any]) -> Any:
        """The derivative of the value along one direction, by forward mode."""
        v = unflatten(self.structure, directions, lambda _: NoTangent)
        return jvp(
            self.f, args[0], v, argnums=self.argnums, args=args[1:], kwargs=kwargs,
            holomorphic=self.settings.holomorphic,
        )[1]  # fmt: skip

    def pulled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The cotangents of the arguments for that of the value."""
        y_bar = unflatten(self.y_structure, self.bars, lambda _: NoTangent)
        _, pullback = vjp(self.f, args[0], argnums=self.argnums, args=args[1:], kwargs=kwargs)
        return pullback(y_bar)

    def _push(self, k: int, direction: Any) -> dict[int, Any]:
        directions = [np.zeros_like(x) if k != m else direction for m, x in enumerate(self.leaves)]
        y_dot = self.pushed(copied(self.args), copied(self.kwargs), directions)
        return dict(enumerate(map(np.asarray, flatten(y_dot)[0])))

    def _differences(self, k: int, direction: Any) -> tuple[dict[int, Any], dict[int, float]]:
        """The same by finite differences, and their estimated errors."""
        size = float(np.clip(np.max(np.abs(self.leaves[k]), initial=0.0), 1e-3, 1e3))

        def moved(t: float) -> dict[int, Any]:
            leaves = [_double(x) for x in self.leaves]
            leaves[k] = leaves[k] + t * _double(direction)
            args = list(copied(self.args))
            for at, x in zip(self.argnums, unflatten(self.structure, leaves), strict=True):
                args[at] = x
            y = self.f(*args, **copied(self.kwargs))
            return {m: np.array(_double(leaf)) for m, leaf in enumerate(flatten(y)[0])}

        return directional(moved, size)

    # -- comparisons

    def _compare(
        self, mode: str, k: int, direction: Any, want: dict[int, Any], errors: dict[int, float]
    ) -> list[str]:
        if mode == "fwd":
            got = self._push(k, direction)
            off = [m for m in want if self._is_off(got[m], want[m])]
            return [self._located_forward(k, m, got[m], want[m], errors[m]) for m in off[:1]]
        x_bar = np.asarray(flatten(self.pulled(copied(self.args), copied(self.kwargs)))[0][k])
        found = np.real(np.vdot(x_bar, _double(direction)))
        expected = self._against_bars(want)
        if not self._is_off(found, expected, self._against_bars(want, absolute=True)):
            return []
        return [self._located_reverse(k, x_bar, found, expected, max(errors.values()))]

    def _against_bars(self, y_dot: dict[int, Any], *, absolute: bool = False) -> Any:
        """The inner product of tangents of the value with its cotangents."""
        products = [self.y_places[m] * np.real(np.conj(self.bars[m]) * t) for m, t in y_dot.items()]
        return sum(np.sum(np.abs(p) if absolute else p) for p in products)

    def _is_off(self, got: Any, want: Any, size: Any = None) -> bool:
        scale = float(np.max(np.abs(want if size is None else size), initial=0.0))
        off = np.max(np.abs(got - want), initial=0.0)
        return not off <= self._rtol() * scale + max(self.settings.atol, _TINY)

    def _rtol(self) -> float:
        if self.settings.rtol is not None:
            return self.settings.rtol
        values = [*self.leaves, *self.y_leaves]
        single = any(leaf_dtype(plain(x)) in (np.float32, np.complex64) for x in values)
        return SINGLE_RTOL if single else RTOL

    def _located_forward(self, k: int, m: int, got: Any, want: Any, error: float) -> str:
        at = _worst(got, want)
        entry, pair = "", (got[at], want[at])
        for index, unit in self._units(k):
            one, other = self._push(k, unit)[m][at], self._differences(k, unit)[0][m][at]
            if not entry or abs(one - other) > abs(pair[0] - pair[1]):
                entry, pair = _subscript(index), (one, other)
        where = f"{self.y_paths[m]}{_subscript(at)} by {self.paths[k]}{entry}"
        return self._line("fwd", where, *pair, error)

    def _located_reverse(self, k: int, x_bar: Any, got: Any, want: Any, error: float) -> str:
        entry, pair = "", (got, want)
        for index, unit in self._units(k):
            one = np.real(np.conj(x_bar[index]) * unit[index])
            other = self._against_bars(self._differences(k, unit)[0])
            if not entry or abs(one - other) > abs(pair[0] - pair[1]):
                entry, pair = _subscript(index) or " ", (one, other)
        where = f"a weighted sum of the result by {self.paths[k]}{entry.rstrip()}"
        return self._line("rev", where, *pair, error)

    def _units(self, k: int) -> Any:
        """The directions of single entries, as many as are looked at."""
        shape = leaf_shape(self.leaves[k])
        for index in list(np.ndindex(shape))[:LOCATED]:
            unit = np.zeros(shape, leaf_dtype(plain(self.leaves[k])))
            unit[index] = 1
            yield index, unit

    def _line(self, mode: str, where: str, got: Any, want: Any, error: float) -> str:
        name = f"{mode} over {self.below}" if self.below else mode
        smooth = error <= _KINK * abs(want)
        exact = f"exact to {error:.1g}" if smooth else f"off by {error:.1g} here: a kink, or noise"
        return (
            f"{name}, {where}: got {got:.9g}, differences give {want:.9g}, off by "
            f"{abs(got - want):.2g} (the differences themselves are {exact})"
        )

    def random_like(self, leaf: Any) -> Any:
        """A direction whose entries are not near zero, and point anywhere if they are complex."""
        rng, shape, dtype = self.settings.rng, leaf_shape(leaf), leaf_dtype(plain(leaf))
        drawn: Any = rng.uniform(0.5, 1.0, shape) * rng.choice([-1.0, 1.0], shape)
        if dtype.kind == "c":
            drawn = drawn * np.exp(1j * rng.uniform(0, 2 * np.pi, shape))
        return np.asarray(drawn, dtype)


_TINY = 1e-12  # a derivative that is zero, of values of the size of one


class _Pushed:
    """The derivative of a function along a fixed direction, as a function."""

    def __init__(self, check: _Check) -> None:
        self.check = check
        self.directions = [check.random_like(leaf) for leaf in check.leaves]
        self.__name__ = self.__qualname__ = f"the derivative of {function_name(check.f)}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at a point."""
        return self.check.pushed(args, kwargs, self.directions)


class _Pulled:
    """The cotangents of a function's arguments for a fixed one of its value, as a function."""

    def __init__(self, check: _Check) -> None:
        self.check = check
        self.__name__ = self.__qualname__ = f"the pullback of {function_name(check.f)}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The cotangents at a point."""
        return self.check.pulled(args, kwargs)


def _double(x: Any) -> Any:
    """A number or an array in double precision."""
    dtype = leaf_dtype(plain(x))
    if dtype.kind not in "fc" or dtype.itemsize >= np.dtype(dtype.kind + "8").itemsize * 2:
        return x
    return np.asarray(x).astype(complex if dtype.kind == "c" else float)[()]


def _worst(got: Any, want: Any) -> tuple[int, ...]:
    """The entry that is off most."""
    off = np.abs(got - want)
    off = np.where(np.isnan(off), np.inf, off)
    return tuple(int(i) for i in np.unravel_index(np.argmax(off), off.shape))


def _subscript(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _paths(structure: Structure, name: str, argnums: tuple[int, ...] = ()) -> list[str]:
    """The first place of each leaf, as an expression."""
    found: dict[int, str] = {}
    seen = set()
    nodes = [(structure, name)]
    while nodes:
        node, path = nodes.pop()
        if node.kind == "leaf":
            found.setdefault(node.index, path)
        elif id(node) not in seen:
            seen.add(id(node))
            steps = [step_of(node, k) for k in range(len(node.children))]
            if node is structure and argnums:
                steps = [f"[{k}]" for k in argnums]
            nodes += [(c, path + s) for c, s in zip(node.children, steps, strict=True)][::-1]
    return [found[k] for k in range(len(found))]
