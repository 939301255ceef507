"""Reversal of calls: by partials of elementwise rules, by transposes, by recording, or opaque."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.lifting.rule_bodies import transposed, written_down
from fwdad.errors import DualLeakError, MissingRuleError, UntraceableError
from fwdad.ir.abstract_eval.rule_trials import check_lengths_of
from fwdad.ir.analysis.reassociation import free_products
from fwdad.ir.ops import Apply, Value, is_array
from fwdad.ir.primitives.identity import identity
from fwdad.ir.primitives.scatter_add import is_scatter
from fwdad.ir.primitives.stacks import pop, push, thin, top
from fwdad.ir.primitives.view_mirrors import give_back
from fwdad.ir.symbol import Symbol
from fwdad.ops import record_of
from fwdad.rules.core.adjoints import TRANSPOSES
from fwdad.rules.core.containers import pick, rebuild, walk
from fwdad.rules.core.contract import checked
from fwdad.rules.core.recording import RecordingTangent, pull_back
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.lanes import Lanes
from fwdad.tangents.scaling import scale_lanes
from fwdad.tangents.zero import ZERO, Undefined, Zero
from fwdad.transforms.activity import is_differentiable
from fwdad.transforms.forward.entries import place_entries, pulled_entries
from fwdad.transforms.forward.lanes import lanes_type, load_lanes, zero_lanes
from fwdad.transforms.forward.placing import place_lanes, pulled_places
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.forward.rules import nested_parts
from fwdad.transforms.partials import partials_of
from fwdad.transforms.reverse.bar_stacks import BarStacks
from fwdad.transforms.reverse.cotangents import Cotangents
from fwdad.transforms.reverse.lengths import equal_inside
from fwdad.transforms.reverse.memory import Memory
from fwdad.transforms.reverse.opaque_call import PullWhole
from fwdad.transforms.reverse.spaces import Spaces
from fwdad.transforms.reverse.structure import NotReversibleError
from fwdad.transforms.reverse.sweep import Sweep
from fwdad.transforms.reverse.view_cotangents import ViewCotangents


class Rules:
    """Reverses calls of functions."""

    def __init__(
        self,
        sweep: Sweep,
        spaces: Spaces,
        view_cotangents: ViewCotangents,
        cotangents: Cotangents,
        bar_stacks: BarStacks,
        memory: Memory,
    ) -> None:
        self.sweep = sweep
        self.recorder = sweep.recorder
        self.structure = sweep.structure
        self.activity = sweep.structure.activity
        self.spaces = spaces
        self.view_cotangents = view_cotangents
        self.cotangents = cotangents
        self.bar_stacks = bar_stacks
        self.memory = memory

    def reverse(self, op: Apply) -> None:
        """Reverse a call."""
        if self._written(op):
            return
        bars = [self.cotangents.take(v) if self.activity.is_active(v) else None for v in op.outputs]
        if all(b is None for b in bars) or not is_differentiable(op):
            return
        if not self.activity.any_active(op.operands()):
            return
        if len(op.outputs) == 1 and self._is_view(op):
            self.view_cotangents.give_back(op)
            return  # else the cotangent is a view of that of the argument
        self._by_function(op, bars)

    def _by_function(self, op: Apply, bars: list[Any]) -> None:
        """Add what the cotangents of the results contribute to those of the arguments."""
        function = ruled_function(op)
        if function is load_lanes:
            self._loaded_lanes(op, bars[0])
        elif function is place_lanes:
            self._placed(op, bars[0], pulled_places)
        elif function is place_entries:
            self._placed(op, bars[0], pulled_entries)
        elif record_of(op.function).gathers and isinstance(op.args[0], (list, tuple)):
            self._gathered(op, bars[0])
        elif _passes(function):
            self._passed(op, bars[0])
        else:
            with equal_inside(self.recorder, op):
                self._by_rule(op, np.multiply if function is scale_lanes else function, bars)

    def _written(self, op: Apply) -> bool:
        """Reverse a call that writes into its first argument; return whether it is one."""
        if op.function in (push, pop, top, thin):
            self.bar_stacks.reverse(op)
        elif is_scatter(op):
            self.memory.scatter_add(op)
        elif not any(self.activity.is_active(v) for v in op.writes()):
            return op.function is give_back
        elif op.function is not give_back:
            name = function_name(op.function)
            self.sweep.fail(f"{name} writes into an array that carries derivatives")
        elif self.activity.is_active(op.args[1]):
            self.view_cotangents.gave_back(op)
        return True

    def add_through(self, op: Apply, v: Value, x_bar: Any) -> None:
        """Add the contribution of one result of a call to the cotangents of the arguments."""
        self._by_function(op, [x_bar if out is v else None for out in op.outputs])

    def _is_view(self, op: Apply) -> bool:
        (v,) = op.outputs
        return is_array(v) and self.structure.is_memory(v) and self.structure.roots(v) != {v}

    def _passed(self, op: Apply, y_bar: Any) -> None:
        self.cotangents.add(op.args[0], y_bar)
        if op.function is complex and len(op.args) == 2:
            self.cotangents.add(op.args[1], y_bar * -1j)

    def _gathered(self, op: Apply, y_bar: Any) -> None:
        (v,) = op.outputs
        whole = self.spaces.whole(v, y_bar)
        for at, part in nested_parts(op.args[0], v.type.ndim):
            if self.activity.is_active(part):
                taken = self.recorder.load(whole, at)
                if taken.is_array:
                    taken = self.recorder.apply(np.ndarray.copy, (taken,), {})
                self.cotangents.add(part, taken)

    def _loaded_lanes(self, op: Apply, y_bar: Any) -> None:
        lanes, *index = op.args
        target = self.cotangents.in_memory(lanes)
        at = (slice(None), *self.sweep.symbols(tuple(index)))
        self.recorder.update(target, at, operator.add, y_bar)

    def _placed(self, op: Apply, y_bar: Any, pulled: Callable[..., list[Any]]) -> None:
        (v,) = op.outputs
        whole = self.spaces.as_symbol(v, self.spaces.whole(v, y_bar))
        bars = pulled(self.recorder, op.args, whole)
        for d, d_bar in zip(op.args[-len(bars) :], bars, strict=True):
            if self.activity.is_active(d):
                self.cotangents.add(d, d_bar)

    # -- rules

    def _by_rule(self, op: Apply, function: Any, bars: list[Any]) -> None:
        rule = find_rule(function)
        if rule is None or function in RRULES:
            self._by_itself(op, rule, bars)
            return
        if rule.kind == "elementwise" and len(op.outputs) == 1:
            attempt: Any = self._elementwise
        elif function is np.sum and len(op.args) == 1 and not op.kwargs and is_array(op.args[0]):
            self.cotangents.add(op.args[0], bars[0])
            return
        elif rule.kind in ("linear", "multilinear") or self._is_transposed(op, function, rule):
            attempt = self._linear
        else:
            attempt = self._recorded
        if attempt != self._elementwise:
            bars = [
                b if b is None else self.spaces.as_symbol(v, self.spaces.whole(v, b))
                for v, b in zip(op.outputs, bars, strict=True)
            ]
        self._only_primals(op, rule)
        mark = len(self.recorder.block.ops), self.recorder.lengths.mark()
        try:
            contributions = attempt(op, function, rule, bars)
        except (MissingRuleError, DualLeakError, NotReversibleError):
            raise
        except Exception as error:  # noqa: BLE001  (reported, if it is no refusal)
            del self.recorder.block.ops[mark[0] :]
            self.recorder.lengths.forget(mark[1])
            self._whole(op, bars, error)
            return
        free_products(self.recorder.block.ops[mark[0] :])
        for v, x_bar in contributions:
            self.cotangents.add(v, x_bar)

    def _by_itself(self, op: Apply, rule: Any, bars: list[Any]) -> None:
        """Reverse a function without an frule, or with an rrule, as an opaque call."""
        if rule is not None:
            self._only_primals(op, rule)
        elif record_of(op.function).own:  # the builder does not look into these
            self.sweep.fail(f"{op.function.__name__} of a value that carries a derivative")
        self._whole(op, bars, "an rrule" if rule else "no frule")

    def _only_primals(self, op: Apply, rule: Any) -> None:
        """Refuse an active option of a rule, which a recorded run can handle."""
        if rule.kind in ("elementwise", "constant") or not op.kwargs:
            return
        _, options = rule.binder.bind(op.args, op.kwargs)
        for name, x in options.items():
            if self.activity.any_active((x,)):
                of = function_name(op.function)
                self.sweep.fail(
                    f"the rule of {of} takes `{name}` as an option; it carries a derivative"
                )

    def _elementwise(self, op: Apply, _function: Any, rule: Any, bars: list[Any]) -> list[Any]:
        (y,) = op.outputs
        (y_bar,) = bars
        args, options = rule.of_call(op.args, op.kwargs)
        others = [a for a in args if not isinstance(a, Value)]
        if self.activity.any_active([others, *options.values()]):
            self.sweep.fail(
                f"{function_name(op.function)} of a list of values that carry derivatives"
            )
        contributions = []
        for a, d in partials_of(op, rule, self.sweep.symbols, self.activity.is_active).items():
            shape = tuple(getattr(d, "shape", ()))
            # a partial that is another argument may be shorter than y, as may this one
            if self.spaces.shape(a) != self.spaces.shape(y) or (
                is_array(y) and shape not in ((), self.spaces.shape(y))
            ):
                y_bar = self.spaces.whole(y, y_bar)
            contributions.append((a, self.spaces.scaled(d, y_bar)))
        return contributions

    def _is_transposed(self, op: Apply, function: Any, rule: Any) -> bool:
        """Whether a function has transposes for all its active arguments."""
        if function not in TRANSPOSES or len(op.outputs) != 1:
            return False
        try:
            values, options = rule.binder.bind(op.args, op.kwargs)
        except TypeError:
            return False
        active = {k for k, value in enumerate(values) if self.activity.any_active(value)}
        return active <= TRANSPOSES[function].keys() and not self.activity.any_active(options)

    def _linear(self, op: Apply, function: Any, rule: Any, bars: list[Any]) -> list[Any]:
        (y_bar,) = bars
        bound, options = rule.binder.bind(
            self.sweep.symbols(op.args), self.sweep.symbols(op.kwargs)
        )
        values, _ = rule.binder.bind(op.args, op.kwargs)
        if function not in TRANSPOSES:
            return self._recorded(op, function, rule, bars)
        contributions: list[Any] = []
        for k, value in enumerate(values):
            if not self.activity.any_active(value):
                continue
            active = {path: v for path, v in walk(value) if self.activity.is_active(v)}
            spaces = rebuild(bound[k], self._spaced(active))
            if k not in TRANSPOSES[function]:
                message = f"{function_name(function)} has no transpose for its argument {k}"
                raise UntraceableError(message)
            body = transposed(function, TRANSPOSES[function][k])
            result = body(y_bar, *bound[:k], spaces, *bound[k + 1 :], **options)
            contributions.extend((v, pick(result, path)) for path, v in active.items())
        return contributions

    def _spaced(self, active: dict[Any, Value]) -> Any:
        """Replaces the active parts of a transpose's linear argument by spaces."""
        return lambda path, s: self.spaces.space(active[path]) if path in active else s

    def _recorded(self, op: Apply, _function: Any, rule: Any, bars: list[Any]) -> list[Any]:
        """Reverse a rule by recording what it does to tangents, and reversing the record."""
        inputs: list[tuple[Value, RecordingTangent]] = []

        def tangent(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(tangent(item) for item in x)
            if isinstance(x, dict):
                return {key: tangent(item) for key, item in x.items()}
            if not self.activity.is_active(x):
                return ZERO
            lanes = self.recorder.apply_typed(
                zero_lanes, (1, Symbol(x, self.recorder)), lanes_type(x.type, 1)
            )
            chunk = Chunk.of(1, self.spaces.shape(x), {Lanes(lanes): None if is_array(x) else 1.0})
            inputs.append((x, RecordingTangent(chunk)))
            return inputs[-1][1]

        bound, options = rule.binder.bind(
            self.sweep.symbols(op.args), self.sweep.symbols(op.kwargs)
        )
        dots = tuple(tangent(a) for a in op.args)
        named = {key: tangent(a) for key, a in op.kwargs.items()}
        given, rest = rule.binder.bind(dots, named)
        if any(isinstance(t, RecordingTangent) for _, t in walk(list(rest.values()))):
            message = f"the frule of {function_name(op.function)} has no tangent for an option"
            raise MissingRuleError(message, op.location)
        y, y_dot = self._body(op, rule, (bound, given, options))
        values = list(y) if isinstance(y, (tuple, list)) else [y]
        parts = list(y_dot) if isinstance(y_dot, (tuple, list)) else [y_dot] * len(values)
        parts = [t for p, t in zip(values, parts, strict=True) if p is not None]
        outputs = []
        for t, y_bar in zip(parts, bars, strict=True):
            if isinstance(t, Undefined) and y_bar is not None:
                t.use()
            if isinstance(t, RecordingTangent) and y_bar is not None:
                outputs.append((t, y_bar))
            elif isinstance(t, Chunk) and not isinstance(t, RecordingTangent):
                message = "a rule returns a tangent that does not come from its arguments'"
                raise UntraceableError(message)
        x_bars = pull_back(outputs, transposed)
        return [(v, x_bars[id(t)]) for v, t in inputs if id(t) in x_bars]

    def _body(self, op: Apply, rule: Any, call: tuple[Any, Any, Any]) -> tuple[Any, Any]:
        """What the body of a rule returns, after it has been checked."""
        bound, given, options = call
        given = tuple(t if isinstance(t, (Chunk, Zero, list, tuple, dict)) else ZERO for t in given)
        # a rule computes the value, too; a user's rule may write into it then
        self.recorder.answered = None if rule.of_user else op
        try:
            result = written_down(rule, rule.body)(bound, given, **options)
        finally:
            self.recorder.answered = None
        y, y_dot = checked(rule, result, bound, 1)
        if rule.of_user:
            check_lengths_of(self.recorder, rule, y, y_dot, op.location)
        return y, y_dot

    def _whole(self, op: Apply, bars: list[Any], reason: Exception | str) -> None:
        """Reverse a rule that cannot be recorded as one opaque call."""
        active: list[Value] = []

        def note(x: Any) -> Any:
            if isinstance(x, Value) and self.activity.is_active(x):
                active.append(x)
                return True
            if isinstance(x, dict):
                return {key: note(item) for key, item in x.items()}
            return type(x)(note(item) for item in x) if isinstance(x, (list, tuple)) else False

        marks = (note(op.args), note(op.kwargs))
        bars = [
            b if b is None else self.spaces.whole(v, b)
            for v, b in zip(op.outputs, bars, strict=True)
        ]
        given = [b is not None for b in bars]
        types = [v.type for v in active]
        pull = PullWhole(ruled_function(op), marks, given, types)
        pull.because(reason, op.location)
        x_bars = [Value(t) for t in types]
        args = (
            self.recorder.operand(self.sweep.symbols(op.args)),
            tuple(self.recorder.operand(b) for b in bars if b is not None),
        )
        kwargs = {key: self.recorder.operand(self.sweep.symbols(a)) for key, a in op.kwargs.items()}
        self.recorder.emit(Apply(pull, args, kwargs, outputs=tuple(x_bars)))
        for v, x_bar in zip(active, x_bars, strict=True):
            self.cotangents.add(v, Symbol(x_bar, self.recorder))


def _passes(function: Any) -> bool:
    """Whether a call returns its argument, as it is or in another type."""
    passes = record_of(function).passes or _is_number_class(function)
    return passes or function is identity


def _is_number_class(f: Any) -> bool:
    return isinstance(f, type) and issubclass(f, (np.floating, np.complexfloating))
