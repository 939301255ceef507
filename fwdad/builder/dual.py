"""Dual numbers: a primal, its N tangents, and the tag of the call that they belong to."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from fwdad.builder.memory import SHADOWED, Shadow, find_shadow, untouched
from fwdad.builder.run import STATE, Tag
from fwdad.errors import DeadDualError, DualLeakError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import SEVERAL, UNKNOWN, Lanes, hot_lanes, support_lanes
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import quietly
from fwdad.tangents.scaling import MAX_SCALAR_TERMS, scale_lanes
from fwdad.tangents.zero import ZERO


class Dual:
    """What scalar and array duals share: they look like the primal, and never decay into it."""

    __slots__ = ()
    __fwdad_tag__ = True
    p: Any
    tag: Tag

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return type(plain(self))

    @__class__.setter
    def __class__(self, value: Any) -> None:
        message = "the class of a dual cannot be changed"
        raise TypeError(message)

    def __repr__(self) -> str:
        return repr(self.p)

    def __str__(self) -> str:
        return str(self.p)

    def __format__(self, spec: str) -> str:
        return format(self.p, spec)

    def __bool__(self) -> bool:
        return bool(self.p)

    def __float__(self) -> NoReturn:
        raise DualLeakError(leak("a float", self))

    def __complex__(self) -> NoReturn:
        raise DualLeakError(leak("a complex", self))

    def __int__(self) -> NoReturn:
        raise DualLeakError(leak("an int", self))

    def __index__(self) -> NoReturn:
        operator.index(self.p)  # a float is none: what the primal raises (NumPy 2.0's ** asks)
        raise DualLeakError(leak("an index", self))

    def __array__(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise DualLeakError(leak("a plain array", self))

    def __reduce_ex__(self, _protocol: Any) -> NoReturn:
        raise DualLeakError(leak("a pickle", self))

    @property
    def __array_interface__(self) -> NoReturn:
        raise DualLeakError(leak("a plain array", self))

    @property
    def __array_struct__(self) -> NoReturn:
        raise DualLeakError(leak("a plain array", self))


OPAQUE: set[type] = set()
"""The dual classes of values whose tangents have a class of their own (see ``opaque.py``)."""

_ELEMENTS_KEPT = 4096


def _item(d: Any, i: int) -> Any:
    if type(d) is np.ndarray:
        return d.item(i)
    return d[i] if getattr(d, "shape", ()) else d


def leak(what: str, x: Any) -> str:
    """The message for a dual that is about to lose its tangent."""
    return (
        f"a value that carries a derivative (a {type(plain(x)).__name__}, {plain(x)!r:.60}) would "
        f"become {what} and lose it. If that is meant, say fwdad.stop_gradient(x); if it happens "
        "inside a function written in C, give that function an frule"
    )


class Scalar(Dual):
    """A dual number: ``terms`` is a sum of scaled lanes, ``{lanes: scaling}``."""

    __slots__ = ("p", "tag", "terms")

    def __init__(self, p: Any, terms: dict[Any, Any], tag: Tag) -> None:
        self.p = p
        self.terms = terms
        self.tag = tag

    @property
    def t(self) -> Chunk:
        """The tangent."""
        if self.tag.record is not None:
            return self.tag.record.tangent((), self.terms)
        chunk = Chunk.of(self.tag.n, (), self.terms)
        if self.tag.eager or self.tag.most == 1:
            for held in self.terms:
                if self.tag.eager or held.lane == SEVERAL:
                    return Chunk(chunk.lanes)
        return chunk

    def __hash__(self) -> int:
        return hash(self.p)

    def __copy__(self) -> Scalar:
        return self

    def __deepcopy__(self, _memo: Any) -> Scalar:
        return self


Scalar.__name__ = "float"  # how Python's own messages call it: 'float' object is not iterable


class Array(Dual):
    """A dual array.

    Attributes
    ----------
    p : ndarray or Array
        The primal; a dual of an enclosing call when derivatives are nested.
    held : Chunk, Undefined, or tuple
        The tangent that the array was made with. The tuple ``(lanes, scaling, shape)`` is a chunk
        of one term (scaling None: one), of a plain array of rank one or more: the commonest, and
        a tuple costs a seventh of a chunk and its dict.
    base_dual : Array or None
        The dual array that this one is a view of.
    """

    __slots__ = ("__weakref__", "_elements", "base_dual", "held", "p", "tag")
    _elements: dict[int, Any] | None

    def __init__(self, p: Any, t: Any, tag: Tag, base: Array | None = None) -> None:
        self.p = p
        self.held = t
        self.tag = tag
        self.base_dual = base
        self._elements = None

    @property
    def _t(self) -> Any:
        """The tangent that the array was made with."""
        t = self.held
        if type(t) is tuple:
            lanes, d, shape = t
            t = self.held = Chunk.of(self.tag.n, shape, {lanes: d})
        return t

    @_t.setter
    def _t(self, t: Any) -> None:
        self.held = t

    def part(self, index: slice) -> Array:
        """``self[i:j]`` of an array that nothing was stored into."""
        p = self.p[index]
        t = one_term(self)
        if t is None or t[0].shape != t[2]:
            return Array(p, self._t.cut(index, p.shape), self.tag, root_of(self))
        lanes, d, _ = t
        d = d[index] if getattr(d, "shape", ()) else d
        return Array(p, (lanes.cut(index), d, p.shape), self.tag, root_of(self))

    def element(self, i: int) -> Any:
        """``self[i]`` of a vector that nothing was stored into, made once for each i."""
        held = self._elements
        if held is None:
            held = self._elements = {}
        elif i in held:
            return held[i]
        p = self.p[i]
        chunk = self.held
        if type(chunk) is tuple:
            chunk = self._t
        if self.tag.record is not None:
            terms = self.tag.record.scalar_terms(chunk[(i,)])
            made = held[i] = Scalar(p, terms, self.tag)
            return made
        if self.tag.eager:
            parts = parts_of(chunk, (i,))
            if parts is not None:
                made = number(p, parts, self.tag)
                if len(held) < _ELEMENTS_KEPT:
                    held[i] = made
                return made
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
        made = Scalar(p, terms, self.tag)
        if len(held) < _ELEMENTS_KEPT:
            held[i] = made
        return made

    __hash__ = None  # type: ignore[assignment]

    @property
    def t(self) -> Any:
        """The tangent: what the array was made with, or what its memory holds since a store."""
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

    Then the primal is a plain array of rank one or more. What was stored into it is not asked.
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
    """Whether a dual array of rank one or more is plain inside, and nothing was stored into it."""
    if one_term(x) is None:
        p = x.p
        if type(p) is not np.ndarray or not isinstance(x.held, Chunk) or not p.ndim:
            return False
    return x.tag.alive and (not SHADOWED or untouched(x.p))


def number(p: Any, parts: list[tuple[Any, Any]], tag: Tag) -> Scalar:
    """The dual of a number with its tangent multiplied out: one coefficient for each lane.

    Parameters
    ----------
    p : scalar
        The number.
    parts : list
        Lanes ``(N,)``, a number if N is 1, each with its scaling (None: one). A lane in which all
        are zero does not move, and stays zero whatever partial multiplies it.
    tag : Tag
        An eager one. The arithmetic on a lane is the same for every N.
    """
    if tag.n > 1:
        return quietly(_number_of_lanes, p, parts, tag)
    total, moves = 0.0, False
    for v, d in parts:
        if v:
            total += float(v) if d is None else float(v) * float(d)
            moves = True
    return Scalar(p, {_ONE if moves else _STILL: total}, tag)


def _number_of_lanes(p: Any, parts: list[tuple[np.ndarray, Any]], tag: Tag) -> Scalar:
    total: Any = None
    moves: Any = None
    for v, d in parts:
        term, moving = v if d is None else scale_lanes(d, v), v != 0
        total = term if total is None else total + term
        moves = moving if moves is None else moves | moving
    return Scalar(p, {support_lanes(moves): total}, tag)


_ONE = hot_lanes(1, 0, np.dtype(np.float64))
_STILL = support_lanes(np.zeros(1, np.bool_))


def fewer(terms: dict[Any, Any], tag: Tag) -> dict[Any, Any]:
    """Shorten a sum of scaled lanes that is long, or where numbers and arrays of numbers meet.

    Unit directions become one term with an array of coefficients. The arithmetic on one lane is
    what it was, so the width of the chunk, on which the length depends, leaves no trace.
    """
    if tag.record is not None:
        return tag.record.fewer(terms) if len(terms) > tag.most else terms
    own = {held: d for held, d in terms.items() if held.lane != UNKNOWN}
    if len(terms) <= MAX_SCALAR_TERMS and all(held.lane != SEVERAL for held in own):
        return terms
    if len(own) < len(terms) and len(terms) > MAX_SCALAR_TERMS:
        return {Lanes(Chunk.of(tag.n, (), terms).lanes): 1.0}
    if len(own) < 2:
        return terms
    total = Chunk.of(tag.n, (), own).lanes
    if type(total) is not np.ndarray:
        return {Lanes(Chunk.of(tag.n, (), terms).lanes): 1.0}
    moves = np.zeros(tag.n, np.bool_)
    for held in own:
        if held.lane == SEVERAL:
            moves |= held.array != 0
        else:
            moves[held.lane] = True
    tag.most = 1
    rest = {held: d for held, d in terms.items() if held.lane == UNKNOWN}
    return {support_lanes(moves): total, **rest}


def same_terms(a: Scalar, b: Scalar) -> bool:
    """Whether the tangents of two numbers are the same sums; coefficients may be arrays."""
    if a.terms.keys() != b.terms.keys():
        return False
    return all(np.array_equal(d, b.terms[lanes]) for lanes, d in a.terms.items())


def parts_of(chunk: Chunk, place: tuple[int, ...]) -> list[tuple[Any, Any]] | None:
    """What :func:`number` wants to know of one element; None if it is not in double precision."""
    at = across_lanes(chunk.n, place)
    parts = []
    for lanes, d in chunk.terms.items():
        v = lanes.array
        if type(v) is not np.ndarray or v.dtype is not DOUBLE or lanes.shape != chunk.shape:
            return None
        if d is not None and type(d) is not float:
            if type(d) is np.ndarray and d.dtype is DOUBLE:
                d = d.item(place) if d.shape else d.item()
            elif not isinstance(d, float):
                return None
        parts.append((v[at], d))
    return parts


def across_lanes(n: int, place: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of one element in all of n lanes; one lane gives a number."""
    return (0, *place) if n == 1 else (_ALL, *place)


_ALL = slice(None)
DOUBLE = np.dtype(np.float64)


def _read(shadow: Shadow, tag: Tag, a: np.ndarray) -> Any:
    """Copy tangents out of shadow memory, with those that enclosing calls keep for them."""
    view = shadow.view(tag, a)
    return Chunk(wrap(view, copy=True)) if tag.record is None else view.read()


def wrap(a: np.ndarray, *, copy: bool) -> Any:
    """Make the tangents that an array's memory carries explicit.

    Parameters
    ----------
    a : ndarray
        A plain array.
    copy : bool
        Whether the primal must be copied because the result will outlive the next store.

    Returns
    -------
    ndarray or Array
        ``a`` (or a copy) if its memory carries none.
    """
    shadow = find_shadow(a)
    value: Any = a.copy() if copy else a
    if shadow is None:
        return value
    if len(shadow.lanes) == 1:
        (tag,) = shadow.lanes
        if shadow.only(tag) and tag.record is None:
            return Array(value, Chunk(shadow.view(tag, a).copy()), tag)
    for tag in shadow.seen():
        value = Array(value, _read(shadow, tag, a), tag)
    return value


def records(what: str) -> str:
    """The message for what cannot be done with a structured array that carries tangents."""
    return (
        f"{what} a structured array whose fields carry derivatives: read or write the fields, "
        "a['field'], one by one"
    )


def settled(y: Any) -> Any:
    """A copy of an array with all its tangents, for when the memory that was written is put back.

    Parameters
    ----------
    y : ndarray or Array
        An array whose memory was written, also with tangents of other calls than its own.

    Returns
    -------
    ndarray or Array
    """
    if type(y) is not Array:
        return wrap(y, copy=True)
    tangents = {}
    while type(y) is Array:
        tangents[y.tag] = y.t
        y = y.p
    shadow = find_shadow(y)
    if shadow is not None:
        tangents |= {tag: _read(shadow, tag, y) for tag in shadow.seen()}
    value: Any = y.copy()
    for tag in sorted(tangents, key=lambda t: t.order):
        value = Array(value, tangents[tag], tag)
    return value


def explicit(x: Any) -> Any:
    """``x``, as a dual if it is a plain array whose memory carries tangents."""
    if not SHADOWED or type(x) is Array or type(x) is Scalar:
        return x
    if isinstance(x, np.flatiter):
        return np.ravel(wrap(x.base, copy=False)) if find_shadow(x.base) else x
    if isinstance(x, np.ndarray) and find_shadow(x):
        if type(x) not in (np.ndarray, np.memmap):
            message = (
                f"a {type(x).__name__} views memory whose values carry derivatives; only plain "
                "arrays can carry them: use numpy.asarray(x)"
            )
            raise UnsupportedTypeError(message)
        if x.dtype.kind == "V":
            raise UnsupportedTypeError(records("a function is given"))
        return wrap(x, copy=False)
    return x


def root_of(x: Array) -> Array:
    """The dual array that owns the memory which x views."""
    return x if x.base_dual is None else x.base_dual


def isinstance_dual(x: Any) -> bool:
    """Whether x is a dual (its ``__class__`` says otherwise)."""
    t = type(x)
    return t is Scalar or t is Array


def check_alive(tag: Tag) -> None:
    """Raise if a call has ended."""
    if not tag.alive:
        message = (
            "a value of a derivative call is used after that call has ended; it was kept in a "
            "place that fwdad could not see. Return it from the function instead"
        )
        raise DeadDualError(message)


def top_tag(values: Any, top: Tag | None = None) -> Tag | None:
    """The innermost call that any of the values, or of the items of lists in them, belongs to."""
    for x in values:
        t = type(x)
        if t is Scalar or t is Array:
            tag = x.tag
            if top is not tag:
                if not tag.alive:
                    check_alive(tag)
                if top is None or tag.order > top.order:
                    top = tag
        elif (t is list or t is tuple) and x:
            top = top_tag(x, top)
        elif t is dict and x:
            top = top_tag(x.values(), top)
        elif OPAQUE and t in OPAQUE:
            check_alive(x.tag)
            if top is None or x.tag.order > top.order:
                top = x.tag
    return top


def split(x: Any, tag: Tag) -> tuple[Any, Any]:
    """A value's primal and tangent with respect to one call; lists are split item by item."""
    t = type(x)
    if t is Scalar or t is Array:
        return (x.p, x.t) if x.tag is tag else (x, ZERO)
    if (t is list or t is tuple) and top_tag(x) is not None:
        pairs = [split(item, tag) for item in x]
        return t(p for p, _ in pairs), t(d for _, d in pairs)
    if OPAQUE and t in OPAQUE and x.tag is tag:
        return x.p, x.t
    return x, ZERO


def with_explicit(values: Any) -> Any:
    """Make the tangents in the memory of plain arrays explicit, also inside lists."""
    if not SHADOWED:
        return values
    made = []
    for x in values:
        t = type(x)
        if t is np.flatiter or isinstance(x, np.ndarray):
            x = explicit(x)
        elif (t is list or t is tuple) and x:
            items = with_explicit(x)
            x = t(items)
        made.append(x)
    return tuple(made)
