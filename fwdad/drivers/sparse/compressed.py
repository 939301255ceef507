"""Products of a Jacobian with the seeds of a colouring, and the entries in them.

``call`` calls a function, at once or in a trace: the same composition is run, or becomes one
program with the derivative in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.colouring.kernels import Kernel
from fwdad.colouring.recovery import subtract
from fwdad.core.progress import Progress
from fwdad.drivers.pullback import vjp
from fwdad.drivers.sparse.plans import Plan
from fwdad.errors import PatternError, UnsupportedTypeError, type_in_words
from fwdad.evaluation.evaluators import jvp, push_directions
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.evaluation.transformed import at_once
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.derivatives.assumed_contents import AssumedContents
from fwdad.frontend.derivatives.differentiated import Differentiated
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.rules.core.registry import function_name
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype
from fwdad.transforms.forward import Basis, NotPlacedError, entries_of

Call = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def value_and_entries(f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any) -> Any:
    """The value of a function, the entries of its Jacobian, and aux if there is one."""
    return _value_and_entries(at_once, f, argnums, args, kwargs, options)


def _value_and_entries(
    call: Call, f: Function, argnums: Argnums, args: Any, kwargs: Any, options: Any
) -> Any:
    plan: Plan = options["plan"]
    bar: Progress | None = options.get("progress")  # only at once
    x, (m, n) = _differentiated(args, argnums), plan.shape
    how = {name: options[name] for name in ("has_aux", "outputs", "chunk")}
    given = {"argnums": argnums, "args": args[1:], "kwargs": kwargs}
    call(_check_size, (call(_size, (x,), {}), n, WRONG_COLUMNS), {})
    found: Any = ()
    products = []
    if plan.by_columns:
        v = call(_like, (plan.column_seeds(_dtype(x)), x), {})
        pushed = {**how, "holomorphic": options["holomorphic"]}
        if bar is None:
            found = call(jvp, (f, args[0], v), {**given, **pushed})
        else:
            of = argnums, args[1:], kwargs
            found = push_directions(f, args[0], v, *of, pushed, progress=bar)
        _check_value(call, found[0], m)
        products.append(call(np.reshape, (found[1], (-1,)), {}))
    if plan.by_rows:
        found = call(vjp, (f, args[0]), {**given, **how})
        y = _check_value(call, found[0], m)
        if _dtype(y).kind == "c":
            raise UnsupportedTypeError(
                "a Jacobian of complex values has no sparse form by rows: ask for "
                'mode="forward", or pass a colouring of kind="columns"'
            )
        bars = call(_like, (plan.row_seeds(_dtype(y)), y), {})
        if bar is None:
            pulled = call(found[1], (bars,), {})
        else:
            bar.begin(len(bars), "rows")
            pulled = found[1].of_leaves([bars], bar.update)
        products.append(call(np.reshape, (pulled, (-1,)), {}))
    flat = products[0] if len(products) == 1 else call(np.concatenate, (products,), {})
    # all are inside, which compiled code need not find out at each
    places = plan.places if call is at_once else plan.narrow_places
    values = call(np.take, (flat, places), {"mode": "clip"})
    if plan.substitution is not None:
        order, above, of_entries = plan.substitution
        call(subtract, (order, above, values), {"steps": order.size})
        values = call(np.take, (values, of_entries), {})
    return (found[0], values, *found[2:])


def _differentiated(args: Any, argnums: Any) -> Any:
    """The argument that is differentiated: one array or number."""
    if isinstance(argnums, (tuple, list)):
        raise UnsupportedTypeError(
            f"argnums is {argnums!r}: a sparse Jacobian is with respect to one argument. "
            "Differentiate with respect to one vector that f takes apart (fwdad.ravel)"
        )
    x = args[argnums]
    if type(x) is not Symbol and not isinstance(plain(x), (np.ndarray, float, complex, np.number)):
        raise UnsupportedTypeError(_ONE_ARRAY.format("argument", type_in_words(x)))
    return x


def _check_value(call: Call, y: Any, m: int) -> Any:
    """The value of a function, if it is one array or number with m elements."""
    if type(y) is not Symbol and not isinstance(plain(y), (np.ndarray, float, complex, np.number)):
        raise UnsupportedTypeError(_ONE_ARRAY.format("value", type_in_words(y)))
    call(_check_size, (call(_size, (y,), {}), m, WRONG_ROWS), {})
    return y


_ONE_ARRAY = (
    "a sparse Jacobian is a matrix, of a function of one array that returns one array, and the {} "
    "is {}: let f take and return one vector (fwdad.ravel makes one, and takes it apart)"
)
WRONG_COLUMNS = (
    "the pattern of the sparse Jacobian has another number of columns than x has elements: a "
    "pattern has shape (y.size, x.size)"
)
WRONG_ROWS = (
    "the pattern of the sparse Jacobian has another number of rows than f(x) has elements: a "
    "pattern has shape (y.size, x.size)"
)


def _dtype(x: Any) -> np.dtype[Any]:
    return x.dtype if type(x) is Symbol else leaf_dtype(plain(x))


# The following are traced.


def _size(x: Any) -> Any:
    return x.size if isinstance(x, np.ndarray) else 1


def _like(seeds: Any, x: Any) -> Any:
    """Seeds, one in each row, in the shape of what they are for."""
    return seeds.reshape((len(seeds), *np.shape(x)))


def _check_size(size: int, wanted: int, message: str) -> None:
    if size != wanted:
        raise PatternError(message)


@builtin(value_and_entries)
def _traced(tracer: Tracer, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    recorder = tracer.recorder
    block, first, mark = recorder.block, len(recorder.block.ops), recorder.lengths.mark()
    plan: Plan = options["plan"]
    of = function_name(f)
    assumed, contents = recorder.lengths.assumed(), AssumedContents(tracer, plan.assumed[of])
    try:
        found = _by_places(tracer, f, argnums, args, kwargs, options, contents)
    except NotPlacedError:
        found = None
    if found is not None and contents.assume():
        return found
    del block.ops[first:]  # f is not to run twice
    recorder.lengths.forget(mark)
    recorder.lengths.withdraw(assumed)
    return _value_and_entries(tracer.call, f, argnums, args, kwargs, options)


def _by_places(
    tracer: Tracer,
    f: Any,
    argnums: Any,
    args: Any,
    kwargs: Any,
    options: Any,
    contents: AssumedContents,
) -> Any:
    """The same where each entry is a coefficient that the program computes; None elsewhere.

    No direction is pushed through the program then, and zeros are neither carried nor picked from.
    """
    plan: Plan = options["plan"]
    x = _differentiated(args, argnums)
    real = type(x) is Symbol and x.is_array and x.dtype.kind == "f" and x.type.ndim > 0
    if not (real and plan.by_columns and options["outputs"] == "returned"):
        return None
    at = Differentiated(tracer, f, args, kwargs, argnums, has_aux=options["has_aux"])
    shape, n = at.shape(0), plan.shape[1]
    if math.prod(shape) != n:
        return None  # the other way says so
    primals, chunks, tree = at.run_placed(n, [Basis(0, shape)], contents)
    (k, *others) = sorted(at.differentiated(tree, len(primals)))
    y = primals[k]
    if others or type(y) is not Symbol or not y.is_array or y.dtype.kind != "f":
        return None
    recorder = tracer.recorder
    data = entries_of(recorder, chunks[k], y, plan.positions, plan.colouring.pattern.nnz)
    if data is None:
        return None
    _check_value(tracer.call, y, plan.shape[0])
    return at.result(tree, primals, data)


CALLED[Kernel] = lambda tracer, f, args, _: tracer.call(f.__wrapped__, args, {})
