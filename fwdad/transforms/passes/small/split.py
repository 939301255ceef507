"""Rewriting of a program with a number for each element of the chosen arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    Value,
    is_array,
    map_values,
    values_in,
    walk,
)
from fwdad.ir.rewrite import Mapping, give_name
from fwdad.ir.types import ArrayType, Number, Type
from fwdad.transforms.passes.small.choose import Choice
from fwdad.transforms.passes.small.elements import (
    Elements,
    cast,
    each,
    element_function,
    elements_of,
    expansion,
    number_of,
    places,
    places_at,
    size,
    stored_elements,
    taken,
)
from fwdad.transforms.passes.small.unroll import unroll


@dataclass
class Split:
    """How many arrays have become numbers, and how many of them in loops."""

    arrays: int
    in_loops: int

    def __bool__(self) -> bool:
        return self.arrays > 0


def split_arrays(program: Program) -> Split:
    """Replace small arrays by numbers where every use of them is known.

    Results keep every bit, except for sums in matrix products (a few units in the last place). An
    array that is returned to the caller is a new one.
    """
    unroll(program, lambda p: Choice(p).chosen)
    choice = Choice(program)
    if choice.chosen:
        _Splitter(choice.chosen).program(program)
    return Split(len(choice.chosen), choice.in_loops())


class _Splitter:
    """Walks a program in execution order, with the contents of the chosen arrays."""

    def __init__(self, chosen: set[Value]) -> None:
        self._chosen = chosen
        self._held: dict[Value, Elements] = {}  # what each array holds now, flat
        self._views: dict[Value, tuple[Value, Any]] = {}  # whose elements, and which
        self._mapping: Mapping = {}
        self._out: list[Op] = []
        self._op: Op | None = None

    def program(self, program: Program) -> None:
        """Rewrite a program."""
        self._block(program.block)
        new_values: dict[Value, Value] = {}  # the same array twice is one array
        self._out = program.block.ops

        def result(v: Value) -> Operand:
            if v in self._chosen and v not in new_values:
                new_values[v] = self._array(v)
            return new_values.get(v, self._mapping.get(v, v))

        program.block.results = [map_values(result, r) for r in program.block.results]
        give_name(self._mapping)

    def _block(self, block: Block) -> None:
        outer, self._out = self._out, []
        for op in block.ops:
            self._op = op
            self._rewrite(op)
        block.ops, self._out = self._out, outer

    def _rewrite(self, op: Op) -> None:
        op.replace(lambda v: self._mapping.get(v, v))
        if isinstance(op, Loop):
            self._loop(op)
        elif isinstance(op, Branch):
            self._branch(op)
        elif isinstance(op, Load) and (op.array in self._chosen or op.outputs[0] in self._chosen):
            self._load(op)
        elif isinstance(op, (Store, Update)) and op.array in self._chosen:
            self._store(op)
        elif isinstance(op, Apply) and self._is_expanded(op):
            self._expand(op)
        else:
            op.replace(lambda v: self._array(v) if v in self._chosen else v)
            self._out.append(op)

    # -- writing

    def apply(self, function: Callable[..., Any], args: tuple[Operand, ...], t: Type) -> Value:
        """Write a call."""
        value = Value(t)
        self._out.append(Apply(function, args, outputs=(value,), location=self._place()))
        return value

    def load(self, array: Value, index: tuple[Operand, ...]) -> Value:
        """Write the load of an element."""
        value = Value(number_of(array))
        self._out.append(Load(array, index, view=False, outputs=(value,), location=self._place()))
        return value

    def elements(self, operand: Operand) -> Elements:
        """The elements of an array, a number, or nested lists of these."""
        if isinstance(operand, (list, tuple)):
            return np.stack([self.elements(item) for item in operand])
        if not is_array(operand):
            return elements_of([self._mapping.get(operand, operand)
                                if isinstance(operand, Value) else operand], ())  # fmt: skip
        if operand in self._chosen:
            root, at = self._views[operand]
            return self._held[root][at]
        shape = operand.type.shape
        return elements_of([self.load(operand, k) for k in np.ndindex(shape)], shape)

    def _place(self) -> Any:
        return self._op.location if self._op is not None else None

    def _array(self, v: Value) -> Value:
        """A new array with the contents of a chosen one."""
        elements = self.elements(v)
        value = self.apply(
            np.array, (list(elements.ravel()),), ArrayType(v.type.dtype, (elements.size,))
        )
        if elements.ndim > 1:
            value = self.apply(np.reshape, (value, elements.shape), v.type)
        value.name = v.name
        return value

    def _hold(self, v: Value, found: Elements) -> None:
        """Set the elements of an array."""
        self._views[v] = (v, places(v))
        self._held[v] = elements_of(list(found.ravel()), (found.size,))
        for k, x in enumerate(self._held[v]):
            if isinstance(x, Value) and x.name is None and v.name is not None:
                x.name = f"{v.name}_{k}"

    # -- operations

    def _is_expanded(self, op: Apply) -> bool:
        if any(v in self._chosen for v in op.outputs):
            return True
        held = any(v in self._chosen for v in values_in(op.operands()))
        return held and not any(map(is_array, op.outputs)) and expansion(op) is not None

    def _expand(self, op: Apply) -> None:
        (out,) = op.outputs
        expand = expansion(op)
        assert expand is not None
        array = np.asarray(expand(self), object)
        if is_array(out):
            self._hold(out, array)
        else:
            self._mapping[out] = cast(self, array[()], out.type.dtype)

    def _load(self, op: Load) -> None:
        (out,) = op.outputs
        if op.array not in self._chosen:
            indices = taken(op)
            loaded = [self.load(op.array, index) for index in indices.ravel()]
            self._hold(out, elements_of(loaded, indices.shape))
            return
        at = places_at(op.array, op.index)
        root, own = self._views[op.array]
        loaded_places = own.ravel()[at]
        if not is_array(out):
            self._mapping[out] = self._held[root][loaded_places]
        elif op.view:
            self._views[out] = (root, loaded_places)
        else:
            self._hold(out, self._held[root][loaded_places])

    def _store(self, op: Store | Update) -> None:
        root, own = self._views[op.array]
        at = own.ravel()[places_at(op.array, op.index)]
        dtype = op.array.type.dtype
        new = stored_elements(self.elements(op.value), np.shape(at))
        if isinstance(op, Update):
            old = np.asarray(self._held[root][at], object)
            scalar_function = element_function(op.function, (op.array, op.value))
            assert scalar_function is not None
            function, count = scalar_function
            result = _common(op.array, op.value)
            new = each(self, function, [old, new][:count], result)
        copy = self._held[root].copy()
        for k in np.ndindex(np.shape(at)):
            copy[np.asarray(at)[k]] = cast(self, new[k], dtype)
        self._held[root] = copy

    # -- control

    def _branch(self, op: Branch) -> None:
        before = dict(self._held)
        after = []
        new_results: list[list[Operand]] = []
        unsplit = [k for k, v in enumerate(op.outputs) if v not in self._chosen]
        split = [v for v in op.outputs if v in self._chosen]
        for side in op.blocks():
            self._held = dict(before)
            results = list(side.results)
            self._block(side)
            outer, self._out = self._out, side.ops
            self._op = op
            new_of_side = [self._plain(results[k]) for k in unsplit]
            for v, r in zip(op.outputs, results, strict=True):
                if v in self._chosen:
                    new_of_side.extend(self._elements_or_missing(r, v))
            new_results.append(new_of_side)
            after.append(dict(self._held))
            self._out = outer
        self._held = dict(before)
        outputs = [op.outputs[k] for k in unsplit]
        for v in split:
            outputs.extend(self._new(v))
        for root, old in before.items():
            changed = [k for k, x in enumerate(old) if any(h[root][k] is not x for h in after)]
            if changed:
                self._held[root] = old.copy()
            for k in changed:
                new = Value(number_of(root), root.name and f"{root.name}_{k}")
                outputs.append(new)
                self._held[root][k] = new
                for results, held in zip(new_results, after, strict=True):
                    results.append(held[root][k])
        op.outputs = tuple(outputs)
        for side, results in zip(op.blocks(), new_results, strict=True):
            side.results = results
        self._out.append(op)

    def _loop(self, op: Loop) -> None:
        carried, outputs, initial = op.carried, op.outputs, op.initial
        heads = op.body.params[: len(op.body.params) - len(carried)]
        results = list(op.body.results)
        unsplit = [k for k, p in enumerate(carried) if p not in self._chosen]
        split = [k for k, p in enumerate(carried) if p in self._chosen]
        written = self._written_in(op)
        params = [carried[k] for k in unsplit]
        op.initial = [self._plain(initial[k]) for k in unsplit]
        for k in split:
            op.initial.extend(self._elements_or_missing(initial[k], carried[k]))
            params.extend(self._new(carried[k]))
        for root in written:
            op.initial.extend(self._held[root])
            params.extend(self._new(root))
        op.body.params = [*heads, *params]
        if op.test is not None:
            self._block(op.test)
            op.test.results = [self._plain(r) for r in op.test.results]
        self._block(op.body)
        outer, self._out = self._out, op.body.ops
        self._op = op
        op.body.results = [self._plain(results[k]) for k in unsplit]
        for k in split:
            op.body.results.extend(self._elements_or_missing(results[k], carried[k]))
        for root in written:
            op.body.results.extend(self._held[root])
        op.body.results.extend(self._plain(r) for r in results[len(carried) :])
        self._out = outer
        op.outputs = tuple([outputs[k] for k in unsplit])
        for v in (*(outputs[k] for k in split), *written):
            op.outputs += tuple(self._new(v))
        self._out.append(op)

    def _written_in(self, op: Loop) -> list[Value]:
        """The arrays from before a loop that the loop writes."""
        values: dict[Value, None] = {}
        views = dict(self._views)
        for block in op.blocks():
            for inner in walk(block):
                if isinstance(inner, Load) and inner.view and inner.array in views:
                    views[inner.outputs[0]] = views[inner.array]
                for v in inner.writes():
                    if v in views:
                        values[views[v][0]] = None
        return list(values)

    def _new(self, v: Value) -> list[Value]:
        """New numbers for the elements of an array that a block returns."""
        made = [Value(number_of(v)) for _ in range(size(v))]
        self._hold(v, elements_of(made, (len(made),)))
        return made

    def _plain(self, operand: Operand) -> Operand:
        """A result that is not split, as it is passed on."""

        def found(v: Value) -> Operand:
            return self._array(v) if v in self._chosen else self._mapping.get(v, v)

        return map_values(found, operand)

    def _elements_or_missing(self, operand: Operand, v: Value) -> list[Operand]:
        if isinstance(operand, Missing):
            return [Missing(number_of(v))] * size(v)
        return list(self.elements(operand).ravel())


def _common(array: Value, value: Operand) -> np.dtype[Any]:
    """The dtype that an element and a stored value have in common."""
    kinds: list[Any] = []
    for v in values_in(value):
        weak = isinstance(v.type, Number) and v.type.python
        kinds.append({"b": True, "i": 1, "f": 1.0, "c": 1j}[v.type.dtype.kind] if weak
                     else v.type.dtype)  # fmt: skip
    if not kinds and not isinstance(value, Value):
        kinds = list(np.ravel(np.asarray(value, object)))
    return np.result_type(array.type.dtype, *kinds)
