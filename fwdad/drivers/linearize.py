"""``linearize``: the Jacobian at a point as an operator, from a tape or by running f again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fwdad.core.tracebacks import public
from fwdad.drivers.linearized import linearized
from fwdad.drivers.pullback import Pullback, vjp
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.drivers.written_passes import misses
from fwdad.eager.arguments import check_read_again, copied
from fwdad.eager.build import Repeated
from fwdad.errors import NondeterministicFunctionError, NoOutputError, UnsupportedTypeError
from fwdad.evaluation.arguments import arguments_of, check_holomorphic, width_of
from fwdad.evaluation.evaluators import jvp
from fwdad.evaluation.signatures import ChunkSize, Function, R
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.evaluators import refuse_linearize
from fwdad.rules.core.registry import function_name
from fwdad.tangents.alike import alike
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import leaf_dtype, leaf_shape

if TYPE_CHECKING:
    from fwdad.drivers.jacobian_operator import JacobianOperator


@public
def linearize(
    f: Callable[..., R],
    x: Any,
    *more: Any,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    chunk: ChunkSize = "auto",
    holomorphic: bool = False,
) -> tuple[R, JacobianOperator]:
    """The value of a function, and its Jacobian as an operator.

    Parameters
    ----------
    f, x, args, kwargs, chunk, holomorphic
        See :func:`jacobian`.
    *more
        Refused: J is the Jacobian with respect to one argument.

    Returns
    -------
    y : object
        ``f(x)``.
    J : JacobianOperator
        A ``scipy.sparse.linalg.LinearOperator``: ``J.matvec(v)`` pushes a direction forward,
        ``J.matmat`` many, in chunks; ``J.rmatvec`` pulls a cotangent back, ``J.rmatmat`` many.
        ``J(v)`` of a direction in x's own shape or structure is the tangent in that of y, as the
        function that JAX's ``linearize`` returns.

    Raises
    ------
    UnsupportedTypeError
        If x is an integer or holds nothing to differentiate, or there are several points.
    NotHolomorphicError
        If x is complex, and ``holomorphic`` is not said, or f is not.
    NoOutputError
        If f returns None.

    Notes
    -----
    f is traced and its tape is run once. J copies the arrays that the tape reads, those among the
    arguments and those from outside: the caller may change all of them. Each product with a
    direction runs the tape again, with tangents, a chunk of directions at a time. The first product
    with a cotangent runs it forward once more and keeps what its reverse pass needs, as :func:`vjp`
    does; the others run the reverse pass only. Where f cannot be traced, all arguments are copied,
    and f itself is run instead: on duals, or recorded. It is run again for each product, which
    raises ``NondeterministicFunctionError`` if f's value is another one then, and where f writes
    into an array that is an argument and that it reads from outside, too. An iterator among the
    arguments is refused.

    Examples
    --------
    >>> import numpy as np
    >>> y, J = linearize(lambda x: x**2, np.array([1.0, 3.0]))
    >>> J.matvec(np.array([1.0, 1.0])), J.rmatvec(np.array([0.0, 1.0]))
    (array([2., 6.]), array([0., 6.]))
    """
    from fwdad.drivers.jacobian_operator import (  # noqa: PLC0415  (SciPy's sparse package)
        JacobianOperator,
        dtype_of,
    )

    if more:
        raise UnsupportedTypeError(
            "linearize takes one argument of f to differentiate with respect to: write "
            "linearize(lambda p: f(*p), (x, y)), or linearize(f, x, args=(y,)) for a constant y"
        )
    arguments, _ = arguments_of(f, x, args, kwargs, 0)
    dtype_of(arguments.leaves)  # raises if it is none
    width_of(chunk, 1, arguments.leaves)  # raises if it is none
    check_holomorphic(f, arguments, holomorphic, has_aux=False, outputs="returned")
    at = first_that_can(
        "linearize",
        f,
        Candidate("tape", lambda: linearized(f, arguments.args, arguments.kwargs, chunk)),
        Candidate(
            "run again",
            lambda: RunAgain(f, arguments.args, arguments.kwargs, chunk, holomorphic=holomorphic),
        ),
    )
    if at.y is None:
        raise NoOutputError(
            f"{function_name(f)} returned None, so there is nothing to linearize: let it return "
            "its values"
        )
    return at.y, JacobianOperator(at, x, at.y)


class RunAgain:
    """f at a point: its arguments are copies."""

    along = staticmethod(misses)

    def __init__(
        self,
        f: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        chunk: ChunkSize,
        *,
        holomorphic: bool,
    ) -> None:
        self.f, self.chunk, self.holomorphic = f, chunk, holomorphic
        self.x, *self.args = args
        self.kwargs = kwargs
        leaves, self._structure = flatten(self.x)
        self._pull: Pullback[Any] | None = None
        check_read_again((self.x, *self.args, self.kwargs))
        still = [np.zeros((1, *leaf_shape(v)), leaf_dtype(v)) for v in leaves]
        self._runs = Repeated()
        with self._runs.first() as run, run:
            self.y, _ = self._run(still)
        self.x, *self.args = (copied(a) for a in args)
        self.kwargs = {key: copied(a) for key, a in kwargs.items()}
        y, self._structure_of_y = flatten(self.y)
        self._values = [alike(v) if isinstance(v, np.ndarray) else v for v in map(plain, y)]

    @property
    def name(self) -> str:
        """The function's name."""
        return function_name(self.f)

    @property
    def ways(self) -> tuple[str, str]:
        """How it multiplies, in words: by a direction, and by a cotangent."""
        return f"runs {self.name} on duals", f"runs {self.name} once, recorded, then backwards"

    def push(self, rows: list[Any]) -> list[Any]:
        """The tangents of the leaves of f(x) in K directions of those of x."""
        with self._runs.again() as run, run:
            y, y_dot = self._run(rows)
            self._check(y)
        return match(self._structure_of_y, y_dot)

    def _check(self, y: Any) -> None:
        """Raise if a later run returned another value than the first."""
        found, before = [plain(v) for v in flatten(y)[0]], self._values
        if len(found) == len(before) and all(map(_is_near, found, before)):
            return
        raise NondeterministicFunctionError(
            f"{function_name(self.f)} cannot be traced, so J runs it again, and its value is "
            "different now: it reads something that has changed, or writes into an array that it "
            "is given and reads from outside, too. Pass it only as an argument, or linearize again"
        )

    def _run(self, rows: list[Any]) -> Any:
        """The value of f, and its tangents in K directions."""
        v, args = unflatten(self._structure, rows), tuple(self.args)
        return jvp(
            self.f, self.x, (v,), chunk=self.chunk, args=args, kwargs=self.kwargs,
            holomorphic=self.holomorphic, argnums=(0,),
        )  # fmt: skip

    def pull(self, rows: list[Any]) -> list[Any]:
        """The cotangents of the leaves of x for K of those of f(x)."""
        if self._pull is None:
            with self._runs.again() as run, run:
                y, pullback = vjp(
                    self.f, self.x, args=tuple(self.args), kwargs=self.kwargs, chunk=self.chunk
                )
                self._check(y)
            self._pull = pullback
        return match(self._structure, self._pull.of_leaves(rows))


def _is_near(a: Any, b: Any) -> bool:
    """Whether two values are equal up to rounding, as those of two runs of one program are."""
    if type(a) in OWN:
        return type(a) is type(b)
    if np.shape(a) != np.shape(b):
        return False
    largest = np.max(np.abs(b), initial=0.0)
    return bool(np.allclose(a, b, rtol=1e-4, atol=1e-4 * largest, equal_nan=True))


builtin(linearize)(refuse_linearize)
