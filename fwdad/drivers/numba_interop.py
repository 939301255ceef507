"""Calls of functions under ``jit`` from functions under ``numba.njit``.

Numba asks for the type of a global by its attribute ``_numba_type_``, and asks a callable type for
the type of a call. Here the types of the arguments select among the tapes that the function has, or
one is traced for them; the call is a small function that Numba compiles, which looks at the lengths
and calls the compiled tape. Importing this module needs Numba.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba.core.imputils import lower_constant
from numba.extending import NativeValue, box, models, register_model, unbox
from numba.np.numpy_support import as_dtype

from fwdad.drivers.numba_interop_source import CallWriter, is_leaf_key
from fwdad.errors import UntraceableError
from fwdad.frontend.arguments import Flattened, leaf_key
from fwdad.ir.symbol import UNBOUND
from fwdad.rules.core.registry import function_name

types: Any = numba.core.types
TypingError: Any = numba.core.errors.TypingError


class JittedType(types.Callable, types.Dummy):
    """The Numba type of one function under ``jit``."""

    def __init__(self, jitted: Any) -> None:
        self.jitted = jitted
        self._arguments: dict[Any, _Arguments] = {}
        self._dispatchers: dict[Any, Any] = {}
        self._refused: set[Any] = set()  # calls whose types alone are not enough
        self._found: dict[Any, Any] = {}
        super().__init__(f"jit({function_name(jitted)})")

    @property
    def key(self) -> Any:
        """The function itself: no two functions share a type."""
        return self.jitted

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call, for which code is generated if it is new."""
        given = (tuple(args), tuple(kws.items()))
        try:
            dispatcher = self._dispatcher(given)
        except TypingError:
            raise
        except Exception as error:  # Numba shows no errors but its own
            raise TypingError(f"{function_name(self.jitted)} under jit: {error}") from error
        template, pysig, folded, _ = dispatcher.get_call_template(args, dict(kws))
        value = template(context).apply(folded, {})
        if value is None:
            return None
        value = value.replace(pysig=pysig)
        self._found[value.args, tuple(pysig.parameters)] = dispatcher
        return value

    def _dispatcher(self, given: Any) -> Any:
        """The function for a call; a new one if what the tapes read from outside has changed."""
        if given not in self._arguments:
            self._arguments[given] = _Arguments(*given)
        arguments = self._arguments[given]
        tapes = self._fitting(given, arguments)
        world = [(s, _captured(s.tape)) for s in tapes]
        held = self._dispatchers.get(given)
        if held is None or held[0] != world:
            writer = CallWriter(function_name(self.jitted), arguments)
            for made in tapes:
                if writer.open:
                    writer.add(made)
            held = self._dispatchers[given] = (world, writer.dispatcher())
        return held[1]

    def _fitting(self, given: Any, arguments: _Arguments) -> list[Any]:
        """The specialisations that may serve a call; the last one is traced for its types alone."""
        key = arguments.flat.key
        known = [s for s in self.jitted.specialisations() if _stands(s.tape) and not s.tape.follows]
        found = [s for s in known if _shape(s.tape.key) == _shape(key)]
        found = [s for s in found if not s.tape.rows or arguments.lie_by_rows]
        found.sort(key=lambda s: _assumed(s.tape), reverse=True)
        enough = any(s.tape.key == key and not _assumes(s.tape) for s in found)
        if enough or (found and given in self._refused):
            return found
        try:
            return [*found, self.jitted.trace_types(arguments.flat)]
        except UntraceableError as error:
            if found:
                self._refused.add(given)
                return found
            raise TypingError(
                f"{function_name(self.jitted)} cannot be traced from the types of this call "
                f"alone: {error.msg}. Call it once from Python, with such arguments, before the "
                "function that calls it is compiled"
            ) from error

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """The signatures known so far, and True: there may be others."""
        known = [s for _, d in self._dispatchers.values() for s in d.nopython_signatures]
        return known, True

    def get_impl_key(self, sig: Any) -> Any:
        """The compiled function for a signature."""
        return self._found[sig.args, tuple(sig.pysig.parameters)].get_overload(sig)


register_model(JittedType)(models.OpaqueModel)


@lower_constant(JittedType)
def _constant(context: Any, builder: Any, t: Any, _value: Any) -> Any:
    """A global that holds a function under ``jit``; callers are not cached on disk.

    The code of the tape is linked in, and Numba's cache would not notice when it becomes stale.
    Numba does not cache functions that use an address of this process, so one is used here, by an
    empty instruction that keeps it from being removed.
    """
    address = context.add_dynamic_addr(builder, id(t.jitted), info=str(t))
    builder.asm(ir.FunctionType(ir.VoidType(), [address.type]), "", "r", [address], True)
    return context.get_dummy_value()


@unbox(JittedType)
def _unbox(_type: Any, value: Any, _context: Any) -> Any:
    return NativeValue(value)


@box(JittedType)
def _box(_type: Any, value: Any, context: Any) -> Any:
    context.pyapi.incref(value)
    return value


class _Leaf(NamedTuple):
    """A number or an array among the arguments: its source text and its Numba type."""

    text: str
    type: Any


class _Arguments:
    """The types of a call's arguments, and examples of these types, flattened as ``jit`` does."""

    def __init__(self, args: tuple[Any, ...], kws: tuple[tuple[str, Any], ...]) -> None:
        self.leaves: list[_Leaf] = []
        self.names = [f"a_{k}" for k in range(len(args))] + [name for name, _ in kws]
        given = [self._example(t, n) for t, n in zip(args, self.names, strict=False)]
        named = {name: self._example(t, name) for name, t in kws}
        self.flat = Flattened(tuple(given), named, examples=False)

    @property
    def lie_by_rows(self) -> bool:
        """Whether all arrays are known to be C-contiguous, without gaps."""
        arrays = [leaf.type for leaf in self.leaves if isinstance(leaf.type, types.Array)]
        return all(t.layout == "C" for t in arrays)

    def _example(self, t: Any, text: str) -> Any:
        if isinstance(t, types.StringLiteral):
            return t.literal_value
        t = types.unliteral(t)
        if isinstance(t, types.NoneType):
            return None
        if isinstance(t, types.BaseTuple):
            items = [self._example(item, f"{text}[{k}]") for k, item in enumerate(t.types)]
            return t.instance_class(*items) if isinstance(t, types.BaseNamedTuple) else tuple(items)
        if isinstance(t, (types.Number, types.Boolean)):
            self.leaves.append(_Leaf(text, t))
            made = as_dtype(t).type(1)
            python = type(made.item())
            same = as_dtype(t) == np.dtype(python)
            return made.item() if same else made
        if isinstance(t, types.Array) and as_dtype(t.dtype).kind in "biufc":
            self.leaves.append(_Leaf(text, t))
            made = np.ones((4,) * t.ndim, as_dtype(t.dtype))
            return made[:2] if t.layout == "C" else made[(slice(None, None, 2),) * t.ndim]
        raise TypingError(
            f"an argument of type {t} cannot be passed from compiled code to a function under "
            "fwdad.jit: pass numbers, arrays of numbers, None, string literals, or tuples of these"
        )


def _captured(tape: Any) -> list[Any]:
    """What a tape reads from outside, in a form that can be compared."""
    found = [c.fetch() for c in tape.captures]
    return [(x.shape, x.tobytes()) if isinstance(x, np.ndarray) else repr(x) for x in found]


def _assumed(tape: Any) -> int:
    """The number of a tape's assumptions; a tape with fewer serves what others leave."""
    return len(tape.length_guards) + len(tape.equal_lengths) + len(tape.value_guards)


def _assumes(tape: Any) -> bool:
    return bool(_assumed(tape))


def _stands(tape: Any) -> bool:
    """Whether what a tape reads from outside still has the types and values that it assumes."""
    if not tape.stands():
        return False
    first = len(tape.program.block.params) - len(tape.captures)
    for k, capture in enumerate(tape.captures, first):
        found = capture.fetch()
        if found is UNBOUND or leaf_key(found) != capture.key:
            return False
        if k in tape.value_guards and found != tape.value_guards[k]:
            return False
        if any(at == k and found.shape[axis] != n for at, axis, n in tape.length_guards):
            return False
    return True


def _shape(key: Any) -> Hashable:
    """A tape's key without lengths."""
    if is_leaf_key(key):
        return (key[0], len(key[1]), "array") if isinstance(key[1], tuple) else key
    if isinstance(key, tuple):
        return tuple(_shape(part) for part in key)
    return key


__all__ = ["JittedType"]
