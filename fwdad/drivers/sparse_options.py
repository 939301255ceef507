"""The options of sparse derivatives, and how a call with them asks a tape."""

from __future__ import annotations

from typing import Any

from fwdad.errors import UnsupportedTypeError, UntraceableError
from fwdad.evaluation.by_tape import Evaluator, Question

SPARSE = ("sparse", "format", "check")
BLOCKWISE = ("executor", "checkpoint_to")
"""Options of how the work is done, of which no tape knows."""
SPARSE_JACOBIAN = "sparse jacobian"
"""What is chosen where one is computed."""


def sparse_options(sparse: Any, form: str, way: str, *, check: bool) -> dict[str, Any]:
    """The options of a sparse derivative in a form that can be compared; none of a dense one.

    ``way`` is the mode, or "symmetric".
    """
    if sparse is None:
        if form != "csr" or check is not True:
            raise UnsupportedTypeError(
                "format= and check= are of sparse Jacobians: pass sparse=True, or a pattern"
            )
        return {}
    from fwdad.drivers.sparse.plans import plan_for  # noqa: PLC0415  (SciPy's sparse package)

    plan = sparse if sparse is True else plan_for(sparse, way, form)
    return {"sparse": plan, "format": form, "check": bool(check)}


class _AsksDense(Evaluator):
    """How a call without ``sparse`` asks."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._options = {k: d for k, d in self._options.items() if k not in (*SPARSE, *BLOCKWISE)}


class _AsksSparse(Evaluator):
    """How a call with ``sparse`` asks."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._options = {k: d for k, d in self._options.items() if k not in BLOCKWISE}


class Asks:
    """How a call of :func:`jacobian` or the like asks: with ``sparse`` for another evaluator."""

    def __init__(self, g: Any, evaluators: tuple[Any, Any], *given: Any) -> None:
        dense, sparse = evaluators
        self._dense = _AsksDense(g, dense, *given)
        self._sparse = _AsksSparse(g, sparse, *given)

    def __call__(self, f: Any, args: Any, kwargs: Any, look: Any) -> Question | None:
        """The question of a call, if it is one."""
        if any(look.example(kwargs[k]) is not None for k in BLOCKWISE if k in kwargs):
            return None
        sparse = look.example(kwargs["sparse"]) if "sparse" in kwargs else None
        if sparse is None:
            return self._dense(f, args, kwargs, look)
        asked = self._sparse(f, args, kwargs, look)
        if asked is None:
            return None
        form, way = asked.options["format"], asked.options.get("mode", "symmetric")
        # what is asked for again has been checked
        unchecked = sparse_options(sparse, form, way, check=False)
        return asked._replace(options=asked.options | unchecked)


def blockwise_options(executor: Any, checkpoint_to: Any, sparse: Any) -> dict[str, Any]:
    """The options of a derivative that is made block by block; none of another."""
    found = dict(zip(BLOCKWISE, (executor, checkpoint_to), strict=True))
    found = {name: value for name, value in found.items() if value is not None}
    if found and sparse is not None:
        raise UnsupportedTypeError(
            f"{next(iter(found))}= with sparse=: sparse Jacobians are made by one process. Leave "
            "one of the two out, or take the Jacobian of s -> f(x + S @ s) at zero, where S has a "
            "column for each colour"
        )
    return found


def refuse_blockwise(tracer: Any, options: dict[str, Any]) -> None:
    """Refuse in a trace what a tape cannot do."""
    for name in BLOCKWISE:
        if options.pop(name, None) is not None:
            raise UntraceableError(
                f"{name}= in a traced function: a tape has no other workers. Leave out jit, or put "
                "it inside: jacobian(jit(f), x, executor=...)",
                tracer.position.location(),
            )
