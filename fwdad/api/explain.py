"""``explain``: what runs a function, or its derivative, and why.

A derivative is taken under a watch of the choices that its drivers make (``drivers/strategy.py``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fwdad.api.jit import explain as explain_jitted
from fwdad.api.jit import jit, show
from fwdad.api.memory_report import memory_report
from fwdad.api.second_derivatives import hessian, hvp
from fwdad.api.support import supported
from fwdad.api.transforms import grad, jacfwd, jacrev, value_and_grad
from fwdad.codegen.numba_support import have_numba
from fwdad.core.tracebacks import public
from fwdad.display.text import Text
from fwdad.drivers.gradient import in_trees
from fwdad.drivers.jacobian import jacobian, value_and_jacobian
from fwdad.drivers.linearize import linearize
from fwdad.drivers.pullback import vjp
from fwdad.drivers.sparse_options import SPARSE_JACOBIAN
from fwdad.drivers.strategy import Choice, Watch
from fwdad.eager.build import unseen
from fwdad.errors import UnsupportedTypeError, message_of, type_in_words
from fwdad.evaluation.arguments import arguments_of
from fwdad.evaluation.evaluators import derivative, jvp
from fwdad.evaluation.transformed import Transformed
from fwdad.frontend.calls.python_calls import in_words
from fwdad.frontend.trace import trace
from fwdad.ir.primitives.opaque_call import mistakes
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
        Shown as it is, in a notebook too. Of a function: the backend, and the line that keeps a
        program from being compiled. Of reverse mode: whether a tape is run, and run backwards, or g
        is recorded as it runs; then with the line and the reason that keep it from being traced. Of
        forward mode: whether a tape is run with tangents, or g on duals. Mistakes of the library
        that a slower way makes good are reported, too.

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
    Costs what is asked about, and says what has happened: the derivative is taken, of copies.

    Examples
    --------
    >>> import fwdad
    >>> fwdad.explain(fwdad.grad(lambda x: x * x), 2.0)
    the tape of <lambda>, forwards and backwards: 3 operations, run by NumPy (jit compiles it)
    """
    with unseen() as run, run:
        return Text(_explain(f, args, kwargs))


def _explain(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    evaluator = next((e for e in _RUN if e is f), None)
    if evaluator is not None:
        at = asked(f, args, kwargs)
        return _of_evaluator(evaluator, at.f, _choices(lambda: _RUN[evaluator](evaluator, at)))
    _refuse(f)
    if not isinstance(f, Transformed) or not args:
        return explain_jitted(f, *args, **kwargs)
    copies = tuple(map(_copied, args)), {key: _copied(given) for key, given in kwargs.items()}
    choice = _choices(lambda: f(*copies[0], **copies[1]))[0]
    # jacrev(f) says "by rows" itself
    return _explained(choice.within[0] if choice.taken == "rows" else choice)


def _choices(run: Callable[[], Any]) -> list[Choice]:
    """The choices that are made while a derivative is taken, also of one that raises."""
    with Watch() as watch, watch:
        try:
            run()
        except Exception as error:
            if not any(c.raised is error for c in watch.choices):
                raise  # no choice tells of it
    return watch.choices


def _refuse(f: Any) -> None:
    """Raise for those of fwdad's own functions that cannot be explained."""
    if any(f is g for g in (grad, value_and_grad, jacfwd, jacrev, jit)):
        message = f"{f.__name__}(f) returns a function: write explain({f.__name__}(f), x)"
        raise UnsupportedTypeError(message)
    if any(f is g for g in (memory_report, trace, show, supported, explain)):
        raise UnsupportedTypeError(
            f"explain says what runs a function or its derivative, and {f.__name__} is neither: "
            "pass the function itself, or write explain(vjp, f, x)"
        )


def _plainly(evaluator: Any, at: Asked) -> None:
    """Call an evaluator of a function and a point."""
    evaluator(at.f, at.x, **at.given())


def _along_zero(evaluator: Any, at: Asked) -> None:
    """Push one zero direction."""
    x, *args = at.x, *at.args
    arguments, single = arguments_of(at.f, x, tuple(args), at.kwargs, at.argnums)
    v = [np.zeros((1, *leaf_shape(leaf)), leaf_dtype(plain(leaf))) for leaf in arguments.leaves]
    evaluator(at.f, at.x, in_trees(v, arguments, single=single), **at.given())


def _both_products(evaluator: Any, at: Asked) -> None:
    """Linearize, and multiply by a cotangent."""
    y, J = evaluator(at.f, at.x, **at.given())
    size = sum(np.size(plain(leaf)) for leaf in flatten(y)[0])
    J.rmatvec(np.zeros(size))


_RUN: dict[Any, Any] = {
    vjp: _plainly,
    linearize: _both_products,
    jacobian: _plainly,
    value_and_jacobian: _plainly,
    jvp: _along_zero,
    derivative: _plainly,
    hessian: _plainly,
    hvp: _along_zero,
}


def _of_evaluator(evaluator: Any, f: Any, choices: list[Choice]) -> str:
    """What an evaluator has run, from the choices made on its way."""
    if evaluator is linearize:
        return _of_linearize(choices)
    if evaluator is hessian or evaluator is hvp:
        told = [c for c in _flat(choices) if c.what == "gradient" or _is_one_tape(c)]
        gradient = _with_tangents(told[0]) if _is_one_tape(told[0]) else _explained(told[0])
        found = f"tangents are pushed through the gradient: {gradient}"
        entries, *dense = choices[0].taken.split("\n")
        is_sparse = choices[0].what == SPARSE_JACOBIAN
        return "\n".join([f"with {entries}: {found}", *dense]) if is_sparse else found
    if choices and choices[0].what == SPARSE_JACOBIAN:
        return _explained(choices[0])
    if evaluator is jvp or evaluator is derivative:
        return _pushed(f, choices)
    return _explained(choices[0])


def _flat(choices: Any) -> list[Choice]:
    """Choices, and those within them."""
    return [each for c in choices for each in (c, *_flat(c.within))]


def _explained(choice: Choice) -> str:
    """What was run, and why nothing before it."""
    name = _name(choice.f)
    if choice.what == "jacobian":
        if choice.taken == "tape":
            return f"{_tape(choice)}, with its Jacobian: {_operations(choice)}{_raised(choice)}"
        if choice.taken == "rows":
            return f"by rows: {_explained(choice.within[0])}"
        return f"by columns: {_pushed(choice.f, choice.within)}"
    if choice.what == SPARSE_JACOBIAN:
        return _colours(choice)
    if choice.taken == "tape":
        return f"{_tape(choice)}, forwards and backwards: {_operations(choice)}{_raised(choice)}"
    if choice.taken == "recorded run":
        what = "is recorded as it runs, its loops unrolled, and the record is run backwards"
    else:
        what = "is run on duals"
    return f"{name} {what}, because{_reasons(choice)}{_raised(choice)}"


def _colours(choice: Choice) -> str:
    """What was run for the colours of a sparse Jacobian."""
    entries, *dense = choice.taken.split("\n")
    back = next((c for c in choice.within if c.what == "value and pullback"), None)
    ways = [_pushed(choice.f, choice.within)] if "direction" in entries else []
    ways += [] if back is None else [_explained(back)]
    return "\n".join([f"with {entries}: {'; '.join(ways)}", *dense]) + _raised(choice)


def _raised(choice: Choice) -> str:
    """What a run has raised, if it has."""
    error = choice.raised
    return "" if error is None else f"\nand it raises {type(error).__name__}: {message_of(error)}"


def _reasons(choice: Choice) -> str:
    """Why nothing before the candidate that was taken, a line each."""
    reasons = [line for u in choice.why_not for line in (u.reason, u.blame) if line]
    return "".join("\n  " + line.replace("\n", "\n  ") for line in reasons)


def _is_one_tape(choice: Choice) -> bool:
    """Whether a function and its tangents were one tape."""
    return choice.what == "derivative" and choice.taken == "tape"


def _with_tangents(choice: Choice) -> str:
    return f"{_tape(choice)}, with tangents: {_operations(choice)}{_raised(choice)}"


def _pushed(f: Any, choices: Any) -> str:
    """What has run a function with tangents."""
    derived = next((c for c in choices if c.what == "derivative" and c.f is f), None)
    if derived is not None:
        return _with_tangents(derived) if _is_one_tape(derived) else _pushed(f, derived.within)
    name = _name(f)
    pushed = next((c for c in choices if c.what == "pushforward" and c.f is f), None)
    if pushed is None:
        return f"{name} is run on duals, line by line (under jit: as a tape, if it can be traced)"
    if pushed.taken == "tape":
        runs = [run for run, _ in pushed.tape.pushed.values()]
        return f"{name} has a tape that is run with tangents, by {runs[-1].explain()}"
    return f"{name} is run on duals, line by line, because{_reasons(pushed)}"


def _of_linearize(choices: list[Choice]) -> str:
    """What runs for directions and for cotangents."""
    at, *products = choices
    if at.raised is not None:
        return f"{_name(at.f)} is run on duals, because{_reasons(at)}{_raised(at)}"
    back = products[0]
    if at.taken != "tape":
        backwards = "recorded" if back.taken == "recorded run" else "as a tape"
        return (
            f"{_name(at.f)} is run again for each product: on duals for directions, {backwards} "
            f"for cotangents, because{_reasons(at)}"
        )
    forward = f"{_tape(at)}: {_operations(at)}; with tangents for directions"
    if back.taken == "tape":
        return f"{forward}, backwards for cotangents{_raised(back)}"
    return f"{forward}, along all of them for cotangents, because{_reasons(back)}"


def _tape(choice: Choice) -> str:
    return f"the tape of {_name(choice.f)}"


def _operations(choice: Choice) -> str:
    """The size of a tape, what runs it, and rules on it that have failed."""
    jitted = choice.tape
    count = jitted.tape.count()
    size = "1 operation" if count == 1 else f"{count} operations"
    if "run" in vars(jitted) and jitted.run.compiled is not None:
        by = jitted.run.explain()
    else:
        compiled = jitted.backend != "numpy" and have_numba()
        by = "Numba" if compiled else "NumPy (jit compiles it)"
    return f"{size}, run by {by}{in_words(jitted.tape.program)}{mistakes(jitted.tape.program)}"


class Asked(NamedTuple):
    """The function, and copies of the point and arguments, of a call to an evaluator.

    ``args`` and ``kwargs`` are those of f, besides ``x``; ``options`` are those of the evaluator.
    """

    f: Any
    x: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    argnums: Any
    options: dict[str, Any]

    def given(self) -> dict[str, Any]:
        """The keyword arguments of the evaluator."""
        argnums = {} if self.argnums == 0 else {"argnums": self.argnums}
        return {"args": self.args, "kwargs": self.kwargs, **argnums, **self.options}


def asked(evaluator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Asked:
    """Split the arguments of an evaluator call into its own and those of its function.

    A keyword argument that the evaluator does not have belongs to its function.
    """
    if len(args) < 2:
        name = evaluator.__name__
        message = f"explain({name}) needs a function and a point: write explain({name}, f, x)"
        raise UnsupportedTypeError(message)
    f, x, *rest = args
    if not callable(f):
        message = f"expected a function after {evaluator.__name__}; got {type_in_words(f)}"
        raise UnsupportedTypeError(message)
    known = inspect.signature(evaluator).parameters
    rest = rest[1:] if "v" in known else rest  # a direction changes nothing
    options = {key: given for key, given in kwargs.items() if key in known}
    of_f = {key: given for key, given in kwargs.items() if key not in known}
    more = options.pop("args", ())
    of_f.update(options.pop("kwargs", None) or {})
    behind = (*rest, *(more if isinstance(more, tuple) else (more,)))
    copies = _copied(x), tuple(map(_copied, behind)), {k: _copied(a) for k, a in of_f.items()}
    return Asked(f, *copies, options.pop("argnums", 0), options)


def _name(f: Any) -> str:
    return getattr(f, "__name__", function_name(f))


def _copied(x: Any) -> Any:
    leaves, structure = flatten(x)
    return unflatten(structure, [v.copy() if hasattr(v, "copy") else v for v in leaves])
