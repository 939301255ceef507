"""Calls of tapes from lifted code, whose arguments may be duals."""

from __future__ import annotations

from typing import Any

from fwdad.codegen.numpy_backend.source import defined, numpy_source
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.jitted_on_duals import push_on_duals
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call, on_call
from fwdad.eager.duals.explicit import explicit
from fwdad.errors import UntraceableError
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.tape import Tape
from fwdad.ir.primitives.identity import identity
from fwdad.ops import record_of
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.tangents.plain import plain


@on_call(Tape)
def call_tape_on_duals(tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a tape, pushed forward; else its operations run on duals, one by one."""
    flat = Flattened(args, kwargs, split=_split)  # of the caller's own lists, dicts and objects
    leaves = tape.leaves(flat.notes)
    if not is_active(leaves):
        return tape(*args, **kwargs)
    tape.check(flat.key, tape.leaves(flat.leaves))
    return first_that_can(
        "pushforward",
        tape,
        Candidate("tape", lambda: push_on_duals(_under_jit(tape), args, kwargs)),
        Candidate("duals", lambda: _run_on_duals(tape, leaves, flat.containers)),
    )


def _split(given: Any) -> tuple[Any, Any]:
    x = explicit(given)
    return plain(x), x


def _run_on_duals(tape: Tape, leaves: list[Any], containers: list[Any]) -> Any:
    """The result of the program of NumPy's functions that a tape is."""
    called = (getattr(op, "function", None) for op in tape.program.walk())
    own = next((f for f in called if f is not None and _is_ours(f)), None)
    if own is not None:  # its code is not lifted, so that what it keeps would lose its tangents
        raise UntraceableError(
            f"the tape of {tape.program.name} keeps values by {function_name(own)}, so it is "
            "differentiated as a whole, and here it is part of a function that cannot be traced, "
            "in reverse mode or in a derivative of a derivative: use forward mode, or let all of "
            "the outer function be traced (fwdad.explain says what is in the way)"
        )
    return tape.rebuild(call(_plain(tape), *leaves), containers)


def _is_ours(f: Any) -> bool:
    """Whether a function is one that only programs call."""
    module = getattr(f, "__module__", None) or type(f).__module__
    ours = module.startswith("fwdad.") and f is not identity
    return ours and find_rule(f) is None and not record_of(f).constant


def _under_jit(tape: Tape) -> Jitted[..., Any]:
    if "jit" not in tape.kept:
        tape.kept["jit"] = Jitted(tape, "numpy")
    held: Jitted[..., Any] = tape.kept["jit"]
    return held


def _plain(tape: Tape) -> Any:
    """The tape's program as a function of its inputs, whose source can be read."""
    if "function" not in tape.kept:
        source = numpy_source(tape.program)
        for name, f in source.namespace.items():  # on duals the dispatcher looks at results
            source.namespace[name] = getattr(f, "watches", f)
        tape.kept["function"] = defined(source)
    return tape.kept["function"]
