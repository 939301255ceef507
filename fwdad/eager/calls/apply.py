"""The application of rules to duals: split them by call, run the rule, join the result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from operator import call
from typing import Any

import numpy as np

from fwdad.eager.calls.creation import make_array
from fwdad.eager.duals.array import Array, one_term, root_of
from fwdad.eager.duals.dual import OPAQUE, check_alive
from fwdad.eager.duals.explicit import with_explicit
from fwdad.eager.duals.opaque import check_rule, make_opaque
from fwdad.eager.duals.scalar import Scalar, fewer, number, parts_of
from fwdad.eager.duals.tags import isinstance_dual, split, top_tag
from fwdad.eager.lifting.rule_bodies import lifted
from fwdad.eager.memory import store
from fwdad.eager.memory.shadow import SHADOWED, owner_of, untouched
from fwdad.eager.memory.stale import ARRAYS
from fwdad.eager.run import Hiding, Tag
from fwdad.errors import MissingRuleError, RuleError
from fwdad.rules.core.contract import check_memory, checked, option_is_active
from fwdad.rules.core.partials import as_numpy_numbers, own_partial
from fwdad.rules.core.registry import Rule, check_apart
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.quiet import QUIET, inside, quiet
from fwdad.tangents.registrations import OWN
from fwdad.tangents.zero import ZERO, Undefined, Zero

_NOTHING = contextlib.nullcontext()
_PLAIN = {np.ndarray, float, int, complex, bool, str, type(None), np.float64}


def arrays_tag(args: tuple[Any, ...]) -> Tag | None:
    """The call of dual arrays of plain ones beside plain values; None if there is anything else."""
    tag: Any = None
    for x in args:
        if type(x) is Array:
            if (tag is not None and x.tag is not tag) or type(x.p) is not np.ndarray:
                return None
            tag = x.tag
        elif type(x) not in _PLAIN:
            return None
    return None if tag is None or tag.record is not None or not tag.alive else tag


def apply_to_arrays(rule: Rule, args: tuple[Any, ...], tag: Tag) -> Any:
    """The commonest case of :func:`apply_rule`: nothing to bind, and nothing stored in memory."""
    primals = tuple([x.p if type(x) is Array else x for x in args])
    tangents = tuple([x._t if type(x) is Array else ZERO for x in args])
    for t in tangents:
        if type(t) is Undefined:
            t.use()
    result = rule.body(primals, tangents, **rule.binder.default_options)
    if rule.of_user or type(result) is not tuple or len(result) != 2:
        result = checked(rule, result, primals, tag.n)
    y, y_dot = result
    if type(y) is np.ndarray and type(y_dot) is Chunk:
        if y_dot.shape == y.shape and y_dot.n == tag.n:
            tag.largest = max(tag.largest, y.nbytes)
            return Array(y, y_dot, tag, _viewed(y, args))
    if not rule.of_user:
        y, y_dot = checked(rule, result, primals, tag.n)
    check_seen(rule, y, tag)
    return join(rule, y, y_dot, tag, args)


def apply_rule(rule: Rule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a rule's function on arguments some of which are duals."""
    if not kwargs and not SHADOWED and not ARRAYS and rule.takes_only_primals(len(args)):
        tag = arrays_tag(args)
        if tag is not None:
            return apply_to_arrays(rule, args, tag)
    bound, options = rule.binder.bind(args, kwargs)
    primals = with_explicit(bound)
    if rule.takes_arrays or rule.takes_sequences:
        primals = rule.with_arrays(primals, lambda x: _as_array(x, rule))
    tag = top_tag(primals)
    option_tag = top_tag(options.values()) if options else None
    if option_tag is not None:
        name = next(k for k, v in options.items() if top_tag((v,)) is not None)
        raise MissingRuleError(option_is_active(rule.name, name))
    if OPAQUE:
        check_rule(rule, primals)
    if rule.mutates:
        check_apart(rule, primals)
    if tag is None:
        value = rule.body(primals, (ZERO,) * len(primals), **options)[0]
        return _store_written(rule, bound, value) if rule.mutates else value
    pairs = [split(x, tag) for x in primals]
    inner = tuple(p for p, _ in pairs)
    tangents = tuple(t for _, t in pairs)
    for t in tangents:
        if isinstance(t, Undefined):
            t.use()
    nested = top_tag(inner) is not None
    body = lifted(rule.body) if nested else rule.body
    with Hiding(tag) if SHADOWED else _NOTHING:
        if tag.record is not None:
            result = tag.record.run_rule(rule, body, inner, tangents, options)
        else:
            result = body(inner, tangents, **options)
        y, y_dot = checked(rule, result, inner, tag.n, options)
        check_seen(rule, y, tag)
        if nested:
            (y,) = with_explicit((y,))  # the body may have stored into arrays that it made
    value = join(rule, y, y_dot, tag, primals)
    return _store_written(rule, bound, value) if rule.mutates else value


def _store_written(rule: Rule, bound: tuple[Any, ...], value: Any) -> Any:
    """Store the new contents that the rule of a function that writes has returned."""
    returned, *written = value
    for position, new in zip(rule.mutates, written, strict=True):
        store.store(bound[position], Ellipsis, new)
    return returned


def _as_array(x: Any, rule: Rule) -> Any:
    """An array-like as an array, where a law will need its shape."""
    if top_tag((x,)) is not None:
        return make_array(x)
    return np.asarray(x) if rule.linear_argnums else x


def check_seen(rule: Rule, y: Any, tag: Tag | None) -> None:
    """Refuse a result that carries a derivative of what its rule has not been given.

    ``tag`` is the call whose tangents the rule was given; without one, it was given none.
    """
    hidden = top_tag((y,)) if rule.of_user else None
    if hidden is not None and (tag is None or hidden is tag):
        message = (
            f"{rule.place} is not given all that carries a derivative here: {rule.name} reads "
            "a value that does from inside an object or a function, or from outside. A rule sees "
            "numbers, arrays, lists, tuples and dicts: pass the value as such an argument, or "
            "fwdad.stop_gradient(value)"
        )
        raise MissingRuleError(message)


def join(rule: Rule, y: Any, y_dot: Any, tag: Tag, inputs: tuple[Any, ...]) -> Any:
    """Make duals out of the result of a rule."""
    if tag.record is not None:
        y_dot = tag.record.adopt(y_dot)
    if isinstance(y_dot, Zero):
        return _without_tangent(rule, y, tag, inputs)
    if isinstance(y, (tuple, list)):
        parts = [join(rule, p, t, tag, inputs) for p, t in zip(y, y_dot, strict=True)]
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    if isinstance(y, dict):
        return {key: join(rule, y[key], y_dot[key], tag, inputs) for key in y}
    if isinstance(y_dot, Undefined):
        return Array(y, y_dot, tag) if isinstance(y, np.ndarray) else y_dot.use()
    if OWN and type(plain(y)) in OWN:
        return make_opaque(y, y_dot, tag, rule.place)
    if isinstance(y, np.ndarray):
        tag.largest = max(tag.largest, y.nbytes)
        return Array(y, y_dot, tag, _viewed(y, inputs))
    return scalar(y, y_dot, tag)


def scalar(y: Any, y_dot: Chunk, tag: Tag) -> Scalar:
    """A dual scalar; its scalings are Python numbers, which are faster than NumPy's."""
    parts = parts_of(y_dot, ()) if tag.eager else None
    if parts is not None:
        return number(y, parts, tag)
    if tag.record is not None:
        return Scalar(y, tag.record.scalar_terms(y_dot), tag)
    terms = {}
    for lanes, d in y_dot.terms.items():
        if lanes.basis is None and lanes.array.ndim != 1:
            return scalar(y, Chunk(y_dot.lanes), tag)
        terms[lanes] = 1.0 if d is None else d if isinstance_dual(d) else _number(d)
    return Scalar(y, terms, tag)


def _number(d: Any) -> Any:
    return d.item() if isinstance(d, (np.generic, np.ndarray)) else d


def _viewed(y: Any, inputs: tuple[Any, ...]) -> Array | None:
    """The root of the dual array that y is a view of, or None."""
    raw = plain(y)
    for x in inputs:
        if type(x) is Array:
            source = plain(x)
            if raw is source or (raw.base is not None and owner_of(raw) is owner_of(source)):
                return root_of(x)
    return None


def _without_tangent(rule: Rule, y: Any, tag: Tag, inputs: tuple[Any, ...]) -> Any:
    """A value without a tangent; a dual with zeros if it is a view of memory that has one.

    From a user's rule, such a view is a ``RuleError``.
    """
    root = _viewed(y, inputs) if isinstance(y, np.ndarray) else None
    if root is None:
        return y
    if rule.of_user:
        message = (
            f"{rule.place} returns a view of an argument that carries a derivative, but ZERO "
            "as its tangent: the tangent of a view must be the same view of the argument's "
            "tangent"
        )
        raise RuleError(message)
    return Array(y, Chunk(np.zeros((tag.n, *y.shape))), tag, root)


def apply_elementwise(rule: Rule, primal: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Apply an elementwise function: scalings stay deferred, scalars stay Python numbers."""
    args = with_explicit(args)
    tag: Any = None
    for x in args:
        t = type(x)
        if (t is Array or t is Scalar) and x.tag is not tag:
            if not x.tag.alive:
                check_alive(x.tag)
            if tag is None or x.tag.order > tag.order:
                tag = x.tag
    if tag is None:
        if OPAQUE:
            check_rule(rule, args)
        return primal(*args)
    primals, active = [], []
    for k, x in enumerate(args):
        t = type(x)
        if (t is Array or t is Scalar) and x.tag is tag:
            primals.append(x.p)
            active.append((k, x))
        else:
            primals.append(x)
    if SHADOWED and top_tag(primals) is not None:
        # tangents of this call in memory are read before they are hidden
        active = [(k, Array(x.p, x.t, tag) if type(x) is Array else x) for k, x in active]
        with Hiding(tag):
            return _of_duals(rule, primal, primals, active, tag)
    return _of_duals(rule, primal, primals, active, tag)


def _of_duals(
    rule: Rule, primal: Any, primals: list[Any], active: list[tuple[int, Any]], tag: Tag
) -> Any:
    """An elementwise function of the primals of duals, with its tangent."""
    y = primal(*primals)
    if y is NotImplemented:
        return y
    if rule.of_user:
        check_seen(rule, y, tag)
        check_memory(rule, y, primals)
    # partials are taken of NumPy's numbers: 1/0.0 is inf, as it is for arrays
    numbers = as_numpy_numbers(primals, y)
    if type(y) is np.ndarray or isinstance(y, np.ndarray):
        tag.largest = max(tag.largest, y.nbytes)
        return Array(y, quiet()(_array_tangent, rule, active, numbers, y), tag)
    return Scalar(y, quiet()(_scalar_terms, rule, active, numbers, y), tag)


def apply_to_array(rule: Rule, ufunc: Any, x: Array) -> Any:
    """Apply an elementwise ufunc to one array: the commonest call, which skips all look-ups."""
    term = x.held
    if type(term) is not tuple:
        term = one_term(x)
        if term is None:
            return apply_elementwise(rule, ufunc, (x,))
    tag, p = x.tag, x.p
    if not tag.alive:
        check_alive(tag)
    if SHADOWED and not untouched(p):
        return apply_elementwise(rule, ufunc, (x,))
    y = ufunc(p)
    lanes, scaling, shape = term
    d = (call if inside() else QUIET.run)(_scaled_partial, rule.partials[0], scaling, p, y)
    return Array(y, (lanes, d, shape), tag)


def _scaled_partial(partial: Any, scaling: Any, p: np.ndarray, y: np.ndarray) -> Any:
    if scaling is None:
        return own_partial(partial(p, y), (p,), y)
    # no name for the partial: NumPy multiplies into a large array that nobody else holds
    return scaling * own_partial(partial(p, y), (p,), y, kept=False)


def _partials(
    rule: Rule, y: Any, active: list[tuple[int, Any]]
) -> tuple[tuple[Any, ...], list[tuple[int, Any]]]:
    """A rule's partials, lifted where they meet duals of an enclosing call, and what moves.

    A dual that is given twice is given once, with the sum of its partials, as on a tape.
    """
    partials = rule.partials
    if isinstance_dual(y):
        partials = tuple(lifted(partial) for partial in partials)
    if len(active) == 2 and active[0][1] is active[1][1]:
        (j, x), (k, _) = active
        first, second = partials[j], partials[k]
        return (lambda *given: first(*given) + second(*given),), [(0, x)]
    return partials, active


def _scalar_terms(
    rule: Rule, active: list[tuple[int, Any]], numbers: list[Any], y: Any
) -> dict[Any, Any]:
    terms: dict[Any, Any] = {}
    tag = active[0][1].tag
    partials, active = _partials(rule, y, active)
    for k, x in active:
        d = own_partial(partials[k](*numbers, y), numbers, y)
        source = x.terms if type(x) is Scalar else scalar(y, x.t, tag).terms
        if tag.eager and isinstance(d, (complex, np.complexfloating)):
            # NumPy's products of complex arrays and Python's of numbers round differently
            source = dict.fromkeys(Chunk(x.t.lanes).terms, 1.0)
        for lanes, scaling in source.items():
            add = scaling * d
            terms[lanes] = terms[lanes] + add if lanes in terms else add
    return terms if len(terms) <= tag.most else fewer(terms, tag)


def _array_tangent(rule: Rule, active: list[tuple[int, Any]], numbers: list[Any], y: Any) -> Any:
    shape = y.shape
    y_dot: Any = None
    partials, active = _partials(rule, y, active)
    for k, x in active:
        t = x.t
        if type(t) is Undefined:
            t.use()
        unscaled = _unscaled(t)
        d = own_partial(partials[k](*numbers, y), numbers, y, kept=unscaled)
        if getattr(d, "shape", ()) == shape:
            term = t.scale_quietly(d, shape)
        else:
            term = t.scale_quietly(d, t.shape)
            if term.shape != shape:
                term = term.broadcast_to(shape)
        y_dot = term if y_dot is None else y_dot + term
    return y_dot


def _unscaled(t: Chunk) -> bool:
    """Whether a partial will become the scaling of some lanes, instead of being multiplied in.

    This also holds where a recorded sum is made one node first.
    """
    if type(t) is not Chunk and len(t.terms) > 1:
        return True
    for scaling in t.terms.values():  # noqa: SIM110  (a generator costs as much as a small product)
        if scaling is None:
            return True
    return False


def primal_part(x: Any) -> Any:
    """A value without any tangent: what a comparison, a shape or a branch sees."""
    t = type(x)
    if t is Scalar or t is Array:
        return plain(x)
    if t is list or t is tuple:
        return t(primal_part(item) for item in x)
    return plain(x) if OPAQUE and t in OPAQUE else x
