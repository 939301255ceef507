"""Values and gradients of a loss, summed over the parts of a data set in a fixed order."""

from __future__ import annotations

import functools
import weakref
from typing import Any, NamedTuple

from fwdad.core.tracebacks import leave
from fwdad.display.words import function_in_words
from fwdad.drivers.gradient import value_and_gradient
from fwdad.drivers.parallel.jacobians import check_outside
from fwdad.drivers.parallel.jobs import Failed, Job
from fwdad.drivers.parallel.parts import ZarrChunk, is_delayed, parts_of, resolved
from fwdad.drivers.parallel.pools import TRIES, DaskPool, LostTask, Pool, pool_of
from fwdad.drivers.parallel.schedule import Schedule, returned
from fwdad.drivers.parallel.shared_writes import no_draws
from fwdad.eager.arguments import copied
from fwdad.eager.build import run_on_duals
from fwdad.eager.lifting.reached import Carrier
from fwdad.errors import ExecutorError, UnsupportedTypeError, UntraceableError, type_in_words
from fwdad.evaluation.arguments import argument_numbers
from fwdad.evaluation.signatures import Argnums, Function
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.tangents.vectors import add_tangents


class Sum(NamedTuple):
    """The value and the gradient of some parts, and the aux of each, in order."""

    value: Any
    gradient: Any
    aux: list[Any]


def _added(a: Any, b: Any) -> Any:
    """The sum of two sums; a failure is that of the first part that has failed."""
    if isinstance(a, Failed) or isinstance(b, Failed):
        return a if isinstance(a, Failed) else b
    return Sum(a.value + b.value, add_tangents(a.gradient, b.gradient), a.aux + b.aux)


class PartJob(Job):
    """The loss on one part. ``parts`` are those that workers do not get with the task."""

    def __init__(self, f: Function, parts: list[Any], argnums: Argnums, options: Any) -> None:
        super().__init__(f, parts, argnums, options)
        self.parts = parts
        self.argnums = argnums
        self.options = options

    def call_plainly(self, k: int, part: Any, point: Any) -> Any:
        """See :class:`Job`."""
        (x, *more), kwargs = copied(point)
        part = copied(resolved(part if k < 0 else self.parts[k]))
        return run_on_duals(self.__wrapped__, (x, part, *more), kwargs)

    def run(self, k: int, part: Any, point: Any) -> Sum:
        """The part of a number, or the one that is given, at arguments besides it."""
        (x, *more), kwargs = point
        part = resolved(part if k < 0 else self.parts[k])
        with no_draws("the loss"):
            y, gradient = value_and_gradient(
                self.__wrapped__, self.argnums, (x, part, *more), kwargs, self.options
            )
        value, aux = y if self.options["has_aux"] else (y, None)
        return Sum(value, gradient, [aux])


class _Tree:
    """Sums of neighbours, whose shape depends on the number of parts alone."""

    def __init__(self, count: int) -> None:
        self._counts = [count]
        while self._counts[-1] > 1:
            self._counts.append((self._counts[-1] + 1) // 2)
        self._waiting: dict[tuple[int, int], Any] = {}

    def add(self, k: int, found: Any, added: Any = _added) -> Any:
        """Enter what part k gives; returns the whole sum, None before it is there."""
        level = 0
        while self._counts[level] > 1:
            beside = k ^ 1
            if beside < self._counts[level]:
                if (level, beside) not in self._waiting:
                    self._waiting[level, k] = found
                    return None
                other = self._waiting.pop((level, beside))
                found = added(found, other) if k < beside else added(other, found)
            level, k = level + 1, k // 2
        return found


class SummedGradient(Carrier):
    """Value and gradient of a loss over the parts of a data set; made by :func:`value_and_grad`."""

    def __init__(
        self, f: Function, argnums: Argnums, over: Any, executor: Any, *, has_aux: bool
    ) -> None:
        if not callable(f):
            raise UnsupportedTypeError(f"expected a function; got {type_in_words(f)}")
        self.argnums = argument_numbers(argnums)
        numbers = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
        if 1 in numbers:
            raise UnsupportedTypeError(
                f"argnums is {argnums!r}: argument 1 of the loss is the part of the data, of which "
                "there are many, and the gradient is that of what all parts have in common"
            )
        functools.update_wrapper(self, f, updated=())
        self.__wrapped__ = f
        self._over = over
        self._executor = executor
        self._has_aux = has_aux
        self._parts = parts_of(over)
        self._sent: dict[int, Any] = {}
        self._pool: Pool = pool_of(executor)  # raises now if it is none, or shut down
        self._taken = False
        weakref.finalize(self, self._pool.end)

    def _made_by(self) -> Any:
        options = self.__wrapped__, self.argnums, self._over, self._executor
        return functools.partial(SummedGradient, has_aux=self._has_aux), options

    def __repr__(self) -> str:
        what = function_in_words(self.__wrapped__)
        return f"<fwdad.value_and_grad of {what} over {len(self._parts)} parts>"

    def __call__(self, x: Any, *more: Any, **kwargs: Any) -> Any:
        """Value and gradient at arguments of the loss, without the part, which is its second."""
        _outside_only()
        try:
            return self._called((x, *more), kwargs)
        except BaseException as error:
            leave(error)
            raise

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        check_outside("over=")
        pool = self._pool
        if not self._taken:  # f and the data stay with the workers for later calls
            pool.take(self._job())
            self._taken = True
        point = pool.share((args, kwargs))
        try:
            if isinstance(pool, DaskPool):
                found = self._by_dask(pool, point)
            else:
                found = self._collected(pool, point)
        finally:
            pool.drop(point)
        y = (found.value, found.aux) if self._has_aux else found.value
        return y, found.gradient

    def _job(self) -> PartJob:
        # to Dask's workers each part goes by itself, to one of them
        parts = [] if isinstance(self._pool, DaskPool) else self._parts
        options = {"has_aux": self._has_aux, "value": True}
        return PartJob(self.__wrapped__, parts, self.argnums, options)

    def _collected(self, pool: Pool, point: Any) -> Any:
        tree, whole = _Tree(len(self._parts)), []

        def take(at: Any, found: Sum) -> None:
            made = tree.add(at[0], found)
            if made is not None:
                whole.append(made)

        tasks = ((k, None, point) for k in range(len(self._parts)))
        Schedule(pool, take).run(tasks)
        return whole[0]

    def _by_dask(self, pool: DaskPool, point: Any) -> Any:
        """The sums, too, are tasks: partial ones go from worker to worker."""
        for _ in range(TRIES):
            tree = _Tree(len(self._parts))
            whole = None
            for k in range(len(self._parts)):
                leaf = pool.send(-1, self._part_of(pool, k), point)
                whole = tree.add(k, leaf, functools.partial(pool.submit, _added))
            try:
                return returned(pool.result(whole))
            except LostTask:
                self._sent.clear()
                pool.renew()
                point = pool.share(pool.shared)
            except BaseException:
                pool.executor.cancel([whole])
                raise
        raise ExecutorError(
            f"the workers of a sum were lost {TRIES} times: were they killed, for want of memory? "
            "Take larger workers or smaller parts"
        )

    def _part_of(self, pool: DaskPool, k: int) -> Any:
        part = self._parts[k]
        if is_delayed(part):
            return pool.executor.compute(part)
        if isinstance(part, ZarrChunk):
            return part
        held = self._sent.get(k)
        if held is None or held.client is not pool.executor or held.status == "cancelled":
            held = self._sent[k] = pool.scattered(part)
        return held


def _outside_only() -> None:
    """Where this is called, no tape can be."""


@builtin(_outside_only)
def _traced(tracer: Tracer) -> None:
    raise UntraceableError(
        "a sum over the parts of a data set in a traced function: a tape has no other workers. "
        "Compile the loss: value_and_grad(jit(loss), over=...)",
        tracer.position.location(),
    )
