"""Whether a pattern has all entries of a Jacobian: one random product, computed in both ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.pullback import vjp
from fwdad.drivers.sparse.plans import Plan
from fwdad.eager.build import unseen
from fwdad.errors import PatternError
from fwdad.evaluation.evaluators import jvp
from fwdad.frontend.calls.kinds import mentions_symbols
from fwdad.frontend.calls.tables import CALLED
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import BOOL
from fwdad.ops.record import op
from fwdad.rules.core.registry import function_name
from fwdad.tangents.plain import plain
from fwdad.tangents.seeds import leaf_dtype
from fwdad.tangents.sparse import scatter_add

MISSES = (
    "a product of the sparse Jacobian with a random vector differs from that of the function: its "
    "pattern misses an entry that the function has, or the function is another one in each run. "
    "Without jit the call says which entry; sparse=True finds the pattern"
)


def random_vector(size: int, dtype: Any) -> Any:
    """A vector without small elements, so that no entry can hide."""
    rng = np.random.default_rng(size)
    return (rng.uniform(0.5, 1.5, size) * rng.choice([-1.0, 1.0], size)).astype(dtype)


def tolerances(dtype: Any) -> tuple[float, float]:
    """How far two ways may differ: of a row's own terms, and of the largest row's."""
    eps = float(np.finfo(dtype).eps)
    return math.sqrt(eps), eps**0.75


class Checked:
    """Whether a plan has been checked for a function and the options that decide what it returns.

    It is remembered as long as the function lives, or the object that a bound method is of.
    """

    def __init__(self, plan: Plan, f: Any, argnums: Any, options: dict[str, Any]) -> None:
        self._known = plan.checked
        self._owner = getattr(f, "__self__", f)
        of = argnums, options["outputs"], options["has_aux"]
        self._key = getattr(f, "__func__", None), *of

    def __bool__(self) -> bool:
        try:
            return self._key in self._known.get(self._owner, ())
        except TypeError:  # it has no weak references
            return False

    def note(self) -> None:
        """Note that it has been, if that can be noted."""
        try:
            self._known.setdefault(self._owner, set()).add(self._key)
        except TypeError:
            return


class FirstTime:
    """Makes the matrices of a traced function, whose program checks the pattern until one is made.

    The program reads ``unchecked``, an array, at each run.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.unchecked = np.ones(1, bool)
        self._is_new = True

    def __call__(self, data: Any) -> Any:
        """The matrix with these entries, which the program has checked."""
        if self._is_new:
            self.unchecked[0] = self._is_new = False
        return self.plan.assembly(data)

    def write(self, tracer: Tracer, f: Any, data: Any, args: Any, given: dict[str, Any]) -> None:
        """Write the check into the program that is traced.

        A function from outside is called as it is, which takes no time to compile.
        """
        if not mentions_symbols(f):
            asked = _Asked(self, f, data, args, given)
            tracer.call(_refuse_unless, (self.unchecked, asked), {})
        else:
            self._write_in_line(tracer.call, f, data, args, given)

    def _write_in_line(
        self, call: Any, f: Any, data: Any, args: Any, given: dict[str, Any]
    ) -> None:
        """Write the check into the program that ``call`` writes."""
        plan, x = self.plan, args[given["argnums"]]
        by_rows = not plan.colouring.column_count and plan.by_rows
        (i, j), shape = plan.coordinates, plan.shape
        if by_rows:
            i, j, shape = j, i, shape[::-1]
            given = {name: option for name, option in given.items() if name != "holomorphic"}
        v = random_vector(shape[1], x.dtype if type(x) is Symbol else leaf_dtype(plain(x)))
        compare = _compare_pulled if by_rows else _compare_pushed
        call(compare, (self.unchecked, (f, args[0], x, given), v, (data, i, j, shape[0])), {})


class _Asked(OfTrace):
    """The check of a function from outside, a call of which is one operation."""

    def __init__(
        self, make: FirstTime, f: Any, data: Any, args: Any, given: dict[str, Any]
    ) -> None:
        f = f.__wrapped__ if type(f) is Jitted else f
        options = tuple((k, x) for k, x in given.items() if k not in ("args", "kwargs"))
        self.operands = (make, f, options, data, args, given["kwargs"])


def _check_at_once(
    make: FirstTime, f: Any, options: Any, data: Any, args: Any, kwargs: dict[str, Any]
) -> bool:
    """Check entries when the program runs."""
    given = {**dict(options), "args": args[1:], "kwargs": kwargs}
    with unseen() as run, run:
        check_entries(f, make.plan, make.plan.assembly(data), args, given)
    return True


op(_check_at_once, constant=True)


def _call_asked(tracer: Tracer, asked: _Asked, _args: Any, _kwargs: Any) -> Any:
    return tracer.recorder.apply_typed(_check_at_once, asked.operands, BOOL)


CALLED[_Asked] = _call_asked

# The following are traced.


def _refuse_unless(unchecked: Any, ask: Any) -> None:
    if unchecked[0]:
        if not ask():
            raise PatternError(MISSES)


def _compare_pushed(unchecked: Any, of: Any, v: Any, entries: Any) -> None:
    if unchecked[0]:
        (f, x, like, given), (data, i, j, m) = of, entries
        found = jvp(f, x, np.reshape(v, np.shape(like)), **given)[1]
        _compare(np.reshape(found, (-1,)), data * v[j], i, m)


def _compare_pulled(unchecked: Any, of: Any, w: Any, entries: Any) -> None:
    if unchecked[0]:
        (f, x, _, given), (data, i, j, m) = of, entries
        found = vjp(f, x, **given)
        _compare(np.reshape(found[1](np.reshape(w, np.shape(found[0]))), (-1,)), data * w[j], i, m)


def _compare(found: Any, terms: Any, i: Any, m: int) -> None:
    error = np.abs(scatter_add(terms, i, m) - found)
    size = scatter_add(np.abs(terms), i, m) + np.abs(found)
    relative, absolute = tolerances(terms.dtype)
    near = relative * size + absolute * np.max(np.where(np.isfinite(size), size, 0.0), initial=0.0)
    if np.any(error > near):
        raise PatternError(MISSES)


def check_entries(f: Any, plan: Plan, J: Any, args: Any, given: dict[str, Any]) -> None:
    """Raise ``PatternError`` unless J's product with a random vector is that of f's Jacobian.

    ``given`` are the options of ``jvp``, and of ``vjp`` but for one.
    """
    x, (m, n) = args[given["argnums"]], plan.shape
    by_rows = not plan.colouring.column_count and plan.by_rows
    matrix = J.T if by_rows else J
    v = random_vector(m if by_rows else n, leaf_dtype(plain(x)))
    if by_rows:
        found = _pulled(f, args[0], v, given)
    else:
        found = _pushed(f, args[0], v.reshape(np.shape(x)), given)
    with np.errstate(all="ignore"):
        error = np.abs(matrix @ v - found)
        size = abs(matrix) @ np.abs(v) + np.abs(found)
        relative, absolute = tolerances(np.result_type(J.dtype, np.float32))
        finite = np.isfinite(error)
        bound = relative * size + absolute * np.max(size[finite], initial=0.0)
        wrong = np.flatnonzero(finite & (error > bound))
    if not wrong.size:
        return
    k = int(wrong[np.argmax((error / bound)[wrong])])
    raise PatternError(_what_is_missed(f, plan, args, given, k, wrong.size, by_rows=by_rows))


def _pushed(f: Any, x: Any, v: Any, given: dict[str, Any]) -> Any:
    """The product with a direction, flat."""
    return np.reshape(jvp(f, x, v, **given)[1], -1)


def _pulled(f: Any, x: Any, w: Any, given: dict[str, Any]) -> Any:
    """The product of the transpose with a flat cotangent, flat."""
    given = {name: option for name, option in given.items() if name != "holomorphic"}
    y, pullback = vjp(f, x, **given)[:2]
    return np.reshape(pullback(np.reshape(w, np.shape(y)).astype(leaf_dtype(plain(y)))), -1)


def _what_is_missed(
    f: Any, plan: Plan, args: Any, given: dict[str, Any], k: int, count: int, *, by_rows: bool
) -> str:
    """A message that names an entry in row k, or in column k if products are by rows."""
    x, (m, n) = args[given["argnums"]], plan.shape
    unit = np.zeros(n if by_rows else m, leaf_dtype(plain(x)))
    unit[k] = 1
    line = "column" if by_rows else "row"
    several = f"; {count} {line}s are wrong" if count > 1 else ""
    name, pattern = function_name(f), plan.colouring.pattern
    held = (pattern.T if by_rows else pattern).tocsr()[[k]].toarray()[0]
    j = None
    try:
        # the other mode shows the whole line
        if by_rows:
            whole = _pushed(f, args[0], unit.reshape(np.shape(x)), given)
        else:
            whole = _pulled(f, args[0], unit, given)
        outside = np.abs(np.where(held, 0, whole))
        j = int(np.argmax(outside)) if np.max(outside, initial=0.0) > 0 else None
    except Exception as error:  # noqa: BLE001  (the message names the line alone)
        with Untraced(f, error).instead():
            pass
    if j is None:
        return (
            f"{line} {k} of the sparse Jacobian of {name} is wrong{several}: its pattern misses an "
            f"entry there, or {name} does not do the same in each run. {_WHAT_TO_DO}"
        )
    place = (j, k) if by_rows else (k, j)
    return (
        f"the pattern of the sparse Jacobian of {name} misses the entry {place}, which is "
        f"{whole[j]:.6g} at this x{several}. {_WHAT_TO_DO}"
    )


_WHAT_TO_DO = (
    "Add what is missing to the pattern (stored entries count, explicit zeros too), or write "
    "sparse=True, which finds it. check=False leaves this check out"
)
