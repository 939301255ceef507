"""What is filled in for one call of a solver: which derivatives, and the lines that tell of them.

``METHODS`` is the one table of what each method takes; the solvers here and the documentation read
it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np

from fwdad.eager.calls.dispatch import call
from fwdad.eager.run import STATE
from fwdad.errors import UntraceableError
from fwdad.evaluation.signatures import SparseFormat
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.scipy.choice import Derivative
from fwdad.scipy.derivatives import (
    FEW,
    Evaluated,
    Gradient,
    Hessian,
    Jacobian,
    JacobianOperator,
    PointwiseJacobian,
)
from fwdad.scipy.programs import second_of
from fwdad.scipy.sparse_derivatives import HessianByColours, JacobianByColours, Products

DIFFERENCES = ("2-point", "3-point", "cs")
"""SciPy's names for finite differences; ``"2-point"`` is taken by every function here."""

_NONE: tuple[str, ...] = ()
METHODS: dict[str, dict[str, tuple[str, ...]]] = {
    "curve_fit": dict.fromkeys(("lm", "trf", "dogbox"), ("jac",)),
    "least_squares": dict.fromkeys(("trf", "dogbox", "lm"), ("jac",)),
    "minimize": {
        **dict.fromkeys(("Nelder-Mead", "Powell", "COBYLA", "COBYQA"), _NONE),
        **dict.fromkeys(("CG", "BFGS", "L-BFGS-B", "TNC"), ("jac",)),
        "SLSQP": ("jac", "constraints' jac"),
        **dict.fromkeys(("Newton-CG", "trust-ncg", "trust-krylov"), ("jac", "hess or hessp")),
        **dict.fromkeys(("dogleg", "trust-exact"), ("jac", "hess")),
        "trust-constr": ("jac", "hess or hessp", "constraints' jac", "constraints' hess"),
        "a callable": ("jac", "hess or hessp"),
    },
    "root": {
        **dict.fromkeys(("hybr", "lm"), ("jac",)),
        **dict.fromkeys(("broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden"), _NONE),
        **dict.fromkeys(("excitingmixing", "krylov", "df-sane"), _NONE),
    },
    "fsolve": {"hybr": ("fprime",)},
    "root_scalar": {
        **dict.fromkeys(("bisect", "brentq", "brenth", "ridder", "toms748", "secant"), _NONE),
        "newton": ("fprime",),
        "halley": ("fprime", "fprime2"),
    },
    "solve_ivp": {
        **dict.fromkeys(("RK45", "RK23", "DOP853"), _NONE),
        **dict.fromkeys(("Radau", "BDF", "LSODA"), ("jac",)),
    },
    "solve_bvp": {"collocation": ("fun_jac", "bc_jac")},
    "differential_evolution": {"polish": ("jac", "hess or hessp", "constraints' jac and hess")},
    "dual_annealing": {"local search": ("jac", "hess or hessp")},
    "basinhopping": {"local search": ("jac", "hess or hessp", "constraints' jac and hess")},
}
"""For each function and method the derivatives that are filled in; () where none is taken."""


def taken_by(function: str, method: str) -> tuple[str, ...]:
    """The derivatives that a method takes; those of an unknown method are none."""
    methods = {name.lower(): taken for name, taken in METHODS[function].items()}
    return methods.get(method.lower(), _NONE)


def as_markdown() -> str:
    """``METHODS`` as a table."""
    lines = ["| function | method | filled in |", "|---|---|---|"]
    for function, methods in METHODS.items():
        together: dict[tuple[str, ...], list[str]] = {}
        for method, taken in methods.items():
            together.setdefault(taken, []).append(method)
        for taken, names in together.items():
            lines.append(f"| `{function}` | {', '.join(names)} | {', '.join(taken) or 'nothing'} |")
    return "\n".join(lines)


def solve(solver: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call SciPy's function; inside a derivative call as the function differentiated would."""
    if STATE.run is not None:
        return call(solver, *args, **kwargs)
    return solver(*args, **kwargs)


def refuse_in_trace(tracer: Tracer, *_args: Any, **_options: Any) -> Any:
    """The meaning of a solver in a trace: none."""
    message = (
        "a solver of SciPy is not traced: call it outside of jit. The derivatives that it is given "
        "are compiled where that pays, and at once for a function under jit"
    )
    raise UntraceableError(message, tracer.position.location())


def known_here(**options: Any) -> dict[str, Any]:
    """Options that not all versions of SciPy have, without those that were not given."""
    return {name: value for name, value in options.items() if value is not None}


def size_of(x: Any) -> int:
    """How many unknowns a first guess holds."""
    return int(np.size(x))


class Filling:
    """The derivatives that are filled in for one call, told of when it ends.

    Parameters
    ----------
    function, method : str
        The solver; ``METHODS`` has them.
    verbose : int
        Whether to print a line for each derivative.
    shown : str, optional
        The function that was called, where it calls this one.
    instead : str, optional
        What to write there for SciPy's differences.
    """

    def __init__(
        self, function: str, method: str, verbose: int, *, shown: str = "", instead: str = ""
    ) -> None:
        self._function = function
        self._method = method
        self._shown = shown or function
        self._instead = instead
        self._verbose = verbose
        self._told: list[Derivative | Products | str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._verbose:
            return
        for line in self._told or [self._nothing()]:
            sys.stdout.write(f"fwdad: {line}\n")

    def _nothing(self) -> str:
        """Why nothing was filled in, where nothing was said."""
        who = self._shown if self._shown == self._function else f"the local search of {self._shown}"
        method = f'method="{self._method}"'
        if taken_by(self._function, self._method):
            return f"{who} has asked for no derivative"
        if self._method.lower() in (name.lower() for name in METHODS[self._function]):
            return f"{who} takes no derivative with {method}"
        return f"nothing is filled in for {method}, which is none of SciPy's"

    def say(self, line: str) -> None:
        """Say why something is not filled in."""
        self._told.append(line)

    def is_taken(self, name: str) -> bool:
        """Whether the method takes a derivative."""
        return name in taken_by(self._function, self._method)

    def given(self, name: str, value: Any) -> bool:
        """Whether the caller has said how a derivative is to be had."""
        if value is None:
            return False
        if isinstance(value, str):
            self.say(f"{name} is by SciPy's finite differences, because it is given as {value!r}")
        elif value is False:
            self.say(f"{name} is by SciPy's finite differences, because it is given as False")
        elif value is True:
            self.say(f"{name} is returned by the function itself, because it is given as True")
        else:
            self.say(f"{name} is as given")
        return True

    def fill(self, name: str, derivative: Evaluated, instead: str = "") -> Derivative:
        """A derivative for SciPy to call, by its name there."""
        way = self._instead or instead or f"{name}='2-point'"
        note = f"fwdad.scipy.{self._shown} fills in {name}. {way} takes finite differences instead"
        made = Derivative(name, derivative, note)
        self._told.append(made)
        return made

    def jacobian(self, name: str, f: Any, *, instead: str = "", **options: Any) -> Derivative:
        """The Jacobian as a matrix."""
        return self.fill(name, Jacobian(f, **options), instead)

    def jacobian_in(
        self, name: str, f: Any, form: SparseFormat, x0: Any, instead: str = "",
        *, free: bool = False, **options: Any,
    ) -> Derivative:  # fmt: skip
        """The Jacobian by colours in a form that the solver takes, where that pays.

        Of few unknowns it is a dense matrix. Where the solver needs ``free`` products only, an
        operator stands for what is not sparse.
        """
        if size_of(x0) <= FEW:
            return self.jacobian(name, f, instead=instead, **options)
        dense: Evaluated = JacobianOperator(f) if free else Jacobian(f, **options)
        holomorphic = options.get("holomorphic", False)
        return self.fill(name, JacobianByColours(dense, form, holomorphic=holomorphic), instead)

    def products(self, name: str, gradient: Any, instead: str) -> Products:
        """The Hessian's products with directions."""
        made = Products(gradient, lambda derivative: self.fill(name, derivative, instead))
        self._told[-2:] = [made]  # it tells which of both it was
        return made

    def pointwise(self, name: str, f: Any, *, parameters: bool) -> Derivative:
        """The Jacobians at the points of a mesh."""
        return self.fill(name, PointwiseJacobian(f, parameters=parameters))

    def boundary(self, name: str, bc: Any, *, parameters: bool, holomorphic: bool) -> Any:
        """The Jacobians of boundary conditions with respect to each of their arguments."""
        argnums = (0, 1, 2) if parameters else (0, 1)
        whole = self.jacobian(name, bc, argnums=argnums, holomorphic=holomorphic)

        def apart(*args: Any) -> tuple[Any, ...]:
            ends = np.cumsum([len(x) for x in args])[:-1]
            return tuple(np.split(whole(*args), ends, axis=1))

        return apart

    def objective(self, f: Any, jac: Any, hess: Any, hessp: Any, x0: Any) -> dict[str, Any]:
        """``jac``, ``hess`` and ``hessp`` of a function to be minimised, as the method takes them.

        Second derivatives are those of the gradient that the caller gives, if there is one.
        """
        own = Gradient(f)
        if not self.given("jac", jac) and self.is_taken("jac"):
            jac = self.fill("jac", own)
        by_differences = jac is False or (isinstance(jac, str) and jac in DIFFERENCES)
        if self.given("hess", hess) or self.given("hessp", hessp):
            return {"jac": jac, "hess": hess, "hessp": hessp}
        if by_differences:
            if self.is_taken("hess") or self.is_taken("hess or hessp"):
                self.say("hess is not filled in, because jac is by finite differences")
            return {"jac": jac, "hess": hess, "hessp": hessp}
        gradient: Any = own
        if jac is True:
            gradient = second_of(f)
        elif callable(jac) and not isinstance(jac, Derivative):
            gradient = jac
        differences = 'jac="2-point" with a method that takes no hess'
        few = size_of(x0) <= FEW
        if self.is_taken("hess or hessp") and not few:
            hessp = self.products("hessp", gradient, differences)
        elif self.is_taken("hess") or self.is_taken("hess or hessp"):
            whole = Hessian(gradient)
            by_colours = HessianByColours(whole, gradient, "dense")
            hess = self.fill("hess", whole if few else by_colours, differences)
        return {"jac": jac, "hess": hess, "hessp": hessp}
