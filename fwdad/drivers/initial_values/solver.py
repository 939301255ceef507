r"""The handler of ``scipy.integrate.solve_ivp``: the solve, and the derivatives of what it returns.

The solver runs on plain numbers, exactly as SciPy runs it. Its result depends on the start and on
the parameters by way of the steps that it has accepted, whose derivatives are taken with the times
between them held. That is the internal differentiation of

    Bock (1981), "Numerical treatment of inverse problems in chemical reaction kinetics",
    in: Modelling of chemical reaction systems, Springer; see also Hairer, Nørsett and Wanner
    (1993), "Solving Ordinary Differential Equations I", section II.6.

For the derivatives S of the solution it is the same method with the same steps, applied to

.. math:: S' = f_y S + f_p

so they have the order of the solution, and no error control of their own. What moves the ends of
the interval moves the solution along f; the time of an event is an implicit function of the
solution.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.initial_values.adjoint import SolvePullback
from fwdad.drivers.initial_values.collocation import CollocationRecorder
from fwdad.drivers.initial_values.ends import Ends, Event
from fwdad.drivers.initial_values.outputs import Steps, give_derivatives
from fwdad.drivers.initial_values.propagation import Layout, pulled, pushed, replayed
from fwdad.drivers.initial_values.right_hand_side import (
    Matrix,
    OnDuals,
    RightHandSide,
    Traced,
    as_given,
    as_real,
)
from fwdad.drivers.initial_values.steps import (
    BdfRecorder,
    ExplicitRecorder,
    RadauRecorder,
    Recorder,
    Step,
    recorded,
)
from fwdad.drivers.initial_values.twins import Primals
from fwdad.drivers.solver_call import Watched, on_plain_numbers
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.eager.activity import is_active
from fwdad.eager.build import unseen
from fwdad.eager.calls.dispatch import call, handler
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.run import STATE, Tag
from fwdad.eager_reverse.reverse_rules import record_pullback
from fwdad.errors import UntraceableError
from fwdad.evaluation.evaluators import stop_gradient
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain

_RECORDERS: dict[str, type[Recorder]] = {
    "RK23": ExplicitRecorder,
    "RK45": ExplicitRecorder,
    "DOP853": ExplicitRecorder,
    "Radau": RadauRecorder,
    "BDF": BdfRecorder,
    "LSODA": CollocationRecorder,
}


class _Solve:
    """One call of ``solve_ivp``, inside a derivative."""

    def __init__(self, solver: Any, given: dict[str, Any], primals: Primals) -> None:
        self.solver = solver
        self.given = given
        self.primals = primals
        self.fun = given["fun"]
        args = () if given["args"] is None else tuple(given["args"])
        self.rhs = RightHandSide(self.fun, args, primals, column=bool(given["vectorized"]))
        events = given["events"]
        events = [] if events is None else [events] if callable(events) else list(events)
        self.events = [Event(g, args, primals) for g in events]
        self.ends = Ends(given["t_span"], given["t_eval"])
        self.y0 = explicit(call(np.asarray, given["y0"]))
        if plain(self.y0).dtype.kind not in "fc":
            self.y0 = call(np.asarray, self.y0, float)

    def run(self) -> Any:
        """SciPy's result, with derivatives where there are any."""
        found, recorder, options = on_plain_numbers(self._solved, self._is_active)
        if not self._is_active():
            return found
        tag = self._one_tag()
        with unseen() as run, run:  # the solver has made the effects of the functions
            recorder.finish(self.rhs, options)
            layout = Layout(recorder.steps)
            y0 = self.ends.start(self.rhs, self.y0)
            rows = self._rows(recorder.steps, layout, y0, tag)
            solution = Steps(recorder.steps, layout, rows, self.ends.direction)
            return give_derivatives(found, solution, self.rhs, self.ends, self.events)

    # -- the solve

    def _is_active(self) -> bool:
        """Whether the solution has derivatives; known when it was solved."""
        reads = [self.y0, *self.primals.duals()]
        asked = [self.rhs, *self.events]
        return is_active(reads) or self.ends.active or any(f.active for f in asked)

    def _solved(self, watched: Watched | None) -> tuple[Any, Recorder, dict[str, Any]]:
        """SciPy's result, what has noted its steps, and its options."""
        for f in (self.rhs, *self.events):
            f.watched = watched
        import scipy.integrate as library  # noqa: PLC0415  (its caller has imported it)

        given = self.given
        method = given["method"]
        cls = getattr(library, method) if isinstance(method, str) else method
        known = cls is getattr(library, cls.__name__, None)
        recorder = _RECORDERS[cls.__name__]() if known else CollocationRecorder()
        options = {k: stop_gradient(o) for k, o in given["options"].items() if k != "jac"}
        jac, args = given["options"].get("jac"), self.rhs.plain_args
        if callable(jac):
            options["jac"] = lambda t, y: stop_gradient(
                call(jac, t, y if watched is None else watched(y), *args)
            )
        elif jac is not None:
            options["jac"] = stop_gradient(jac)
        found = self.solver(
            self.rhs.plain, self.ends.span, stop_gradient(given["y0"]),
            method=recorded(cls, recorder), t_eval=stop_gradient(given["t_eval"]),
            dense_output=given["dense_output"], vectorized=given["vectorized"],
            events=[g.for_scipy() for g in self.events] or None, **options,
        )  # fmt: skip
        for f in (self.rhs, *self.events):
            f.watched = None
        if found.sol is not None and cls in (library.BDF, library.LSODA):  # as for the class itself
            sol = found.sol
            found.sol = library.OdeSolution(sol.ts, sol.interpolants, alt_segment=True)
        return found, recorder, options

    # -- the derivatives of the steps

    def _rows(self, steps: list[Step], layout: Layout, y0: Any, tag: Tag | None) -> Any:
        """All vectors of the steps, with their derivatives."""
        if tag is None:
            return self._on_all(steps, y0)
        candidates = [Candidate("tape", lambda: self._by_tape(steps, layout, y0, tag))]
        if tag.record is None:
            candidates.append(Candidate("duals", lambda: self._on_duals(steps, layout, y0, tag)))
        else:
            candidates.append(Candidate("recorded run", lambda: self._on_all(steps, y0)))
        return first_that_can("solution", self.fun, *candidates)

    def _one_tag(self) -> Tag | None:
        """The one call that all tangents belong to; None if there may be more."""
        if self.rhs.depth > 1:
            return None
        duals = [x for x in (self.y0, *self.primals.duals()) if isinstance_dual(x)]
        tags = {x.tag for x in duals} | {STATE.run.tag}
        return next(iter(tags)) if len(tags) == 1 else None

    def _by_tape(self, steps: list[Step], layout: Layout, y0: Any, tag: Tag) -> Any:
        f = self.rhs.traced(steps[0].t, steps[0].stages[0], tag)
        if isinstance(f, Untraced):
            return f
        try:
            if tag.record is None:
                return self._pushed(steps, layout, f, y0, tag)
            return self._recorded(steps, layout, f, y0, tag)
        except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
            return Untraced(self.fun, error)

    def _on_duals(self, steps: list[Step], layout: Layout, y0: Any, tag: Tag) -> Any:
        f = OnDuals(self.rhs, steps[0].stages[0], tag)
        return self._pushed(steps, layout, f, y0, tag)

    @staticmethod
    def _pushed(steps: list[Step], layout: Layout, f: Any, y0: Any, tag: Tag) -> Any:
        value = steps[0].stages[0]
        y0_dot = np.zeros((tag.n, *value.shape), value.dtype)
        if isinstance_dual(y0):
            y0_dot[...] = y0.t.lanes
        rows_dot = as_given(pushed(steps, layout, f, as_real(y0_dot)), value.dtype)
        rows = np.zeros((layout.rows, *value.shape), value.dtype)
        return Array(rows, Chunk(np.ascontiguousarray(np.swapaxes(rows_dot, 0, 1))), tag)

    @staticmethod
    def _recorded(steps: list[Step], layout: Layout, f: Traced, y0: Any, tag: Tag) -> Any:
        value = steps[0].stages[0]
        f.pull(steps[0].t, value, np.zeros(as_real(value).shape))  # it can be, or raises now
        first = [y0] if isinstance_dual(y0) else []

        def pull(rows_bar: Matrix) -> list[Any]:
            y0_bar, others = pulled(steps, layout, f, as_real(rows_bar.astype(value.dtype)))
            return [as_given(y0_bar, value.dtype), *others][1 - len(first) :]

        inputs = [*first, *f.duals]
        rows = np.zeros((layout.rows, *value.shape), value.dtype)
        dots = [tag.record.adopt(x.t) for x in inputs]
        pullback = SolvePullback(pull, inputs)
        return Array(rows, record_pullback(tag.record, dots, pullback, rows.shape, rows.dtype), tag)

    def _on_all(self, steps: list[Step], y0: Any) -> Any:
        """The steps once more on all duals, whichever calls they belong to."""
        f = self.rhs.traced(steps[0].t, steps[0].stages[0])
        jacobian = self.rhs.jacobian if isinstance(f, Untraced) else f.jacobian
        return replayed(steps, self.rhs, y0, jacobian, self.rhs.depth)


def _handled(solver: Any) -> Callable[..., Any]:
    signature = inspect.signature(solver)

    def solve(args: Any, kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        primals = Primals()
        try:
            return _Solve(solver, dict(bound.arguments), primals).run()
        finally:
            primals.release()

    return solve


def _refuse(tracer: Tracer, *_args: Any, **_options: Any) -> Any:
    """The meaning of the solver in a trace: none, which is known without tracing its source."""
    message = (
        "scipy.integrate.solve_ivp is not traced. Its derivatives are those of its steps, by a "
        "tape of fun, which is compiled if fun is under jit"
    )
    raise UntraceableError(message, tracer.position.location())


def _enter(solver: Any) -> None:
    handler(solver)(_handled(solver))
    builtin(solver)(_refuse)


when_imported("scipy.integrate.solve_ivp", _enter)
