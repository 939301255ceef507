"""Checks of what a rule promises, where it is run: tangents, and the memory of what it returns.

The shapes and widths of tangents are compared for every rule. What costs more, dtypes and memory,
is checked for users' rules only: the harness checks the library's own in its tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, Location, RuleError, type_in_words
from fwdad.rules.core.containers import is_composite, walk
from fwdad.rules.core.registry import Rule, find_rule, share
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.shapes import same_shape
from fwdad.tangents.zero import NoTangentType, Undefined, Zero

# -- tangents that are given


def check_given(what: str, primals: Any, tangents: Any) -> int | None:
    """Check that tangents fit primals, one for each; returns their number of lanes.

    It is None if all tangents are zero. ``what`` names the receiver in messages.
    """
    if not isinstance(tangents, (tuple, list)) or len(tangents) != len(primals):
        came = len(tangents) if isinstance(tangents, (tuple, list)) else type_in_words(tangents)
        raise ChunkMismatchError(
            f"{what} takes a tuple of {len(primals)} tangents, one for each primal; got {came}"
        )
    widths: list[int] = []
    for k, (x, t) in enumerate(zip(primals, tangents, strict=True)):
        _check_one(what, f"primals[{k}]", x, t, widths)
    return widths[0] if widths else None


def _check_one(what: str, name: str, x: Any, t: Any, widths: list[int]) -> None:
    """Check one tangent against its primal, and its width against those before it."""
    if isinstance(t, Chunk):
        if widths and t.n != widths[0]:
            raise ChunkMismatchError(
                f"{what} got chunks of different widths: {widths[0]} lanes, and {t.n} for {name}"
            )
        widths.append(t.n)
        fault = _misfit(x, t)
        if fault:
            raise ChunkMismatchError(f"{what} got {fault} for {name}")
    elif is_composite(t):
        if type(x) is not type(t) and not (is_composite(x) and len(x) == len(t)):
            message = f"{what} got {type_in_words(t)} as the tangent of {name}, {type_in_words(x)}"
            raise ChunkMismatchError(message)
        tangent_keys = t.keys() if isinstance(t, dict) else range(len(t))
        primal_keys = x.keys() if isinstance(x, dict) else range(len(x))
        if set(tangent_keys) != set(primal_keys):
            message = f"{what} got {len(t)} tangents for {name}, which has {len(x)} parts"
            raise ChunkMismatchError(message)
        for key in tangent_keys:
            _check_one(what, f"{name}[{key!r}]", x[key], t[key], widths)
    elif not isinstance(t, (Zero, Undefined, NoTangentType)) and not _has_own_structure(x, t):
        hint = ""
        if isinstance(t, (np.ndarray, np.generic, float, int, complex)):
            hint = ". Write N tangents as Chunk(lanes), with lanes of shape (N, *shape)"
        raise ChunkMismatchError(
            f"{what} got {type_in_words(t)} as the tangent of {name}; expected a Chunk or "
            f"ZERO{hint}"
        )


def _has_own_structure(x: Any, t: Any) -> bool:
    """Whether a tangent is an object of its primal's own, registered class."""
    plain_x = plain(x)
    return not isinstance(
        plain_x, (np.ndarray, np.generic, float, int, complex, str, bytes, type(None))
    ) and type(t) is type(plain_x)


def _misfit(x: Any, t: Chunk) -> str:
    """What is wrong with a chunk as the tangent of a value; an empty string if it fits."""
    raw = plain(x)
    if OWN and type(raw) in OWN:
        return ""
    shape = tuple(raw.shape) if hasattr(raw, "shape") else np.shape(raw)
    if t.shape != shape and not may_agree(tuple(t.shape), shape):
        return f"a tangent of shape {t.shape} for a value of shape {shape}"
    return ""


def may_agree(first: tuple[Any, ...], second: tuple[Any, ...]) -> bool:
    """Whether shapes, of which some lengths may be unknown, may be one shape."""
    pairs = zip(first, second, strict=False)
    return same_shape(first, second) and not any(
        getattr(other, "may_be_one", True) is False
        for pair in pairs
        for one, other in (pair, pair[::-1])
        if type(one) is int and one == 1
    )


# -- what a rule returns


def checked(rule: Rule, result: Any, primals: Any, n: int, options: Any = None) -> tuple[Any, Any]:
    """An frule's result ``(y, y_dot)`` for n lanes, after a check of all that it promises."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise ChunkMismatchError(
            f"{rule.place} returns {type_in_words(result)}; it must return (y, y_dot), with a "
            "Chunk or ZERO for each value"
        )
    y, y_dot = result
    if type(y) is np.ndarray and isinstance(y_dot, Chunk):  # the commonest, and quickly
        if y_dot.n != n or y_dot.shape != y.shape or rule.contents:
            check_chunk(rule, y, y_dot, n)
        elif not rule.of_user or (_is_real(y_dot, y) and not options and _apart(rule, y, primals)):
            return y, y_dot
    if rule.contents:
        _check_written(rule, y, y_dot, primals)
    _check_tangents(rule, y, y_dot, n)
    if rule.of_user:
        check_memory(rule, y, (*primals, options) if options else primals)
    return y, y_dot


def _is_real(y_dot: Chunk, y: np.ndarray) -> bool:
    """Whether a tangent is real like its float array; a quick test."""
    if type(y_dot) is not Chunk or y.dtype.kind != "f":
        return y.dtype.kind == "c"
    for lanes, d in y_dot.terms.items():
        if lanes.dtype.kind != "f" or (
            d is not None and type(d) is not float and getattr(d, "dtype", _OBJECT).kind != "f"
        ):
            return False
    return True


_OBJECT = np.dtype(object)


def _check_tangents(rule: Rule, y: Any, y_dot: Any, n: int) -> None:
    if isinstance(y_dot, (Zero, Undefined, NoTangentType)):
        return
    if is_composite(y):
        if (
            not is_composite(y_dot)
            or len(y_dot) != len(y)
            or isinstance(y, dict) != isinstance(y_dot, dict)
        ):
            raise ChunkMismatchError(
                f"{rule.place} returns {type_in_words(y)} of {len(y)} values, but its tangents "
                f"({type_in_words(y_dot)}) have another structure"
            )
        for key in y if isinstance(y, dict) else range(len(y)):
            if isinstance(y_dot, dict) and key not in y_dot:
                message = f"{rule.place} returns no tangent for the value under {key!r}"
                raise ChunkMismatchError(message)
            _check_tangents(rule, y[key], y_dot[key], n)
        return
    if not isinstance(y_dot, Chunk):
        raise ChunkMismatchError(
            f"{rule.place} returns {type_in_words(y_dot)} as the tangent of {type_in_words(y)}; "
            "it must return (y, y_dot), with a Chunk or ZERO for each value"
        )
    check_chunk(rule, y, y_dot, n)


def check_chunk(rule: Rule, y: Any, y_dot: Chunk, n: int) -> None:
    """Check width, shape and dtype of the tangent of one value that a rule returns."""
    if not same_shape((y_dot.n,), (n,)):
        message = f"{rule.place} returns a tangent of {y_dot.n} lanes; its arguments have {n}"
        raise ChunkMismatchError(message)
    fault = _misfit(y, y_dot)
    if fault:
        raise ChunkMismatchError(f"{rule.place} returns {fault}")
    if rule.of_user:
        check_kind(rule, y, y_dot)


def check_kind(rule: Rule, y: Any, y_dot: Chunk) -> None:
    """Check that the tangent of a value that a user's rule returns is real if the value is."""
    raw = plain(y)
    if OWN and type(raw) in OWN:
        return
    kind = raw.dtype.kind if hasattr(raw, "dtype") else np.asarray(raw).dtype.kind
    if kind not in "fc":
        what = f"an array of {raw.dtype}" if isinstance(raw, np.ndarray) else type_in_words(raw)
        raise ChunkMismatchError(
            f"{rule.place} returns a Chunk as the tangent of {what}, which has no tangent: "
            "return ZERO"
        )
    if kind == "f" and y_dot.dtype.kind == "c":
        message = f"{rule.place} returns a complex tangent for a real value: take .real"
        raise ChunkMismatchError(message)


def _check_written(rule: Rule, y: Any, y_dot: Any, primals: Any) -> None:
    """Check the new contents that the rule of a function that writes returns."""
    wanted = 1 + len(rule.contents)
    for part, name in ((y, "y"), (y_dot, "y_dot")):
        if not isinstance(part, tuple) or len(part) != wanted:
            if part is y_dot and isinstance(part, Zero):
                continue
            names = ", ".join(f"new_{rule.binder.primal_name(k)}" for k in rule.contents)
            raise ChunkMismatchError(
                f"{rule.place} says mutates={rule.contents!r} but returns {type_in_words(part)} "
                f"as {name}: it must be a tuple of what the function returns, followed by the "
                f"new contents ({name}, {names})"
            )
    for k, new in zip(rule.contents, y[1:], strict=True):
        old, now = plain(primals[k]), plain(new)
        shape = tuple(now.shape) if hasattr(now, "shape") else np.shape(now)
        if not may_agree(shape, tuple(old.shape)):
            raise ChunkMismatchError(
                f"{rule.place} returns new contents of shape {shape} for "
                f"`{rule.binder.primal_name(k)}` of shape {old.shape}"
            )
        if old.dtype.kind != "c" and getattr(now, "dtype", old.dtype).kind == "c":
            name = rule.binder.primal_name(k)
            raise ChunkMismatchError(f"{rule.place} returns complex contents for the real `{name}`")


def check_cotangent(place: str, x_bar: Any, space: Any, y_bar: Any) -> None:
    """Check the result of a user's transpose, which ``place`` names in messages.

    ``space`` is the argument's ``Space``, or a list or tuple of spaces; an item that is not a space
    has no cotangent. There must be as many cotangents as ``y_bar`` has.
    """
    if isinstance(x_bar, (Zero, Undefined, NoTangentType)):
        return
    if is_composite(space):
        if not is_composite(x_bar) or len(x_bar) != len(space):
            raise ChunkMismatchError(
                f"{place} returns {type_in_words(x_bar)} as the cotangent of an argument of "
                f"{len(space)} parts: return one cotangent for each"
            )
        for key in space if isinstance(space, dict) else range(len(space)):
            check_cotangent(place, x_bar[key], space[key], y_bar)
        return
    if not hasattr(space, "shape"):
        return
    many = isinstance(y_bar, Chunk)
    shape = getattr(x_bar, "shape", None)
    if isinstance(x_bar, Chunk) != many or shape is None:
        wanted = "a Chunk" if many else "an array"
        message = f"{place} returns {type_in_words(x_bar)}; expected {wanted} or ZERO"
        raise ChunkMismatchError(message)
    if many and x_bar.n != y_bar.n:
        message = f"{place} returns {x_bar.n} cotangents for the {y_bar.n} that it got"
        raise ChunkMismatchError(message)
    if not may_agree(tuple(shape), tuple(space.shape)):
        raise ChunkMismatchError(
            f"{place} returns a cotangent of shape {shape} for an argument of shape {space.shape}"
        )
    if space.dtype.kind != "c" and x_bar.dtype.kind == "c":
        message = f"{place} returns a complex cotangent for a real argument: take .real"
        raise ChunkMismatchError(message)


# -- memory


def arrays_in(x: Any) -> Iterator[np.ndarray]:
    """The arrays in a value, without the duals around them."""
    t = type(x)
    if t is np.ndarray:
        yield x
    elif is_composite(x):
        for _, part in walk(x):
            yield from arrays_in(part)
    else:
        raw = plain(x)
        if isinstance(raw, np.ndarray):
            yield raw


def memory_of_argument(rule: Rule) -> str:
    """The message for a rule with ``returns='new'`` that returns an argument's memory."""
    return (
        f"{rule.place} returns memory of an argument, so a later write into it would change the "
        "argument, too. Make the function and its rule return a copy, or use frule(…, "
        "returns='view') ('either' if it depends)"
    )


def undeclared_write(rule: Rule, at: Any) -> str:
    """The message for a write into an argument, given by position or name, that is undeclared."""
    names = rule.binder.positional
    name = names[at] if type(at) is int and at < len(names) else at
    return (
        f"{rule.name} writes into its argument `{name}`, but its rule ({rule.origin}) does not "
        "say so: register it with mutates=(…), the positions of the arguments that are written"
    )


_NUMBERS = {float, int, complex, bool, np.float64, np.int64, np.bool_, type(None)}


def _apart(rule: Rule, y: Any, inputs: Any) -> bool:
    """Whether a result surely shares no memory with the arguments; a quick test."""
    if rule.returns != "new":
        return False
    if type(y) in _NUMBERS:
        return True
    if type(y) is not np.ndarray or y.base is not None:
        return False
    for x in inputs:
        if type(x) is np.ndarray:
            if x is y or x.base is not None:
                return False
        elif type(x) not in _NUMBERS:
            return False
    return True


def check_memory(rule: Rule, y: Any, inputs: Any, place: Location | None = None) -> None:
    """Check the memory of what a user's rule, or its function, returns against its ``returns``.

    ``place`` is the location in the user's code; None means its innermost frame.
    """
    if rule.returns == "either" or _apart(rule, y, inputs):
        return
    returned = list(arrays_in(y))
    if not returned:
        return
    arguments = list(arrays_in(inputs))
    if rule.returns == "view":
        for a in returned[:1] if rule.mutates else returned:
            if a.size and not any(share(a, b) for b in arguments):
                message = (
                    f"{rule.place} says returns='view', but what is returned here shares no "
                    "memory with an argument: use returns='new', or 'either' if it depends"
                )
                raise RuleError(message, place)
        return
    for k, a in enumerate(returned):
        for b in arguments:
            if share(a, b):
                raise RuleError(memory_of_argument(rule), place)
        if any(share(a, b) for b in returned[:k]):
            message = (
                f"{rule.place} returns arrays that share memory with each other: make the "
                "function and its rule return copies"
            )
            raise RuleError(message, place)


def option_is_active(name: str, option: str) -> str:
    """The message for a derivative in what a rule takes as an option."""
    return (
        f"the frule of {name} takes `{option}` as an option, but here it carries a derivative. "
        "Register a rule that has it among its primals, or pass "
        f"fwdad.stop_gradient({option})"
    )


def view_is_written(rule: Rule) -> str:
    """The message for a derivative of memory that a user's function may return a view of."""
    return (
        f"{rule.place} says returns={rule.returns!r}, and that memory is written, which has no "
        f"derivative on a tape. Write into a .copy() of what {rule.name} returns, or make it "
        "return a copy"
    )


def watched(function: Any) -> Callable[..., Any]:
    """The function as a tape calls it: if it has a user's rule, its result is checked."""
    rule = find_rule(function)
    if rule is None or not rule.of_user or rule.returns == "either" or not callable(function):
        return function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        y = function(*args, **kwargs)
        if kwargs or not _apart(rule, y, args):
            check_memory(rule, y, (*args, *kwargs.values()))
        return y

    run.watches = function  # type: ignore[attr-defined]
    return run
