"""``build_frule``, and the running of a function on duals: one chunk of tangents, one call."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad import errors
from fwdad.builder import (  # noqa: F401  (they install themselves)
    hooks,
    threads,
)
from fwdad.builder.calls import (  # noqa: F401  (they install themselves)
    builtins,
    c_functions,
    classes,
    copying,
    iteration,
    makers,
    matching,
    nan_medians,
    refusals,
    sparse,
    wrappers,
    writers,
)
from fwdad.builder.calls.apply import scalar
from fwdad.builder.calls.dispatch import call, call_protocol, python_inside
from fwdad.builder.calls.numpy_calls import call_ufunc, write_out
from fwdad.builder.duals import operators
from fwdad.builder.duals.array import Array
from fwdad.builder.duals.dual import OPAQUE, check_alive
from fwdad.builder.duals.explicit import settled
from fwdad.builder.duals.opaque import make_opaque
from fwdad.builder.duals.tags import isinstance_dual, split
from fwdad.builder.lifting.lift import LIFTED, lift
from fwdad.builder.memory.shadow import SHADOWED, find_shadow, forget
from fwdad.builder.memory.undo import UndoLog
from fwdad.builder.run import STATE, Tag
from fwdad.errors import (
    DualLeakError,
    FwdadError,
    MissingRuleError,
    UnsupportedTypeError,
    type_in_words,
)
from fwdad.put_back import EnteredTwice
from fwdad.rules.containers import rebuild
from fwdad.rules.contract import check_given, checked
from fwdad.rules.define import set_builder
from fwdad.rules.registry import Rule, find_rule, function_name
from fwdad.rules.reverse_rules import set_forward
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import lanes_of, map_tree, unzip
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.zero import ZERO, NoTangent

operators.PROTOCOL.update(
    {
        "ufunc": call_ufunc,
        "function": call_protocol,
        "inplace": lambda a, value, _name: write_out(a, value),
    }
)


class Run(EnteredTwice):
    """One run of a function on duals, from its first statement to its restored world.

    A context manager, ``with Run(n) as run, run:``. Inside it duals of ``tag`` are alive; at its
    end everything that lifted code wrote is put back.

    Parameters
    ----------
    n : int
        The number of lanes.
    eager : bool, default False
        Whether numbers have their tangents multiplied out (outside of other derivatives, whose
        duals might be among the coefficients).
    tag : Tag, optional
        The call's tag, if it is made already.

    Attributes
    ----------
    log : UndoLog
        What was written, with its content from before.
    memo : dict
        What functions with a cache have answered.
    generators : dict
        Random generators with their states before the first draw, by id.
    noting : list of dict
        The same since later moments: the begins of calls that are run again.
    outer : Run or None
        The run in which this one began.
    """

    def __init__(self, n: int, *, eager: bool = False, tag: Tag | None = None) -> None:
        self.tag = tag or Tag(n, eager=eager and STATE.run is None)
        self.log = UndoLog()
        self.memo: dict[Any, Any] = {}
        self.generators: dict[int, tuple[Any, Any]] = {}
        self.noting: list[dict[int, tuple[Any, Any]]] = []
        self.errors: list[FwdadError] = []
        self._found = STATE.run, STATE.hidden, errors.NOTE.sink
        self._ended = False
        self.outer: Any = STATE.run

    def begin(self) -> None:
        """Let this thread be in the run."""
        STATE.run = self
        errors.NOTE.sink = self.errors

    def end(self) -> None:
        """Put back whatever was written, and let the duals die."""
        if self._ended:
            return
        STATE.run, STATE.hidden, errors.NOTE.sink = self._found
        try:
            self.log.restore()  # what an interrupted end has put back is put back again
        finally:
            self.tag.alive = False
            forget(self.tag)
        self._ended = True

    def raise_swallowed(self) -> None:
        """Raise an error that user code has caught: its value would be that of another branch."""
        if self.errors:
            raise self.errors[0]

    def note_generator(self, o: Any) -> None:
        """Keep a random generator's state before its first draw, here and in calls under way."""
        tables = [self.generators, *self.noting]
        new = [table for table in tables if id(o) not in table]
        if new:
            state = generator_state(o)
            if state is not None:
                for table in new:
                    table[id(o)] = (o, state)
                if self.outer is not None:
                    self.outer.note_generator(o)

    def rewind_generators(self) -> None:
        """Set the generators back to where this run found them."""
        for o, state in self.generators.values():
            set_generator_state(o, state)

    def log_namespace(self, o: Any, name: str) -> None:
        """Keep an attribute of a class or module before it is written."""
        if isinstance(o, type):
            self.log.class_attribute(o, name)
        else:
            self.log.name(vars(o), name)

    def dual(self, x: Any, t: Any) -> Any:
        """A dual of this run; ``ZERO`` gives the value itself."""
        if not isinstance(t, Chunk):
            return x
        if isinstance(x, np.ndarray):
            return Array(x, t, self.tag)
        if OWN and type(plain(x)) in OWN:
            return make_opaque(x, t, self.tag, "a seed")
        return scalar(x, t, self.tag)

    def parts(self, y: Any) -> tuple[Any, Any]:
        """Primal and tangent of a leaf of the output, both free of memory that is put back."""
        if (SHADOWED or self.log.anything()) and isinstance(y, np.ndarray):
            raw = plain(y)
            if self.log.wrote(raw) or (SHADOWED and find_shadow(raw) is not None):
                y = settled(y)
        if not isinstance_dual(y) and type(y) not in OPAQUE:
            return y, ZERO
        check_alive(y.tag)
        return split(y, self.tag)


def generator_state(o: Any) -> Any:
    """A random generator's state, or None if it has none that can be set back."""
    if isinstance(o, np.random.Generator):
        return o.bit_generator.state
    if isinstance(o, np.random.RandomState):
        return o.get_state(legacy=False)
    if hasattr(o, "getstate") and hasattr(o, "setstate"):
        try:
            return o.getstate()
        except NotImplementedError:  # random.SystemRandom
            return None
    return None


def set_generator_state(o: Any, state: Any) -> None:
    """Set a random generator back."""
    if isinstance(o, np.random.Generator):
        o.bit_generator.state = state
    elif isinstance(o, np.random.RandomState):
        o.set_state(state)
    else:
        o.setstate(state)


def run_on_duals(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function through the dispatcher (inside a :class:`Run`)."""
    return call(f, *args, **kwargs)


def build_frule(f: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Make a forward rule for any function.

    Parameters
    ----------
    f : callable
        A function: its registered rule is used if it has one; else its source, recursing into
        whatever it calls; else, without source, it is run on duals as it is.

    Returns
    -------
    callable
        ``rule(primals, tangents, **options) -> (y, y_dot)``. Tangents are ``Chunk`` or ``ZERO``,
        in the structure of the primals.

    Raises
    ------
    UnsupportedTypeError
        If f is no function.
    MissingRuleError
        When the rule meets a function that has neither a rule nor a source.
    """
    if not callable(f):
        message = f"build_frule takes a function; {type_in_words(f)} came"
        raise UnsupportedTypeError(message)
    rule = find_rule(f)
    name = f"build_frule({function_name(f)})"

    def ruled(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        assert rule is not None
        n = check_given(name, primals, tangents)
        answer = rule.body(primals, tangents, **options)
        return answer if n is None else checked(rule, answer, primals, n, options)

    def built(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        n = check_given(name, primals, tangents)
        if n is None:
            return call(f, *primals, **options), ZERO
        with Run(n) as run, run:
            duals = [map_tree(run.dual, x, t) for x, t in zip(primals, tangents, strict=True)]
            y = call(f, *duals, **options)
            return unzip(run.parts, y)

    return built if rule is None else ruled


def _push_through_source(
    rule: Rule, primals: tuple[Any, ...], tangents: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Any]:
    """Forward mode of a function that has an rrule and no frule."""
    function = rule.function
    python = function if isinstance(function, types.FunctionType) else python_inside(function)
    source = None if python is None else lift(python)
    name = function_name(function)
    ask = f"{name} has an rrule, which is for reverse mode, and no frule: write one, "
    ask += f"@fwdad.frule({name}). Forward mode "
    if source is None:
        raise MissingRuleError(ask + "finds no Python source of it either")
    given = [x.copy() if k in rule.mutates else x for k, x in enumerate(primals)]
    try:
        with Run(lanes_of(tangents) or 1) as run, run:
            duals = [map_tree(run.dual, x, t) for x, t in zip(given, tangents, strict=True)]
            args, kwargs = rule.binder.unbind(tuple(duals), options)
            returned = source(*args, **kwargs)
            if rule.mutates:
                returned = (returned, *[duals[k] for k in rule.mutates])
            y, y_dot = unzip(run.parts, returned)
    except (MissingRuleError, DualLeakError) as error:
        message = f"{ask}goes through its Python source, and meets: {error.msg}"
        raise MissingRuleError(message) from error
    return y, rebuild(y_dot, lambda _, t: ZERO if t is NoTangent else t)


def _is_lifted(function: Any) -> bool:
    """Whether a function was made by code that is being differentiated: its rule is not asked."""
    return id(getattr(function, "__code__", None)) in LIFTED


set_builder(build_frule)
set_forward(_push_through_source, _is_lifted)
__all__ = ["Run", "build_frule", "plain", "run_on_duals"]
