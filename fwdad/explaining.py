"""``explain``: what runs a function, or its derivative, and why."""

from __future__ import annotations

from typing import Any

from fwdad import compilation
from fwdad.arguments import Function, arguments_of
from fwdad.backends.numba_support import have_numba
from fwdad.defects import is_mistake
from fwdad.errors import UntraceableError
from fwdad.jitted import Jitted
from fwdad.kept_tapes import is_real
from fwdad.paths import Path, differentiated, ones_like, written_path
from fwdad.pullbacks import vjp
from fwdad.recorded import run_recorded
from fwdad.rules.registry import function_name
from fwdad.sweeps import sweeps_of
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tape import whole
from fwdad.tracing.derivatives.pulled import pulled_gradient, value_and_pullback


def explain(f: Function, *args: Any, **kwargs: Any) -> str:
    """What runs a function, and why.

    Parameters
    ----------
    f : callable
        A function, under :func:`jit` or not; ``grad(g)``, ``value_and_grad(g)`` and ``jacrev(g)``;
        or ``vjp`` itself, followed by its function and arguments: ``explain(vjp, g, x)``.
    *args, **kwargs
        Example arguments, which stay as they are; without them, the last specialisation of a
        function under ``jit``.

    Returns
    -------
    str
        Of a function: the backend, and the line that keeps a program from being compiled. Of
        reverse mode: whether a tape is run, and run backwards, or g is recorded as it runs; then
        with the line and the reason that keep it from being traced. Mistakes of the library that
        a slower way makes good are told, too.

    Raises
    ------
    UntraceableError
        If f itself, not its derivative, is asked about and cannot be traced.
    ValueError
        Without arguments, if f has not been called.

    Notes
    -----
    Costs a call of f, or of its derivative, with these arguments.

    Examples
    --------
    >>> import fwdad
    >>> fwdad.explain(fwdad.grad(lambda x: x * x), 2.0)
    'the tape of <lambda>, forwards and backwards: 4 operations, run by NumPy (jit compiles it)'
    """
    if f is vjp:
        g, *given = args
        return _of_reverse(g, 0, tuple(given), kwargs, pulled=True)
    evaluate = getattr(getattr(f, "_evaluate", None), "__name__", "")
    if isinstance(f, Jitted) or evaluate not in _REVERSE or not args:
        return compilation.explain(f, *args, **kwargs)
    _, argnums = differentiated(f)
    under = getattr(f, "__wrapped__", f)
    return _of_reverse(under, argnums, args, kwargs, pulled=evaluate == _REVERSE[-1])


def _run_by(f: Any) -> str:
    """What runs the tapes of a function's derivatives."""
    compiled = isinstance(f, Jitted) and f.backend != "numpy" and have_numba()
    return ", run by Numba" if compiled else ", run by NumPy (jit compiles it)"


_REVERSE = ("_call_grad", "_call_value_and_grad", "_call_jacrev")


def _of_reverse(f: Any, argnums: Any, args: Any, kwargs: Any, *, pulled: bool) -> str:
    g, _ = differentiated(f)
    args = tuple(_copied(a) for a in args)
    options = {"has_aux": False}
    if pulled:
        options["outputs"] = "returned"  # type: ignore[assignment]
    evaluate = value_and_pullback if pulled else pulled_gradient
    path = _path(evaluate, g, argnums, args, kwargs, options, pulled=pulled)
    name = getattr(g, "__name__", function_name(g))
    if path.made is None:
        reason = path.reason.replace("\n", "\n  ")
        if path.error is not None and _is_mistake(path.error, g, argnums, args, kwargs):
            reason = f"of a mistake in fwdad, please report it: {reason}"
        return (
            f"{name} is recorded as it runs, its loops unrolled, and the record is run backwards, "
            f"because\n  {reason}"
        )
    count = path.made.tape.count()
    operations = "1 operation" if count == 1 else f"{count} operations"
    mistakes = whole.mistakes(path.made.tape.program)
    return f"the tape of {name}, forwards and backwards: {operations}{_run_by(f)}{mistakes}"


def _is_mistake(error: Exception, g: Any, argnums: Any, args: Any, kwargs: Any) -> bool:
    """Whether what keeps a function from a tape is neither a refusal nor what it raises itself."""

    def run() -> None:
        arguments, _ = arguments_of(g, args[0], args[1:], kwargs, argnums)
        run_recorded(g, arguments)

    return is_mistake(error, run)


def _path(evaluate: Any, g: Any, argnums: Any, args: Any, kwargs: Any, options: Any, *,
          pulled: bool) -> Path:  # fmt: skip
    given = (argnums,) if isinstance(argnums, int) else argnums
    if not all(is_real(args[k]) for k in given):
        return Path(None, [], "the argument is not made of real floats only")
    path = written_path(evaluate, g, argnums, args, kwargs, options)
    if path.made is None:
        return path
    try:
        if pulled:
            y, kept = sweeps_of(path.made).run(path.leaves)
            kept.pull(list(ones_like(y)))
        else:
            path.made.run(*path.leaves)
    except UntraceableError as error:
        return Path(None, [], str(error), error)
    except Exception as error:  # noqa: BLE001  (it is the answer)
        return Path(None, [], f"its tape raises {type(error).__name__}: {error}", error)
    return path


def _copied(x: Any) -> Any:
    leaves, structure = flatten(x)
    return unflatten(structure, [v.copy() if hasattr(v, "copy") else v for v in leaves])
