"""A derivative as SciPy calls it: run as it is at first, and compiled where that pays.

Compiling takes some tenths of a second, and nobody knows beforehand how often a solver will ask. So
the derivative runs as it is until its calls have taken as long as compiling it would have, and is
compiled then: whatever comes, this takes at most about twice as long as the better of the two ways.
Calls for the same function are added up over several solves. A compiled derivative that turns out
not to be faster is given up again.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from fwdad.api.jit import jit
from fwdad.codegen.numba_support import have_numba
from fwdad.core.fallbacks import Untraced
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.eager.run import STATE
from fwdad.errors import FwdadError
from fwdad.frontend.syntax.loops import WithoutWarnings
from fwdad.scipy.derivatives import Evaluated

_COMPILED_KEPT = 8


class Assumed(NamedTuple):
    """What is assumed of compilation where it is decided whether it pays.

    Seconds are of this thread's processor time, so that the load of the machine decides nothing;
    ``python -m benchmarks.scipy_door`` measures them.
    """

    compiling: float = 0.4
    """Tracing and compiling a derivative, which takes 0.1 to 1 s."""
    importing: float = 0.4
    """Importing Numba, where it is not imported yet."""
    tried: int = 4
    """Compiled calls after which their time is compared; the first of them is not counted."""


_ASSUMED: ContextVar[Assumed] = ContextVar("assumed of compilation", default=Assumed())  # noqa: B039


@contextmanager
def assuming(**changed: Any) -> Iterator[None]:
    """Within this, other things are assumed: ``compiling=math.inf`` compiles nothing."""
    token = _ASSUMED.set(_ASSUMED.get()._replace(**changed))
    try:
        yield
    finally:
        _ASSUMED.reset(token)


class Spent:
    """The processor time that a derivative of one function has taken as it is."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self.refused = ""  # why it is not compiled, if that was tried

    @property
    def price(self) -> float:
        """What compiling it would cost now."""
        assumed = _ASSUMED.get()
        return assumed.compiling + (0.0 if "numba" in sys.modules else assumed.importing)

    def pays(self) -> bool:
        """Whether it would have paid to compile it at once."""
        return self.seconds >= self.price and not self.refused


class Compiled:
    """A derivative that is compiled, and the times of its first calls."""

    def __init__(self, derivative: Evaluated, function: Any) -> None:
        self.derivative = derivative
        self.function = function
        self.times: list[float] = []


_SPENT: weakref.WeakKeyDictionary[Any, dict[Any, Spent]] = weakref.WeakKeyDictionary()
# these keep their functions alive, with all that they have captured, so there are few of them
_COMPILED: dict[Any, Compiled] = {}


def _spent_on(derivative: Evaluated) -> Spent:
    """What calls for this function have taken, also in earlier solves."""
    try:
        return _SPENT.setdefault(derivative.f, {}).setdefault(derivative.kind, Spent())
    except TypeError:  # it cannot be hashed, or referred to weakly
        return Spent()


def _kept(derivative: Evaluated) -> Compiled | None:
    """The same derivative of an earlier solve, which is the latest again."""
    try:
        found = _COMPILED.pop((derivative.kind, derivative.f), None)
    except TypeError:
        return None
    return found if found is None else _keep(found)


def _keep(compiled: Compiled) -> Compiled:
    """Keep a compiled derivative for the next solve, where its function can be found again."""
    try:
        _COMPILED[compiled.derivative.kind, compiled.derivative.f] = compiled
    except TypeError:
        return compiled
    while len(_COMPILED) > _COMPILED_KEPT:
        _COMPILED.pop(next(iter(_COMPILED)), None)
    return compiled


class Derivative:
    """A derivative that stands where SciPy wants a function.

    Parameters
    ----------
    name : str
        SciPy's name for it, such as ``jac``.
    derivative : Evaluated
        What it is.
    instead : str
        What to write for SciPy's own differences, for those whose function has no derivative.
    """

    def __init__(self, name: str, derivative: Evaluated, instead: str) -> None:
        self.name = name
        self.calls = 0
        self._instead = instead
        self._spent = _spent_on(derivative)
        self._compiled = _kept(derivative)
        self._derivative = derivative if self._compiled is None else self._compiled.derivative
        self._compiled_from = 0  # the number of the call; 0 if it was in an earlier solve
        self._nested = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative at a point."""
        self.calls += 1
        args = tuple(_float(x) if k in self._derivative.argnums else x for k, x in enumerate(args))
        if STATE.run is not None:  # a solver inside a function that is being differentiated
            self._nested = True
            return self._derivative(*args, **kwargs)
        try:
            return self._chosen(args, kwargs)
        except FwdadError as error:
            if error.refuses and self._instead not in getattr(error, "__notes__", ()):
                error.add_note(self._instead)
            raise

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._compiled is None and self._is_to_be_compiled():
            to_compile = self._derivative.to_compile()
            if to_compile is not None:
                self._compiled = _keep(Compiled(self._derivative, jit(to_compile)))
                self._compiled_from = self.calls
        compiled = self._compiled
        if compiled is None:
            return self._as_it_is(args, kwargs)
        return first_that_can(
            self.name,
            self._derivative.f,
            Candidate("compiled", lambda: self._by_machine_code(compiled, args, kwargs)),
            Candidate("as it is", lambda: self._as_it_is(args, kwargs)),
        )

    def _is_to_be_compiled(self) -> bool:
        """Whether it pays; what the user has compiled is compiled from the second call on."""
        if not have_numba() or self._spent.refused or not self._spent.calls:
            return False
        return isinstance(self._derivative.f, Jitted) or self._spent.pays()

    def _as_it_is(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        begin = time.thread_time()
        value = self._derivative(*args, **kwargs)
        self._spent.seconds += time.thread_time() - begin
        self._spent.calls += 1
        return value

    def _by_machine_code(
        self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        begin = time.thread_time()
        try:
            with WithoutWarnings() as silent, silent:
                value = compiled.function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  (reported, unless it is the program's)
            untraced = Untraced(self._derivative.f, error)
            self._give_up(untraced.reason)
            return untraced
        tried = _ASSUMED.get().tried
        if len(compiled.times) < tried:
            compiled.times.append(time.thread_time() - begin)
            if len(compiled.times) == tried:
                self._compare(compiled.times)
        return value

    def _compare(self, times: list[float]) -> None:
        """Give up what is compiled if it is no faster."""
        if not self._spent.calls:
            return
        compiled, plain = min(times[1:]), self._spent.seconds / self._spent.calls
        if compiled > plain:
            self._give_up(
                f"compiled, a call took {_seconds(compiled)}, and {_seconds(plain)} without"
            )

    def _give_up(self, reason: str) -> None:
        self._compiled = None
        self._spent.refused = reason
        try:
            _COMPILED.pop((self._derivative.kind, self._derivative.f), None)
        except TypeError:
            return

    def __str__(self) -> str:
        if not self.calls:
            return f"{self.name} is filled in, but was never called"
        called = "1 call" if self.calls == 1 else f"{self.calls} calls"
        return f"{self.name} is {self._derivative.how()}; {called}{self._by()}"

    def _by(self) -> str:
        """What has run it, and why, where `how` does not tell."""
        if self._compiled is not None:
            return f", compiled by Numba {self._since()}"
        if self._derivative.to_compile() is None:
            return ""
        return f", not compiled{self._why_not()}"

    def _since(self) -> str:
        """Since when it is compiled."""
        if not self._compiled_from:
            return "in an earlier solve"
        since = f"from call {self._compiled_from} on"
        if isinstance(self._derivative.f, Jitted):
            return f"{since}, because the function is under jit"
        return f"{since}, because {self._took(self._compiled_from - 1, 'those before')}"

    def _took(self, own: int, those: str) -> str:
        """How long the calls have taken that were not compiled, of which this solve has its own."""
        spent = self._spent
        who = those if spent.calls == own else f"{spent.calls} calls, over several solves,"
        return f"{who} took {_seconds(spent.seconds)}"

    def _why_not(self) -> str:
        """Why it is not compiled, and when it will be."""
        spent = self._spent
        if not have_numba():
            return ", because Numba is not installed"
        if self._nested:
            return ", because the solve is inside a derivative call"
        if spent.refused:
            return f", because {spent.refused.splitlines()[0]}"
        took = self._took(self.calls, "they")
        if self._is_to_be_compiled():
            return f" (the next call compiles it; so far {took})"
        price = _seconds(spent.price)
        return f" (it will be once its calls have taken {price} of processor time; so far {took})"


def _float(x: Any) -> Any:
    """Ints as floats: SciPy hands on what the user has given as a first guess."""
    kind = getattr(getattr(x, "dtype", None), "kind", "")
    if isinstance(x, int) or kind in ("i", "u", "b"):
        return np.asarray(x, float)[()]
    return x


def _seconds(t: float) -> str:
    return f"{t:.3g} s" if t >= 1 else f"{t * 1e3:.3g} ms" if t >= 1e-3 else f"{t * 1e6:.3g} µs"
