"""A loop as LLVM code, in a function of its own that is called with what the loop reads.

Each operation is the one that Numba would take, so that it means the same; arrays are given as
pointers with lengths and steps, and windows on them are such pointers, too. Importing this module
needs Numba.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, typing
from numba.core import types as _types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.extending import register_model

from fwdad.backends.nest_types import (
    NestError,
    Typed,
    index_parts,
    whole_exponent,
)
from fwdad.backends.nests import Nest, known_int
from fwdad.backends.numba_elements import (
    Held,
    Part,
    all_steps,
    as_array,
    element,
    get_itemsize,
    held,
    load_item,
    store_item,
    window,
)
from fwdad.backends.own_functions import call_apart
from fwdad.backends.shared_loops import SharedLoop

types: Any = _types


class NestFunction:
    """What a source calls in the place of a loop.

    Parameters
    ----------
    nest : Nest
        The loop.

    Attributes
    ----------
    is_refused : bool
        Whether it holds what has no types here.
    stays_apart : bool
        Whether LLVM must not write it into its caller.
    shared : mapping
        Loops that other nests have as well.
    """

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.__name__ = nest.name
        self.typed: dict[Any, Typed] = {}
        self.is_refused = False
        self.stays_apart = False
        self.shared: Mapping[ast.For, SharedLoop] = {}
        self._numba_type_ = NestType(self)

    def type_for(self, context: Any, given: tuple[Any, ...]) -> Typed:
        """The types inside, for those of the arguments."""
        if given not in self.typed:
            self.typed[given] = Typed(context, self.nest, given)
        return self.typed[given]


class NestType(types.Callable, types.Opaque):  # type: ignore[misc]
    """The type of such a function.

    Parameters
    ----------
    nest : NestFunction
        The function.
    """

    def __init__(self, nest: NestFunction) -> None:
        self.nest = nest
        super().__init__(nest.__name__)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature for some arguments."""
        assert not kws
        given = tuple(types.unliteral(t) for t in args)
        try:
            typed = self.nest.type_for(context, given)
        except NestError as error:
            self.nest.is_refused = True
            raise TypingError(str(error)) from error
        return typing.signature(typed.result, *given)

    def get_call_signatures(self) -> Any:
        """Nobody has written down any."""
        return (), True

    def get_impl_key(self, sig: Any) -> Any:
        """The function is its own implementation."""
        return type(self), sig


register_model(NestType)(models.OpaqueModel)


def write_call(
    context: Any, builder: Any, nest: NestFunction, signature: Any, args: Sequence[Any]
) -> Any:
    """Write the call of a nest, and the nest itself where the module does not have it.

    Parameters
    ----------
    context, builder
        Numba's target context and LLVM builder.
    nest : NestFunction
        What is called.
    signature : Signature
        Its types.
    args : sequence of LLVM value
        Its arguments.

    Returns
    -------
    LLVM value
        Of the signature's result.
    """
    typed = nest.typed[signature.args]
    given, parts = [], []
    for t, x in zip(signature.args, args, strict=True):
        for kind, part in _parts(context, builder, t, x):
            given.append(kind)
            parts.append(part)
    result = signature.return_type
    convention = context.call_conv
    kinds = hashlib.sha256(repr(signature).encode()).hexdigest()[:16]
    name = f"{nest.__name__}_{kinds}"
    function_type = convention.get_function_type(result, given)
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    if not function.blocks:
        function.linkage = "internal"
        if nest.stays_apart:
            function.attributes.add("noinline")
        convention.decorate_function(function, [f"p{k}" for k in range(len(given))], given)
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        arguments = convention.decode_arguments(inside, given, function)
        _Writer(context, inside, typed, nest.shared).write(arguments)
    status, answer = convention.call_function(builder, function, result, given, parts)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return context.get_dummy_value() if result == types.none else answer


_IMPLEMENTATIONS: dict[Any, Any] = {}


def implementation(context: Any, function: Any, signature: Any) -> Any:
    """What Numba calls for an operation on numbers: it looks through many, each time."""
    if not all(isinstance(t, (types.Number, types.Boolean)) for t in signature.args):
        return context.get_function(function, signature)
    key = context, function, signature
    if key not in _IMPLEMENTATIONS:
        # tells the function of these types: its signature may be known from another one of its kind
        function.get_call_type(context.typing_context, signature.args, {})
        _IMPLEMENTATIONS[key] = context.get_function(function, signature)
    return _IMPLEMENTATIONS[key]


def _parts(context: Any, builder: Any, t: Any, x: Any) -> Iterator[tuple[Any, Any]]:
    """What a nest is given for an argument: of arrays only what access needs."""
    if not isinstance(t, types.Array):
        yield t, x
        return
    array = held(context, builder, t, x)
    yield types.CPointer(t.dtype), array.data
    for n in [*array.lengths, *_steps(array)]:
        yield types.intp, n


def _steps(array: Held) -> list[Any]:
    return array.steps if array.type.layout == "A" else []


class _Number(NamedTuple):
    """A name that nobody assigns again."""

    type: Any
    value: Any


class _Variable(NamedTuple):
    """A name with a place in memory, which LLVM makes a register."""

    type: Any
    place: Any


class _Writer:
    """Writes one nest.

    Parameters
    ----------
    context, builder
        Numba's target context and LLVM builder.
    typed : Typed
        The nest and its types.
    shared : mapping
        The loops that are functions of their own.
    """

    def __init__(
        self, context: Any, builder: Any, typed: Typed, shared: Mapping[ast.For, SharedLoop]
    ) -> None:
        self.shared = shared
        self.context = context
        self.builder = builder
        self.typed = typed
        self.nest = typed.nest
        self.names: dict[str, Any] = {}
        targets = [n for n in ast.walk(self.nest.tree) if isinstance(n, ast.Name)]
        indices = {id(n.target) for n in ast.walk(self.nest.tree) if isinstance(n, ast.For)}
        self._assigned = {
            n.id for n in targets if isinstance(n.ctx, ast.Store) and id(n) not in indices
        }

    def write(self, arguments: Sequence[Any]) -> None:
        """Write the whole function."""
        rest = iter(arguments)
        for name, t in zip(self.nest.params, self.typed.given, strict=True):
            if isinstance(t, types.Array):
                data, *lengths = (next(rest) for _ in range(1 + t.ndim))
                steps = [next(rest) for _ in range(t.ndim)] if t.layout == "A" else []
                self._lengths_fit(t, lengths)
                self.names[name] = Held(t, data, lengths, steps)
            else:
                self._bind(name, t, next(rest))
        self._block(self.nest.tree.body)
        convention = self.context.call_conv
        results = [self._name(r) for r in self.nest.results]
        if not results:
            convention.return_value(self.builder, self.context.get_dummy_value())
        elif len(results) == 1:
            t = self.typed.result
            answer = self.context.get_return_value(self.builder, t, results[0])
            convention.return_value(self.builder, answer)
        else:
            t = self.typed.result
            made = self.context.make_tuple(self.builder, t, results)
            answer = self.context.get_return_value(self.builder, t, made)
            convention.return_value(self.builder, answer)

    def _lengths_fit(self, t: Any, lengths: Sequence[Any]) -> None:
        """Tell LLVM that an array's bytes can be counted: it has fewer cases then.

        NumPy and what allocates here see to it; a broadcast array is only looked at.
        """
        most = 2**63 // max(get_itemsize(self.context, t), 2)
        for n in lengths if t.mutable else ():
            self.builder.assume(self.builder.icmp_unsigned("<", n, n.type(most)))

    # -- names

    def _bind(self, name: str, t: Any, value: Any) -> None:
        """Give a name its value."""
        if isinstance(value, Held):
            self.names[name] = value
        elif name in self._assigned or name in self.nest.results:
            known = self.names.get(name)
            if known is None:
                place = cgutils.alloca_once(self.builder, value.type)
                known = self.names[name] = _Variable(t, place)
            self.builder.store(value, known.place)
        else:
            self.names[name] = _Number(t, value)

    def _name(self, name: str) -> Any:
        known = self.names[name]
        if isinstance(known, _Variable):
            return self.builder.load(known.place)
        return known.value if isinstance(known, _Number) else known

    # -- statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for s in body:
            self._statement(s)

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.For) and s in self.shared:
            self._apart(s, self.shared[s])
        elif isinstance(s, ast.For):
            self._loop(s)
        elif isinstance(s, ast.If):
            self._branch(s)
        elif isinstance(s, ast.Assign):
            self._assign(s.targets[0], self.typed.of[s.value], self._value(s.value))
        elif isinstance(s, ast.AugAssign):
            left, right = self._value(s.target), self._value(s.value)
            kinds = [self.typed.of[s.target], self.typed.of[s.value]]
            t, made = self._call(s, kinds, [left, right])
            self._assign(s.target, t, made)
        elif isinstance(s, ast.Expr):
            self._value(s.value)

    def _assign(self, target: ast.expr, t: Any, value: Any) -> None:
        if isinstance(target, ast.Subscript):
            array = self._value(target.value)
            value = self.context.cast(self.builder, value, t, array.type.dtype)
            place = element(self.context, self.builder, array, self._index(target))
            store_item(self.context, self.builder, array.type, value, place)
        else:
            assert isinstance(target, ast.Name)
            self._bind(target.id, t, value)

    def _branch(self, s: ast.If) -> None:
        condition = self._truth(s.test)
        with self.builder.if_else(condition) as (then, other):
            with then:
                self._block(s.body)
            with other:
                self._block(s.orelse)

    def _truth(self, e: ast.expr) -> Any:
        return self.context.is_true(self.builder, self.typed.of[e], self._value(e))

    def _loop(self, s: ast.For) -> None:
        assert isinstance(s.iter, ast.Call)
        assert isinstance(s.target, ast.Name)
        builder, args = self.builder, [self._value(x) for x in s.iter.args]
        start, stop = (args[0].type(0), args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else start.type(1)
        begin, body, end = (builder.append_basic_block(n) for n in ("begin", "body", "end"))
        before = builder.block
        forwards = self._goes_up(s, step)
        goes_on = self._is_before(start, stop, forwards)
        if len(args) == 3 and known_int(s.iter.args[2]) is None:
            zero = builder.icmp_signed("==", step, step.type(0))
            from_zero = builder.append_basic_block("zero")
            checked = builder.append_basic_block("checked")
            builder.cbranch(zero, from_zero, checked).set_weights([1, 99])
            builder.position_at_end(from_zero)
            message = "range() arg 3 must not be zero"
            self.context.call_conv.return_user_exc(builder, ValueError, (message,))
            builder.position_at_end(checked)
            before = builder.block
        builder.cbranch(goes_on, begin, end)
        builder.position_at_end(begin)
        index = builder.phi(start.type)
        index.add_incoming(start, before)
        builder.branch(body)
        builder.position_at_end(body)
        self._bind(s.target.id, types.int64, index)
        self._block(s.body)
        following = builder.add(index, step, flags=("nsw",))
        goes_on = self._is_before(following, stop, forwards)
        index.add_incoming(following, builder.block)
        builder.cbranch(goes_on, begin, end)
        builder.position_at_end(end)

    def _apart(self, s: ast.For, loop: SharedLoop) -> None:
        """Call the function that a loop is; a step between elements that is known is no argument.

        So a window on an array is one kind with the array, whose elements are neighbours too.
        """
        kinds: list[tuple[Any, list[Any]]] = []
        given: list[tuple[Any, Any]] = []  # Numba's types, LLVM's values
        for x in loop.given:
            t, value = self.typed.of[x], self._value(x)
            if not isinstance(value, Held):
                kinds.append((t, []))
                given.append((t, value))
                continue
            steps = all_steps(self.context, self.builder, value)
            known = [step.constant if isinstance(step, ir.Constant) else None for step in steps]
            kinds.append((t.copy(layout="A"), known))
            given.append((types.CPointer(t.dtype), value.data))
            given += [(types.intp, n) for n, k in zip(steps, known, strict=True) if k is None]

        def write(inside: Any, arguments: Sequence[Any]) -> Any:
            writer, rest = _Writer(self.context, inside, self.typed, {}), iter(arguments)
            for x, (t, known) in zip(loop.given, kinds, strict=True):
                data = next(rest)
                if isinstance(t, types.Array):
                    assert isinstance(x, ast.Name)
                    steps = [next(rest) if k is None else ir.IntType(64)(k) for k in known]
                    writer.names[x.id] = Held(t, data, writer.lengths_of(x.id, t.ndim), steps)
                elif isinstance(x, ast.Name):
                    writer.names[x.id] = _Number(t, data)
                else:
                    assert isinstance(x, ast.Subscript)
                    assert isinstance(x.value, ast.Attribute)
                    assert isinstance(x.value.value, ast.Name)
                    of = x.value.value
                    k, lengths = (
                        known_int(x.slice),
                        writer.lengths_of(of.id, len(self.typed.of[x.value])),
                    )
                    assert k is not None
                    lengths[k] = data
                    writer.names.setdefault(of.id, Held(self.typed.of[of], None, lengths, []))
            writer._loop(s)
            return self.context.get_dummy_value()

        name = hashlib.sha256(repr((loop.text, kinds)).encode()).hexdigest()[:16]
        signature = types.none(*(t for t, _ in given))
        values = [x for _, x in given]
        call_apart(self.context, self.builder, f"loop_{name}", signature, values, write)

    def lengths_of(self, name: str, rank: int) -> list[Any]:
        """The lengths of an array, which are told one by one."""
        known = self.names.get(name)
        return known.lengths if known is not None else [None] * rank

    def _goes_up(self, s: ast.For, step: Any) -> Any:
        """True or False if it is known, else a bit."""
        assert isinstance(s.iter, ast.Call)
        if len(s.iter.args) < 3:
            return True
        known = known_int(s.iter.args[2])
        if known:
            return known > 0
        return self.builder.icmp_signed(">", step, step.type(0))

    def _is_before(self, i: Any, stop: Any, forwards: Any) -> Any:
        if isinstance(forwards, bool):
            return self.builder.icmp_signed("<" if forwards else ">", i, stop)
        up, down = (self.builder.icmp_signed(sign, i, stop) for sign in "<>")
        return self.builder.select(forwards, up, down)

    # -- expressions

    def _value(self, e: ast.expr) -> Any:
        """An LLVM value, or the parts of an array."""
        t = self.typed.of[e]
        if isinstance(e, ast.Constant):
            return self.context.get_constant(types.unliteral(t), e.value)
        if isinstance(e, ast.Name):
            return self._name(e.id)
        if isinstance(e, ast.Subscript):
            return self._item(e)
        if isinstance(e, ast.Attribute):
            return self._attribute(e)
        if isinstance(e, ast.BoolOp):
            return self._all_or_any(e)
        if isinstance(e, ast.IfExp):
            return self._choice(e)
        if isinstance(e, ast.Tuple):
            return self.context.make_tuple(self.builder, t, [self._value(x) for x in e.elts])
        if isinstance(e, ast.BinOp) and whole_exponent(e) is not None and isinstance(e.op, ast.Pow):
            return self._power(e)
        return self._call(e, *self._operands(e))[1]

    def _operands(self, e: ast.expr) -> tuple[list[Any], list[Any]]:
        if isinstance(e, ast.BinOp):
            operands = [e.left, e.right]
        elif isinstance(e, ast.UnaryOp):
            operands = [e.operand]
        elif isinstance(e, ast.Compare):
            operands = [e.left, e.comparators[0]]
        else:
            assert isinstance(e, ast.Call)
            operands = e.args
        return [self.typed.of[x] for x in operands], [self._value(x) for x in operands]

    def _call(self, node: ast.AST, kinds: Sequence[Any], args: Sequence[Any]) -> tuple[Any, Any]:
        """Call Numba's implementation; answers the type, too."""
        function, signature = self.typed.calls[node]
        called = implementation(self.context, function, signature)
        args = [as_array(self.context, self.builder, x) if isinstance(x, Held) else x for x in args]

        def one(k: int, wanted: Any) -> Any:
            return self.context.cast(self.builder, args[k], kinds[k], wanted)

        def several(ks: Sequence[int], wanted: Any) -> Any:
            held = [one(k, t) for k, t in zip(ks, wanted, strict=True)]
            return cgutils.make_anonymous_struct(self.builder, held)

        if signature.pysig is None:
            given = [one(k, t) for k, t in enumerate(signature.args)]
        else:
            given = typing.fold_arguments(
                signature.pysig,
                tuple(range(len(args))),
                {},
                lambda index, _param, k: one(k, signature.args[index]),
                lambda index, _param, default: self.context.get_constant_generic(
                    self.builder, signature.args[index], default
                ),
                lambda index, _param, ks: cgutils.make_anonymous_struct(
                    self.builder,
                    [one(k, t) for k, t in zip(ks, signature.args[index], strict=True)],
                ),
            )
        made = called(self.builder, given)
        self.context.add_linking_libs(getattr(called, "libs", ()))
        t = types.unliteral(signature.return_type)
        return t, self.context.cast(self.builder, made, signature.return_type, t)

    def _power(self, e: ast.BinOp) -> Any:
        n = whole_exponent(e)
        t, x = self.typed.of[e.left], self._value(e.left)
        product_type, made = self._call(e, [t, t], [x, x])
        if n == 2:
            return made
        x = self.context.cast(self.builder, x, t, product_type)
        return self._call(e, [product_type, product_type], [x, made])[1]

    def _attribute(self, e: ast.Attribute) -> Any:
        t = self.typed.of[e]
        if isinstance(e.value, ast.Name) and e.value.id in self.nest.functions:
            known = getattr(self.nest.functions[e.value.id], e.attr)
            return self.context.get_constant(t, known)
        value = self._value(e.value)
        if not isinstance(value, Held):
            if isinstance(self.typed.of[e.value], types.Complex):
                held_type = self.typed.of[e.value]
                number = self.context.make_complex(self.builder, held_type, value)
                return number.real if e.attr == "real" else number.imag
            return value
        if e.attr == "shape":
            return self.context.make_tuple(self.builder, t, value.lengths)
        size = self.context.get_constant(types.intp, 1)
        for n in value.lengths:
            size = self.builder.mul(size, n)
        return size

    def _all_or_any(self, e: ast.BoolOp) -> Any:
        """``and`` or ``or``: what comes later is not asked if it does not matter."""
        builder = self.builder
        settled = ir.Constant(ir.IntType(1), int(isinstance(e.op, ast.Or)))
        end = builder.append_basic_block("known")
        came: list[tuple[Any, Any]] = []
        for k, x in enumerate(e.values):
            value = self._truth(x)
            if k == len(e.values) - 1:
                came.append((value, builder.block))
                builder.branch(end)
                break
            came.append((settled, builder.block))
            following = builder.append_basic_block("more")
            pair = (end, following) if isinstance(e.op, ast.Or) else (following, end)
            builder.cbranch(value, *pair)
            builder.position_at_end(following)
        builder.position_at_end(end)
        made = builder.phi(ir.IntType(1))
        for value, block in came:
            made.add_incoming(value, block)
        return made

    def _choice(self, e: ast.IfExp) -> Any:
        builder, t = self.builder, self.typed.of[e]
        sides: list[Any] = []

        def side(x: ast.expr) -> None:
            value = self.context.cast(builder, self._value(x), self.typed.of[x], t)
            sides.append((value, builder.block))

        with builder.if_else(self._truth(e.test)) as (then, other):
            with then:
                side(e.body)
            with other:
                side(e.orelse)
        made = builder.phi(sides[0][0].type)
        for value, block in sides:
            made.add_incoming(value, block)
        return made

    # -- elements and windows

    def _item(self, e: ast.Subscript) -> Any:
        if isinstance(self.typed.of[e.value], types.BaseTuple):
            k = known_int(e.slice)
            assert k is not None
            if isinstance(e.value, ast.Attribute) and e.value.attr == "shape":
                array = self._value(e.value.value)
                return array.lengths[k]
            return self.builder.extract_value(self._value(e.value), k % len(self.typed.of[e.value]))
        array = self._value(e.value)
        parts = index_parts(e)
        if len(parts) == array.type.ndim and not any(isinstance(p, ast.Slice) for p in parts):
            place = element(self.context, self.builder, array, self._index(e))
            return load_item(self.context, self.builder, array.type, place)
        index = [self._part(part) for part in parts]
        return window(self.context, self.builder, array, index, self.typed.of[e])

    def _index(self, e: ast.Subscript) -> list[tuple[Any, Any, bool]]:
        return [self._place(part) for part in index_parts(e)]

    def _place(self, part: ast.expr) -> tuple[Any, Any, bool]:
        known = known_int(part)
        if known is not None:
            return None, known, False
        return self.typed.of[part], self._value(part), self._is_inner(part)

    def _is_inner(self, part: ast.expr) -> bool:
        """Whether an index is inside for certain, or such a one times the step that keeps it so."""
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
            return self._is_inner(part.left) and self._is_inner(part.right)
        return isinstance(part, ast.Name) and part.id in self.nest.inner

    def _part(self, part: ast.expr) -> Any:
        if not isinstance(part, ast.Slice):
            return self._place(part)
        ends = (part.lower, part.upper)
        return Part(*(None if x is None else self._place(x)[:2] for x in ends))


__all__ = ["NestFunction", "NestType", "write_call"]
