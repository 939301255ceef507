"""``explain``: what runs a function, or its derivative, and why."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np

from fwdad.api.jit import explain as explain_jitted
from fwdad.api.jit import jit, show
from fwdad.api.memory_report import memory_report
from fwdad.api.support import supported
from fwdad.api.transforms import grad, hessian, hvp, jacfwd, jacrev, value_and_grad
from fwdad.codegen.numba_support import have_numba
from fwdad.core.fallbacks import Untraced, blame, is_mistake
from fwdad.core.tracebacks import public
from fwdad.drivers.gradient import in_trees
from fwdad.drivers.jacobian_rows import rows_pay
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.linearized import linearized
from fwdad.drivers.pullback import vjp
from fwdad.drivers.residual_store import sweeps_of
from fwdad.drivers.strategy import Path, differentiated, ones_like, written_path
from fwdad.drivers.tape_cache import is_real, on_copies
from fwdad.eager.build import unseen
from fwdad.eager_reverse import run_recorded
from fwdad.errors import UnsupportedTypeError, UntraceableError, message_of, type_in_words
from fwdad.evaluation.arguments import arguments_of, check_mode
from fwdad.evaluation.evaluators import derivative, jacobian, jvp, linearize, value_and_jacobian
from fwdad.frontend.derivatives.pulled import pulled_gradient, value_alone, value_and_pullback
from fwdad.frontend.trace import trace
from fwdad.ir.primitives import opaque_call
from fwdad.rules.core.registry import function_name
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype, leaf_shape


@public
def explain(f: Any, *args: Any, **kwargs: Any) -> str:
    """What runs a function, and why.

    Parameters
    ----------
    f : callable
        A function, under :func:`jit` or not; ``grad(g)``, ``value_and_grad(g)``, ``jacrev(g)`` and
        ``jacfwd(g)``; or an evaluator itself, followed by what it is called with:
        ``explain(vjp, g, x)``, ``explain(hvp, g, x, v)``. These are ``vjp``, ``linearize``,
        ``jacobian``, ``value_and_jacobian``, ``jvp``, ``derivative``, ``hessian`` and ``hvp``.
    *args, **kwargs
        Example arguments, which stay as they are; without them, the last specialisation of a
        function under ``jit``. Further ones that the evaluator does not know are g's.

    Returns
    -------
    str
        Of a function: the backend, and the line that keeps a program from being compiled. Of
        reverse mode: whether a tape is run, and run backwards, or g is recorded as it runs; then
        with the line and the reason that keep it from being traced. Of forward mode: whether a tape
        is run with tangents, or g on duals. Mistakes of the library that a slower way makes good
        are told, too.

    Raises
    ------
    UntraceableError
        If f itself, not its derivative, is asked about and cannot be traced.
    ValueError
        Without arguments, if f has not been called.
    UnsupportedTypeError
        If f is another of fwdad's functions, or an evaluator's arguments are missing.

    Notes
    -----
    Costs a call of f, or of its derivative, with these arguments.

    Examples
    --------
    >>> import fwdad
    >>> fwdad.explain(fwdad.grad(lambda x: x * x), 2.0)
    'the tape of <lambda>, forwards and backwards: 4 operations, run by NumPy (jit compiles it)'
    """
    with unseen() as run, run:
        return _explain(f, args, kwargs)


def _explain(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    evaluator = next((told for known, told in _EVALUATORS.items() if known is f), None)
    if evaluator is not None:
        return evaluator(asked(f, args, kwargs))
    _refuse(f)
    evaluate = getattr(getattr(f, "_evaluate", None), "__name__", "")
    if isinstance(f, Jitted) or not args:
        return explain_jitted(f, *args, **kwargs)
    if evaluate == "_call_jacfwd":
        return f.evaluate(_columns_of, args, kwargs)
    if evaluate not in _REVERSE:
        return explain_jitted(f, *args, **kwargs)
    _, argnums = differentiated(f)
    under = getattr(f, "__wrapped__", f)
    return _of_reverse(under, argnums, args, kwargs, pulled=evaluate == _REVERSE[-1])


def _refuse(f: Any) -> None:
    """Raise for those of fwdad's own functions that cannot be explained."""
    if any(f is g for g in (grad, value_and_grad, jacfwd, jacrev, jit)):
        message = f"{f.__name__}(f) returns a function: write explain({f.__name__}(f), x)"
        raise UnsupportedTypeError(message)
    if any(f is g for g in (memory_report, trace, show, supported, explain)):
        message = (
            f"explain tells what runs a function or its derivative, and {f.__name__} is no "
            "derivative: call it with the function, or ask explain(vjp, f, x)"
        )
        raise UnsupportedTypeError(message)


def _of_vjp(a: Asked) -> str:
    options = {"has_aux": False, "outputs": "returned", **a.told("has_aux", "outputs")}
    return _of_reverse(a.f, a.argnums, (a.x, *a.args), a.kwargs, pulled=True, options=options)


def _of_jacobian(a: Asked) -> str:
    mode = a.options.get("mode", "auto")
    check_mode(mode)
    if a.options.get("holomorphic"):
        return _of_columns(a)
    if mode == "auto":
        options = {"has_aux": False, "outputs": "returned", **a.told("has_aux", "outputs")}
        pays = rows_pay(a.f, a.x, a.args, a.kwargs, a.argnums, options)
        mode = "forward" if isinstance(pays, Untraced) else "reverse"
    return f"by rows: {_of_vjp(a)}" if mode == "reverse" else _of_columns(a)


def _columns_of(_evaluator: Any, args: Any, options: dict[str, Any]) -> str:
    """Explain ``jacfwd(f)``, given the arguments of its ``jacobian`` call."""
    return _of_columns(asked(jacobian, args, options))


def _of_columns(a: Asked) -> str:
    return f"by columns: {_of_forward(a)}"


def _of_forward(a: Asked) -> str:
    """What runs a function with tangents, found by one run along a zero direction."""
    own = tuple(map(_copied, a.args)), {key: _copied(given) for key, given in a.kwargs.items()}
    arguments, single = arguments_of(a.f, _copied(a.x), *own, a.argnums)
    held = Jitted(a.f.__wrapped__, a.f.backend) if isinstance(a.f, Jitted) else None
    v = [np.zeros((1, *leaf_shape(x)), leaf_dtype(plain(x))) for x in arguments.leaves]
    x, *args = arguments.args
    options = a.told("has_aux", "outputs", "holomorphic")
    jvp(held or a.f, x, in_trees(v, arguments, single=single), args=tuple(args),
        kwargs=arguments.kwargs, argnums=a.argnums, **options)  # fmt: skip
    return f"{_name(a.f)} {_pushed(held)}"


def _pushed(held: Jitted | None) -> str:
    """What ran a function with tangents; ``held`` is None if it is not under ``jit``."""
    if held is None:
        return "is run on duals, line by line (under jit: as a tape, if it can be traced)"
    runs = [run for made in held.specialisations() for run, _ in made.pushed.values()]
    if not runs:
        return "is run on duals, line by line: its tape cannot be run with these arguments"
    return f"has a tape that is run with tangents, by {runs[-1].explain()}"


def _of_linearize(a: Asked) -> str:
    given = (_copied(a.x), *map(_copied, a.args))
    options = {"has_aux": False, "outputs": "returned"}
    name = _name(a.f)
    path = _path(value_alone, a.f, 0, given, a.kwargs, options, pulled=False)
    at = linearized(a.f, given, a.kwargs, "auto") if path.made is not None else Untraced(a.f)
    if isinstance(at, Untraced):
        reason = path.reason or str(at.error or "it cannot be run with tangents for what it takes")
        reason = reason.replace("\n", "\n  ")
        return (
            f"{name} is run again for each product: on duals for directions, recorded for "
            f"cotangents, because\n  {reason}"
        )
    operations = _operations(path.made.tape.count())
    forward = f"the tape of {name}: {operations}{_run_by(a.f)}; with tangents for directions"
    backward = at.way_back()
    if not isinstance(backward, Untraced):
        return f"{forward}, backwards for cotangents"
    reason = str(backward.error).replace("\n", "\n  ")
    return f"{forward}, along all of them for cotangents, because\n  {reason}"


def _of_second(a: Asked) -> str:
    """What runs a gradient with tangents."""
    said = _of_reverse(a.f, a.argnums, (a.x, *a.args), a.kwargs, pulled=False)
    return f"tangents are pushed through the gradient: {said}"


_EVALUATORS: dict[Any, Any] = {
    vjp: _of_vjp,
    linearize: _of_linearize,
    jacobian: _of_jacobian,
    value_and_jacobian: _of_jacobian,
    jvp: _of_forward,
    derivative: _of_forward,
    hessian: _of_second,
    hvp: _of_second,
}


def _run_by(f: Any) -> str:
    """What runs the tapes of a function's derivatives."""
    compiled = isinstance(f, Jitted) and f.backend != "numpy" and have_numba()
    return ", run by Numba" if compiled else ", run by NumPy (jit compiles it)"


class Asked(NamedTuple):
    """The function, point and arguments of a call to an evaluator.

    ``args`` and ``kwargs`` are those of f, besides ``x``; ``options`` are those of the evaluator.
    """

    f: Any
    x: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    argnums: Any
    options: dict[str, Any]

    def told(self, *names: str) -> dict[str, Any]:
        """The options with these names that were given."""
        return {name: self.options[name] for name in names if name in self.options}


def asked(evaluator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Asked:
    """Split the arguments of an evaluator call into its own and those of its function.

    A keyword argument that the evaluator does not have belongs to its function.
    """
    if len(args) < 2:
        name = evaluator.__name__
        message = f"explain({name}, f, x) is wanted: a function and a point behind {name}"
        raise UnsupportedTypeError(message)
    f, x, *rest = args
    if not callable(f):
        message = f"a function is wanted behind {evaluator.__name__}; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    known = inspect.signature(evaluator).parameters
    rest = rest[1:] if "v" in known else rest  # a direction changes nothing
    options = {key: given for key, given in kwargs.items() if key in known}
    own = {key: given for key, given in kwargs.items() if key not in known}
    more = options.pop("args", ())
    own.update(options.pop("kwargs", None) or {})
    behind = (*rest, *(more if isinstance(more, tuple) else (more,)))
    return Asked(f, x, behind, own, options.pop("argnums", 0), options)


def _name(f: Any) -> str:
    return getattr(f, "__name__", function_name(f))


def _operations(count: int) -> str:
    return "1 operation" if count == 1 else f"{count} operations"


_REVERSE = ("_call_grad", "_call_value_and_grad", "_call_jacrev")


def _of_reverse(
    f: Any, argnums: Any, args: Any, kwargs: Any, *, pulled: bool, options: Any = None
) -> str:
    g, _ = differentiated(f)
    args = tuple(_copied(a) for a in args)
    if options is None:
        options = {"has_aux": False, "outputs": "returned"} if pulled else {"has_aux": False}
    evaluate = value_and_pullback if pulled else pulled_gradient
    path = _path(evaluate, g, argnums, args, kwargs, options, pulled=pulled)
    name = _name(g)
    if path.made is None:
        reason = path.reason.replace("\n", "\n  ")
        if path.error is not None and _is_mistake(path.error, g, argnums, args, kwargs):
            reason = f"{reason}\n  {blame(path.error)}"
        return (
            f"{name} is recorded as it runs, its loops unrolled, and the record is run backwards, "
            f"because\n  {reason}"
        )
    operations = _operations(path.made.tape.count())
    mistakes = opaque_call.mistakes(path.made.tape.program)
    return f"the tape of {name}, forwards and backwards: {operations}{_run_by(f)}{mistakes}"


def _is_mistake(error: Exception, g: Any, argnums: Any, args: Any, kwargs: Any) -> bool:
    """Whether tracing failed by a mistake of fwdad's: no refusal, and f itself does not raise."""

    def run() -> None:
        arguments, _ = arguments_of(g, args[0], args[1:], kwargs, argnums)
        run_recorded(g, arguments)

    return is_mistake(error, run)


def _path(evaluate: Any, g: Any, argnums: Any, args: Any, kwargs: Any, options: Any, *,
          pulled: bool) -> Path:  # fmt: skip
    given = (argnums,) if isinstance(argnums, int) else argnums
    arguments_of(g, args[0], args[1:], kwargs, argnums)  # raises as the derivative does
    if not all(is_real(args[k]) for k in given):
        return Path(None, [], "the argument is not made of real floats only")
    path = written_path(evaluate, g, argnums, args, kwargs, options)
    if path.made is None:
        return path
    try:
        if pulled:
            y, kept = sweeps_of(path.made).run(on_copies(path.made.tape, path.leaves))
            kept.pull(list(ones_like(y)))
        else:
            path.made.run(*on_copies(path.made.tape, path.leaves))
    except UntraceableError as error:
        return Path(None, [], message_of(error), error)
    except Exception as error:  # noqa: BLE001  (it is the result)
        return Path(None, [], f"its tape raises {type(error).__name__}: {error}", error)
    return path


def _copied(x: Any) -> Any:
    leaves, structure = flatten(x)
    return unflatten(structure, [v.copy() if hasattr(v, "copy") else v for v in leaves])
