"""Calls of tapes from lifted code, whose arguments may be duals."""

from __future__ import annotations

from typing import Any

from fwdad.codegen.numpy_backend.source import defined, numpy_source
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.jitted_on_duals import push_on_duals
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call, on_call
from fwdad.eager.duals.explicit import with_explicit
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.tape import Tape
from fwdad.tangents.plain import plain


@on_call(Tape)
def call_tape_on_duals(tape: Tape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a tape, pushed forward; else its operations run on duals, one by one."""
    args = with_explicit(args)
    flat = Flattened(args, kwargs, split=lambda x: (plain(x), x))
    leaves = tape.leaves(flat.notes)
    if not is_active(leaves):
        return tape(*args, **kwargs)
    tape.check(flat.key, tape.leaves(flat.leaves))
    return first_that_can(
        "pushforward",
        tape,
        Candidate("tape", lambda: push_on_duals(_under_jit(tape), args, kwargs)),
        Candidate("duals", lambda: tape.rebuild(call(_plain(tape), *leaves), flat.containers)),
    )


def _under_jit(tape: Tape) -> Jitted[..., Any]:
    if "jit" not in tape.kept:
        tape.kept["jit"] = Jitted(tape, "numpy")
    held: Jitted[..., Any] = tape.kept["jit"]
    return held


def _plain(tape: Tape) -> Any:
    """The tape's program as a function of its inputs, whose source can be read."""
    if "function" not in tape.kept:
        tape.kept["function"] = defined(numpy_source(tape.program))
    return tape.kept["function"]
