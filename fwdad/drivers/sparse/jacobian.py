"""Sparse Jacobians: what ``jacobian(f, x, sparse=...)`` and its relatives return."""

from __future__ import annotations

from typing import Any

from fwdad.drivers.sparse.checks import Checked, FirstTime, check_entries
from fwdad.drivers.sparse.compressed import value_and_entries
from fwdad.drivers.sparse.detection import Question, pattern_of
from fwdad.drivers.sparse.plans import plan_for
from fwdad.drivers.tape_cache import jitted_of, tape_or_else
from fwdad.errors import UnsupportedTypeError, UntraceableError
from fwdad.evaluation.arguments import argument_numbers, arguments_of, check_chunk
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.assembled import Assembled
from fwdad.frontend.syntax.tracer import Tracer


def value_and_sparse_jacobian(
    f: Function,
    x: Any,
    *,
    sparse: Any,
    format: str,  # noqa: A002  (SciPy's name)
    check: bool,
    way: str,
    chunk: Any,
    argnums: Argnums,
    args: Any,
    kwargs: dict[str, Any] | None,
    has_aux: bool,
    outputs: Any,
    holomorphic: bool,
    plain: tuple[Any, Function] | None = None,
) -> Any:
    """The value of a function, its Jacobian as a sparse array, and aux if there is one.

    ``way`` is the mode, or "symmetric". ``plain`` is what a check is remembered for, and the
    function that is checked, which means the same as f.
    """
    check_chunk(chunk)
    arguments, _ = arguments_of(f, x, args, kwargs, argnums)
    argnums = argument_numbers(argnums)
    if sparse is True:
        if outputs != "returned":
            raise UnsupportedTypeError(
                f"outputs={outputs!r}: sparse=True finds the pattern of what f returns: pass a "
                "pattern"
            )
        of, hessian = (plain[0], True) if plain is not None else (f, False)
        at = arguments.args, arguments.kwargs
        sparse = pattern_of(Question(of, argnums, *at, hessian=hessian, has_aux=has_aux))
    plan = plan_for(sparse, way, format)
    given = {"has_aux": has_aux, "outputs": outputs, "chunk": chunk, "holomorphic": holomorphic}
    call = f, argnums, arguments.args, arguments.kwargs, {**given, "plan": plan}

    def at_once() -> Any:
        return value_and_entries(*call)

    y, data, *aux = at_once() if jitted_of(f) is None else tape_or_else(
        value_and_entries, *call, at_once
    )  # fmt: skip
    J = plan.assembly(data)
    owner, same = plain or (f, f.__wrapped__ if jitted_of(f) is f else f)
    checked = Checked(plan)
    if check and owner not in checked:
        given |= {"argnums": argnums, "args": arguments.args[1:], "kwargs": arguments.kwargs}
        check_entries(same, plan, J, arguments.args, given)
        checked.add(owner)
    return (y, J, *aux)


@builtin(value_and_sparse_jacobian)
def _traced(
    tracer: Tracer,
    f: Any,
    x: Any,
    *,
    sparse: Any,
    format: str,  # noqa: A002
    check: bool,
    way: str,
    argnums: Any,
    args: Any,
    kwargs: Any,
    **options: Any,
) -> Any:
    if sparse is True:
        raise UntraceableError(
            "sparse=True finds a pattern, which is done outside of traced functions: pass "
            "sparse=jacobian_sparsity(f, x), or put jit inside, jacobian(jit(f), x, sparse=True)",
            tracer.position.location(),
        )
    plan = plan_for(sparse, way, format)
    args = (x, *args) if isinstance(args, tuple) else (x, args)
    options = {name: options[name] for name in ("has_aux", "outputs", "chunk", "holomorphic")}
    call = f, argnums, args, kwargs or {}
    y, data, *aux = tracer.call(value_and_entries, (*call, {**options, "plan": plan}), {})
    make: Any = plan.assembly
    if check:
        make = FirstTime(plan)
        given = {**options, "argnums": argnums, "args": args[1:], "kwargs": kwargs or {}}
        make.write(tracer.call, f, data, args, given)
    return (y, Assembled(data, make, plan.shape), *aux)
