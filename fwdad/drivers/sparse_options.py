"""The options of sparse derivatives, and how a call with them asks a tape."""

from __future__ import annotations

from typing import Any

from fwdad.errors import UnsupportedTypeError
from fwdad.evaluation.by_tape import Evaluator, Question

SPARSE = ("sparse", "format", "check")
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
        self._options = {k: d for k, d in self._options.items() if k not in SPARSE}


class Asks:
    """How a call of :func:`jacobian` or the like asks: with ``sparse`` for another evaluator."""

    def __init__(self, g: Any, evaluators: tuple[Any, Any], *given: Any) -> None:
        dense, sparse = evaluators
        self._dense = _AsksDense(g, dense, *given)
        self._sparse = Evaluator(g, sparse, *given)

    def __call__(self, f: Any, args: Any, kwargs: Any, look: Any) -> Question | None:
        """The question of a call, if it is one."""
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
