"""``build_frule``, and runs of a function on duals: one chunk of tangents, one call."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fwdad import errors
from fwdad.core.recursion_limit import HigherLimit
from fwdad.core.reentrant_context import EnteredTwice
from fwdad.core.tracebacks import public
from fwdad.eager import (  # noqa: F401  (they install themselves)
    hooks,
    threads,
)
from fwdad.eager.calls import (  # noqa: F401  (they install themselves)
    builtins,
    c_functions,
    classes,
    copying,
    histograms,
    iteration,
    makers,
    nan_medians,
    outputs,
    refusals,
    sparse,
    twins,
    wrappers,
    writers,
)
from fwdad.eager.calls.apply import scalar
from fwdad.eager.calls.dispatch import call, python_inside
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.dual import OPAQUE, check_alive
from fwdad.eager.duals.explicit import settled
from fwdad.eager.duals.opaque import make_opaque
from fwdad.eager.duals.tags import isinstance_dual, split
from fwdad.eager.effects import Effects, Journal
from fwdad.eager.lifting.lift import lift
from fwdad.eager.memory import stale
from fwdad.eager.memory.commit import Plainly
from fwdad.eager.memory.shadow import SHADOWED, find_shadow, forget
from fwdad.eager.memory.undo import UndoLog
from fwdad.eager.run import STATE, Tag
from fwdad.errors import (
    DualLeakError,
    FwdadError,
    MissingRuleError,
    UnsupportedTypeError,
    UntraceableError,
    type_in_words,
)
from fwdad.rules.core import define
from fwdad.rules.core.containers import rebuild, walk
from fwdad.rules.core.contract import check_given, checked
from fwdad.rules.core.registry import Rule, find_rule, function_name
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import lanes_of, unzip
from fwdad.tangents.matching import map_tree
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.symbolic import recorder_of
from fwdad.tangents.zero import ZERO, NoTangent


class Run(EnteredTwice):
    """One run of a function on duals, and all that it does to the world outside.

    A context manager, ``with Run(n) as run, run:``, inside which duals of ``tag`` are alive. At its
    end the world is as a plain call leaves it, even if f raises; it is as before if fwdad refuses,
    or unless the run ``stays``.

    A run that ``repeats`` makes no effect that ``journal`` already has, and a ``silent`` one makes
    none; a ``tentative`` one raises instead, as another run follows. Nothing of these stays if they
    raise. What a ``lost`` one leaves outside is refused by the calls around it, too. One that
    ``watches`` sees what packages write, also where they can reach nothing active. ``keeps`` is
    filled with the world before the run; ``before`` and ``drawn`` are what world and generators
    are set to for it. ``generators``, by id, and ``noting``, for each call that will be run again,
    hold generators' states before the first draw. Writes into ``given``, the caller's arguments, do
    not stay. ``overwritten`` marks the bytes left by earlier calls that this run has written.
    """

    def __init__(
        self,
        n: int,
        *,
        eager: bool = False,
        tag: Tag | None = None,
        stays: bool = True,
        repeats: bool = False,
        silent: bool = False,
        tentative: bool = False,
        lost: bool = False,
        watches: bool = False,
        journal: Journal | None = None,
        keeps: UndoLog | None = None,
    ) -> None:
        self.stays = stays
        self._lost = lost
        self.watches = watches
        self.before: UndoLog | None = None
        self.drawn: dict[int, tuple[Any, Any]] = {}
        self._keeps = keeps
        self.effects = Effects(journal, repeats=repeats, silent=silent, tentative=tentative)
        self.tag = tag or Tag(n, eager=eager and STATE.run is None, call=call)
        self.log = UndoLog()
        self.memo: dict[Any, Any] = {}
        self.generators: dict[int, tuple[Any, Any]] = {}
        self.noting: list[dict[int, tuple[Any, Any]]] = []
        self.errors: list[FwdadError] = []
        self._found = STATE.run, STATE.hidden, errors.NOTE.sink
        self._ended = False
        self._limit = HigherLimit() if STATE.run is None else None
        self.outer: Any = STATE.run
        self.overwritten: dict[int, np.ndarray] = {}
        self.given: tuple[Any, ...] = ()

    def begin(self) -> None:
        """Let this thread enter the run."""
        if self._limit is not None:
            self._limit.begin()
        STATE.run = self
        errors.NOTE.sink = self.errors
        if self.before is not None:
            self.log.go_back_to(self.before)
            for owner in self.before.arrays():  # the first run may have left equal contents there
                if stale.ARRAYS and isinstance(owner, np.ndarray):
                    stale.overwrite(owner)
        for o, state in self.drawn.values():
            self.note_generator(o)
            set_generator_state(o, state)

    def __exit__(self, *details: object) -> None:
        kind = details[0] if details else None
        if isinstance(kind, type):
            unseen = self.effects.repeats or self.effects.silent or self.effects.tentative
            self.stays = not (issubclass(kind, FwdadError) or unseen)
        self.end()

    def end(self) -> None:
        """Leave the world as the run has to, and end the life of its duals."""
        if self._ended:
            return
        STATE.run, STATE.hidden, errors.NOTE.sink = self._found
        try:  # what an interrupted end has done is done again
            if self.stays:
                self.log.taken_from(self.given).restore()  # the caller's arguments never change
                self.log.purge((0, 0))
                if self._keeps is not None:
                    self._keeps.take(self.log)
                plainly = Plainly(self.tag, wholly=self._lost)
                plainly.log(self.log)
                plainly.value(self.effects.given)
                self._note_left(plainly.left)
            else:
                self.log.restore()
                self.rewind_generators()
        finally:
            self.tag.alive = False
            forget(self.tag)
            if self._limit is not None:
                self._limit.end()
        if self.outer is not None:
            self.log.hand_over(self.outer.log)
        self.log.clear()
        self._ended = True

    def _note_left(self, left: list[Any]) -> None:
        """Note values left outside that have carried derivatives, for later calls to refuse."""
        tag = self.tag
        order = 0 if self._lost else tag.order
        numbers = [x for x in left if type(plain(x)) in stale.NUMBER_TYPES]
        arrays = [plain(x) for x in left if isinstance(x, np.ndarray)]
        stale.overwritten(self.overwritten)
        if numbers or arrays:
            stale.leave(numbers, arrays, order)
        written = [s for s in list(SHADOWED.values()) if tag in s.lanes] if SHADOWED else []
        if written and tag.record is not None:
            stored = tag.record.stored_bytes([s.lanes[tag] for s in written])
            for shadow in written:
                stale.leave_bytes(shadow.owner, stored[shadow.lanes[tag]], order)
        else:
            for shadow in written:
                stale.leave_lanes(shadow, tag, self.log.before(shadow.owner), order)

    def writes(self, a: np.ndarray, index: Any = Ellipsis) -> None:
        """Keep an array's content before the array, or a part of it, is written."""
        self.log.array(a)
        if stale.ARRAYS:
            stale.overwrite(a, index)

    def effect(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make an effect outside of Python's objects, with plain arguments, once for all runs."""
        perform = f if self.outer is None else lambda *a, **k: self.outer.effect(f, a, k)
        return self.effects.make(f, perform, args, kwargs)

    def raise_swallowed(self) -> None:
        """Raise an error that user code has caught, since the value comes from the wrong branch."""
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
        """Return the generators to the states in which this run found them."""
        for o, state in self.generators.values():
            set_generator_state(o, state)

    def log_namespace(self, o: Any, name: str) -> None:
        """Keep an attribute of a class or module before it is written."""
        if isinstance(o, type):
            self.log.class_attribute(o, name)
        else:
            self.log.name(vars(o), name)

    def dual(self, x: Any, t: Any) -> Any:
        """A dual of this run, or x itself if t is no chunk (``ZERO``)."""
        if not isinstance(t, Chunk):
            return x
        if isinstance(x, np.ndarray):
            return Array(x, t, self.tag)
        if OWN and type(plain(x)) in OWN:
            return make_opaque(x, t, self.tag, "a seed")
        return scalar(x, t, self.tag)

    def parts(self, y: Any) -> tuple[Any, Any]:
        """Primal and tangent of a leaf of the output, both in memory of their own."""
        if stale.ARRAYS and type(y) is np.ndarray:
            stale.check_array(y)
        if stale.NUMBERS and type(y) in stale.NUMBER_TYPES:
            stale.check_number(y)
        if (SHADOWED or self.log.anything()) and isinstance(y, np.ndarray):
            raw = plain(y)
            if self.log.wrote(raw) or (SHADOWED and find_shadow(raw) is not None):
                y = settled(y)
        if not isinstance_dual(y) and type(y) not in OPAQUE:
            return y, ZERO
        check_alive(y.tag)
        return split(y, self.tag)


class Repeated:
    """A call that is made several times, each time in the world that the first one found."""

    def __init__(self) -> None:
        self._journal: Journal = []
        self._found = UndoLog()
        self._generators: dict[int, tuple[Any, Any]] = {}

    def first(self) -> Run:
        """The run whose effects stay."""
        run = Run(1, journal=self._journal, keeps=self._found)
        self._generators = run.generators
        return run

    def again(self) -> Run:
        """A later run, of which nothing stays."""
        run = Run(1, stays=False, repeats=True, journal=self._journal)
        run.before, run.drawn = self._found, self._generators
        return run


def unseen() -> Run:
    """A run in which f is only looked at: nothing stays, and no effects are made."""
    return Run(1, stays=False, silent=True)


def generator_state(o: Any) -> Any:
    """A random generator's state, or None if it has none that can be restored."""
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
    """Set a random generator's state."""
    if isinstance(o, np.random.Generator):
        o.bit_generator.state = state
    elif isinstance(o, np.random.RandomState):
        o.set_state(state)
    else:
        o.setstate(state)


def run_on_duals(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function through the dispatcher, inside a :class:`Run`."""
    return call(f, *args, **kwargs)


@public
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
        message = f"build_frule takes a function; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    rule = find_rule(f)
    name = f"build_frule({function_name(f)})"

    def ruled(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        assert rule is not None
        n = check_given(name, primals, tangents)
        result = rule.body(primals, tangents, **options)
        return result if n is None else checked(rule, result, primals, n, options)

    @public
    def built(primals: tuple[Any, ...], tangents: tuple[Any, ...], **options: Any) -> Any:
        n = check_given(name, primals, tangents)
        if n is None:
            return call(f, *primals, **options), ZERO
        if recorder_of(*(x for _, x in walk((primals, tangents)))) is not None:
            raise UntraceableError(f"{name} has no rule, and its source runs on duals alone")
        with Run(n) as run, run:
            duals = [map_tree(run.dual, x, t) for x, t in zip(primals, tangents, strict=True)]
            y = call(f, *duals, **options)
            return unzip(run.parts, y)

    return built if rule is None else ruled


def push_through_source(
    rule: Rule, primals: tuple[Any, ...], tangents: tuple[Any, ...], options: dict[str, Any]
) -> tuple[Any, Any]:
    """Forward mode through the source of a function that has an rrule but no frule."""
    function = rule.function
    python = function if isinstance(function, types.FunctionType) else python_inside(function)
    source = None if python is None else lift(python)
    name = function_name(function)
    ask = f"{name} has an rrule, which is for reverse mode only, and no frule. Write one with "
    ask += f"@fwdad.frule({name}): forward mode "
    if source is None:
        raise MissingRuleError(ask + "finds no Python source to differentiate instead")
    inputs = [x.copy() if k in rule.mutates else x for k, x in enumerate(primals)]
    try:
        with Run(lanes_of(tangents) or 1) as run, run:
            duals = [map_tree(run.dual, x, t) for x, t in zip(inputs, tangents, strict=True)]
            args, kwargs = rule.binder.unbind(tuple(duals), options)
            returned = source(*args, **kwargs)
            if rule.mutates:
                returned = (returned, *[duals[k] for k in rule.mutates])
            y, y_dot = unzip(run.parts, returned)
    except (MissingRuleError, DualLeakError) as error:
        message = f"{ask}differentiates its Python source instead, and that failed: {error.msg}"
        raise MissingRuleError(message) from error
    return y, rebuild(y_dot, lambda _, t: ZERO if t is NoTangent else t)


@public
def call_rule(
    function: Any, primals: Iterable[Any], tangents: Iterable[Any], **options: Any
) -> Any:
    """Use another function's rule inside a rule.

    Parameters
    ----------
    function : callable
        Any function: with a registered rule, or one that the builder can differentiate.
    primals, tangents : sequence
        Positional arguments and their tangents (``Chunk`` or ``ZERO``).
    **options
        Passed on.

    Returns
    -------
    tuple
        ``(y, y_dot)``.

    Raises
    ------
    MissingRuleError
        If the function has neither a rule nor a Python source.
    """
    if find_rule(function) is None:
        return build_frule(function)(tuple(primals), tuple(tangents), **options)
    return define.call_rule(function, primals, tangents, **options)


__all__ = ["Run", "build_frule", "plain", "run_on_duals", "unseen"]
