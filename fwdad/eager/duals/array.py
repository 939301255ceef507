"""``Array``: an array with its tangents, which may be stored in shadow memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.duals.dual import Dual
from fwdad.eager.duals.scalar import Scalar, number, parts_of
from fwdad.eager.memory.shadow import SHADOWED, Shadow, find_shadow, untouched
from fwdad.eager.run import STATE, Tag
from fwdad.tangents.alike import alike
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain

_ELEMENTS_KEPT = 4096


def _item(d: Any, i: int) -> Any:
    if type(d) is np.ndarray:
        return d.item(i)
    return d[i] if getattr(d, "shape", ()) else d


class Array(Dual):
    """A dual array.

    ``p`` is the primal, which is itself a dual if derivatives are nested, and ``base_dual`` the
    dual array that this one is a view of. ``held`` is the tangent from its construction: a chunk,
    an ``Undefined``, or ``(lanes, scaling, shape)``, a chunk of one term (scaling None: one) of a
    plain array of rank one or more. That is the commonest, and a tuple costs a seventh of a chunk
    and its dict.
    """

    __slots__ = ("__weakref__", "_elements", "base_dual", "held", "p", "tag")
    _elements: dict[int, Any] | None
    ndim: int  # as all of an array's attributes, from the tables of methods.py
    shape: tuple[int, ...]

    def __init__(self, p: Any, t: Any, tag: Tag, base: Array | None = None) -> None:
        self.p = p
        self.held = t
        self.tag = tag
        self.base_dual = base
        self._elements = None

    @property
    def _t(self) -> Any:
        """The tangent from construction."""
        t = self.held
        if type(t) is tuple:
            lanes, d, shape = t
            t = self.held = Chunk.of(self.tag.n, shape, {lanes: d})
        return t

    @_t.setter
    def _t(self, t: Any) -> None:
        self.held = t

    def part(self, index: slice) -> Array:
        """``self[i:j]`` of an array into which nothing was stored."""
        p = self.p[index]
        t = one_term(self)
        if t is None or t[0].shape != t[2]:
            return Array(p, self._t.cut(index, p.shape), self.tag, root_of(self))
        lanes, d, _ = t
        d = d[index] if getattr(d, "shape", ()) else d
        return Array(p, (lanes.cut(index), d, p.shape), self.tag, root_of(self))

    def element(self, i: int) -> Any:
        """``self[i]`` of a vector into which nothing was stored, made once for each i."""
        record = self.tag.record
        if record is not None and record.segment is not None:
            # not kept: where the call is run again, it must be read again
            return Scalar(self.p[i], record.scalar_terms(self._t[(i,)]), self.tag)
        elements = self._elements
        if elements is None:
            elements = self._elements = {}
        elif i in elements:
            return elements[i]
        p = self.p[i]
        chunk = self.held
        if type(chunk) is tuple:
            chunk = self._t
        if record is not None:
            terms = record.scalar_terms(chunk[(i,)])
            scalar = elements[i] = Scalar(p, terms, self.tag)
            return scalar
        if self.tag.eager:
            parts = parts_of(chunk, (i,))
            if parts is not None:
                scalar = number(p, parts, self.tag)
                if len(elements) < _ELEMENTS_KEPT:
                    elements[i] = scalar
                return scalar
        terms = {}
        for lanes, d in chunk.terms.items():
            if lanes.shape != chunk.shape:
                t = Chunk(chunk.lanes).element((i,))
                terms = dict.fromkeys(t.terms, 1.0)
                break
            part = lanes.element((i,))
            if part is not None:
                terms[part] = 1.0 if d is None else d if type(d) is float else _item(d, i)
        if not terms:
            return p
        scalar = Scalar(p, terms, self.tag)
        if len(elements) < _ELEMENTS_KEPT:
            elements[i] = scalar
        return scalar

    __hash__ = None  # type: ignore[assignment]

    def copied_alike(self) -> Array:
        """A copy with the same memory layout, gaps included."""
        return Array(alike(self.p), self.t, self.tag)

    @property
    def t(self) -> Any:
        """The tangent: that from construction, or the memory's once something was stored."""
        if SHADOWED:
            raw = self.p if type(self.p) is np.ndarray else plain(self.p)
            shadow = find_shadow(raw)
            if shadow is not None and self.tag in shadow.lanes and self.tag not in STATE.hidden:
                return _read(shadow, self.tag, raw)
        t = self.held
        return self._t if type(t) is tuple else t


Array.__name__ = "numpy.ndarray"


def one_term(x: Array) -> tuple[Any, Any, tuple[int, ...]] | None:
    """What an array holds as ``(lanes, scaling, shape)``; None if it is no chunk of one term.

    Then the primal is a plain array of rank one or more. What was stored into it is ignored.
    """
    t = x.held
    if type(t) is tuple:
        return t
    if type(t) is not Chunk or len(t.terms) != 1 or type(x.p) is not np.ndarray or not t.shape:
        return None
    ((lanes, d),) = t.terms.items()
    t = x.held = (lanes, d, t.shape)
    return t


def is_simple(x: Array) -> bool:
    """Whether a dual array of rank one or more has a plain primal and no stored tangents."""
    if one_term(x) is None:
        p = x.p
        if type(p) is not np.ndarray or not isinstance(x.held, Chunk) or not p.ndim:
            return False
    return x.tag.alive and (not SHADOWED or untouched(x.p))


def say_again(x: Array, f: Callable[[Any], Any]) -> None:
    """Replace the tangent from construction, t, by another form of it, ``f(t)``."""
    x._t = f(x._t)


def root_of(x: Array) -> Array:
    """The dual array that owns the memory of x."""
    return x if x.base_dual is None else x.base_dual


def _read(shadow: Shadow, tag: Tag, a: np.ndarray) -> Any:
    """Copy tangents out of shadow memory, with those that enclosing calls keep for them."""
    view = shadow.view(tag, a)
    return Chunk(wrap(view, copy=True)) if tag.record is None else view.read()


def wrap(a: np.ndarray, *, copy: bool) -> Any:
    """Make the tangents that a plain array's memory carries explicit.

    Without any, the result is the array itself or, if ``copy``, a copy: the primal must be copied
    if the result is to outlive the next store.
    """
    shadow = find_shadow(a)
    value: Any = alike(a) if copy else a
    if shadow is None:
        return value
    if len(shadow.lanes) == 1:
        (tag,) = shadow.lanes
        if shadow.only(tag) and tag.record is None:
            return Array(value, Chunk(shadow.view(tag, a).copy()), tag)
    for tag in shadow.seen():
        value = Array(value, _read(shadow, tag, a), tag)
    return value
