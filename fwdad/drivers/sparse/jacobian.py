"""Sparse Jacobians: what ``jacobian(f, x, sparse=...)`` and its relatives return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.core.progress import Progress
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.sparse.checks import Checked, FirstTime, check_entries
from fwdad.drivers.sparse.compressed import value_and_entries
from fwdad.drivers.sparse.detection import Question, lasting_pattern, pattern_of
from fwdad.drivers.sparse.plans import Plan, plan_for
from fwdad.drivers.sparse_options import SPARSE_JACOBIAN
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.drivers.tape_cache import jitted_of, tape_or_else
from fwdad.errors import UnsupportedTypeError, UntraceableError
from fwdad.evaluation.arguments import argument_numbers, arguments_of, check_chunk
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.assembled import Assembled
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import flatten
from fwdad.ir.symbol import UNBOUND, Symbol

_OPTIONS = {"has_aux": False, "outputs": "returned", "chunk": "auto", "holomorphic": False}


@dataclass(eq=False)
class Asked:
    """A sparse derivative that is asked for: what ``evaluate`` returns of f with these options.

    It is the Jacobian of f, or of another function ``of``, its gradient; ``alone`` without the
    value. ``plain`` is that function without ``jit``. With ``progress`` a bar counts the directions
    that have been computed; a tape computes all in one call.
    """

    evaluate: Any
    f: Function
    options: dict[str, Any]
    progress: bool
    alone: bool
    of: Any = None
    plain: Any = None

    @property
    def is_hessian(self) -> bool:
        """Whether it is the Jacobian of a gradient."""
        return self.of is not None

    @property
    def differentiated(self) -> Any:
        """The function whose Jacobian it is."""
        return self.f if self.of is None else self.of

    @property
    def without_jit(self) -> Any:
        """The same without ``jit``."""
        if self.plain is not None:
            return self.plain
        return self.f.__wrapped__ if type(self.f) is Jitted else self.f

    def result(self, found: Any) -> Any:
        """What is returned of value, matrix and aux."""
        if not self.alone:
            return found
        return found[1:] if len(found) > 2 else found[1]

    def matrix(self, result: Any) -> Any:
        """The matrix in a result."""
        if not self.alone:
            return result[1]
        return result[0] if isinstance(result, tuple) else result


def sparse_jacobian(
    asked: Asked, x: Any, argnums: Argnums, args: Any, kwargs: dict[str, Any] | None
) -> Any:
    """A sparse derivative, by the tape of a function under ``jit``, or at once."""
    f, options = asked.f, asked.options
    check_chunk(options["chunk"])
    bar = Progress(shown=asked.progress, of="hessian" if asked.is_hessian else "jacobian")
    arguments, _ = arguments_of(f, x, args, kwargs, argnums)
    argnums = argument_numbers(argnums)
    at: tuple[Any, Any] = arguments.args, arguments.kwargs
    plan = _plan(asked, argnums, *at)
    given = {name: options.get(name, default) for name, default in _OPTIONS.items()}

    def at_once() -> Any:
        of = asked.differentiated
        how = {**given, "plan": plan, "progress": bar}
        y, data, *aux = value_and_entries(of, argnums, *at, how)
        return asked.result((y, plan.assembly(data), *aux))

    def by_tape(sparse: Any = plan, otherwise: Any = at_once) -> Any:
        unchecked = {**options, "sparse": sparse, "check": False}
        return tape_or_else(asked.evaluate, f, argnums, *at, unchecked, otherwise)

    def by_own_tape() -> Any:
        # one that finds the pattern and guards what that depends on, so that the next call asks it
        return by_tape(True, by_tape) if options["sparse"] is True else by_tape()

    run = at_once if jitted_of(f) is None else by_own_tape
    with bar:
        found = first_that_can(SPARSE_JACOBIAN, f, Candidate(plan.in_words, run))
    checked = Checked(plan, f, argnums, given)
    if options["check"] and not checked:
        given |= {"argnums": argnums, "args": at[0][1:], "kwargs": at[1]}
        check_entries(asked.without_jit, plan, asked.matrix(found), at[0], given)
        checked.note()
    return found


def _plan(asked: Asked, argnums: Any, args: Any, kwargs: Any) -> Plan:
    """The plan, for a pattern that is given, or found now."""
    options, sparse = asked.options, asked.options["sparse"]
    has_aux, outputs = options.get("has_aux", False), options.get("outputs", "returned")
    if sparse is True:
        if outputs != "returned":
            raise UnsupportedTypeError(
                f"outputs={outputs!r}: sparse=True finds the pattern of what f returns: pass a "
                "pattern"
            )
        of = {"hessian": asked.is_hessian, "has_aux": has_aux}
        sparse = pattern_of(Question(asked.f, argnums, args, kwargs, **of))
    return plan_for(sparse, options.get("mode", "symmetric"), options["format"])


@builtin(sparse_jacobian)
def _traced(tracer: Tracer, asked: Asked, x: Any, argnums: Any, args: Any, kwargs: Any) -> Any:
    at = {"argnums": argnums, "args": args, "kwargs": kwargs, **asked.options}
    if asked.is_hessian:
        at = {"mode": "symmetric", "hessian_of": asked.f} | at
    return asked.result(traced_sparse_jacobian(tracer, asked.differentiated, x, **at))


def traced_sparse_jacobian(
    tracer: Tracer,
    f: Any,
    x: Any,
    *,
    sparse: Any,
    format: str = "csr",  # noqa: A002  (SciPy's name)
    check: bool = True,
    mode: str = "auto",
    argnums: Any = 0,
    args: Any = (),
    kwargs: Any = None,
    hessian_of: Any = None,
    **options: Any,
) -> Any:
    """The value, the sparse matrix, and aux if there is one, in a trace."""
    args = (x, *args) if isinstance(args, tuple) else (x, args)
    if sparse is True:
        of = f if hessian_of is None else hessian_of
        if mentions_symbols(of):
            raise UntraceableError(
                "sparse=True finds the pattern of a function from outside, and this one is made in "
                "the traced function: pass a pattern",
                tracer.position.location(),
            )
        examples = [_example(tracer, a) for a in (args, kwargs or {})]
        asked = {"hessian": hessian_of is not None, "has_aux": options.get("has_aux", False)}
        made_up = any(found for _, found in examples)
        question = Question(of, argnums, *(made for made, _ in examples), **asked)
        sparse, places = lasting_pattern(question, made_up)
        for path, held in places:
            tracer.outside.guard(path, held)
    plan = plan_for(sparse, mode, format)
    given = {name: options.get(name, default) for name, default in _OPTIONS.items()}
    call = f, argnums, args, kwargs or {}
    y, data, *aux = tracer.call(value_and_entries, (*call, {**given, "plan": plan}), {})
    make: Any = plan.assembly
    if check:
        make = FirstTime(plan)
        given |= {"argnums": argnums, "args": args[1:], "kwargs": kwargs or {}}
        make.write(tracer, f, data, args, given)
    return (y, Assembled(data, make, plan.shape), *aux)


def _example(tracer: Tracer, x: Any) -> tuple[Any, bool]:
    """Arguments with values in place of symbols, and whether ints among these are made up.

    Of floats it is ones; ints are those of now, and guarded, as lengths are.
    """
    leaves, tree = flatten(x)
    lengths, examples = tracer.recorder.lengths, tracer.recorder.examples
    made, made_up = [], False
    for leaf in leaves:
        if type(leaf) is not Symbol:
            made.append(leaf)
            continue
        if leaf.dtype.kind not in "fc":
            known = examples.forced(leaf.value, of_any_size=True)
            if known is not UNBOUND:
                made.append(known)
                continue
            made_up = True
        if leaf.is_array:
            shape = tuple(lengths.known_length(leaf, k) for k in range(leaf.type.ndim))
            made.append(np.ones(shape, leaf.dtype))
        else:
            made.append(leaf.dtype.type(1).item())
    return tree(made), made_up
