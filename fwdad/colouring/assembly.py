"""A matrix from the entries of a pattern: SciPy's, in one of its formats, or a dense array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.graphs import row_indices
from fwdad.core.generated_source import define
from fwdad.errors import ColouringError
from fwdad.tangents.sparse import FORMATS, flatten_sparse


def check_format(form: Any) -> None:
    """Raise if there is no such format, or none that a Jacobian comes in."""
    if form not in (*FORMATS, "dense"):
        raise ColouringError(f"format is one of {', '.join(FORMATS)}, dense, and {form!r} came")


class Assembly:
    """Makes matrices from the entries of a pattern; they share arrays of indices, read-only.

    ``order`` has the number that each entry has in the pattern; None if that is the order.
    """

    def __init__(self, pattern: sp.csr_array, form: str) -> None:
        check_format(form)
        self.shape = pattern.shape
        self.order: Any = None
        self._form = form
        self._converts = form in ("bsr", "dia")
        self._size = pattern.indices.shape
        self._places: Any = None  # of the entries in a dense array
        made = pattern
        if form == "dense":
            self._places = row_indices(pattern).astype(np.intp) * self.shape[1] + pattern.indices
        elif form == "csc":
            numbers = np.arange(pattern.nnz, dtype=pattern.indices.dtype)
            parts = (numbers, pattern.indices, pattern.indptr)
            made = sp.csr_array(parts, shape=pattern.shape).tocsc()
            made.has_canonical_format = True
            self.order = made.data.astype(np.intp)
        elif form == "coo":
            places = (row_indices(pattern), pattern.indices)
            made = sp.coo_array((pattern.data, places), shape=pattern.shape)
            made.has_canonical_format = True
        structure = flatten_sparse(made)[1]
        attributes = {name: _read_only(x) for name, x in structure.attributes.items()}
        self._matrix = _matrix_of(structure.cls, attributes)

    def __call__(self, data: Any) -> Any:
        """The matrix with these entries; what is not one number for each comes as it is."""
        if self._places is not None:
            dense = np.zeros(self.shape, data.dtype)
            dense.reshape(-1)[self._places] = data
            return dense
        if data.shape != self._size:
            return data
        made = self._matrix(data)
        return made.asformat(self._form) if self._converts else made


def _matrix_of(cls: type, attributes: dict[str, Any]) -> Any:
    """A function of the entries that makes a matrix with these attributes.

    The constructor would check what is known, and takes as long as many a Jacobian; one assignment
    for each attribute is faster than to update the dictionary.
    """
    held = {f"held{k}": x for k, x in enumerate(attributes.values())}
    lines = ["def matrix(data):", "    made = new(cls)"]
    lines += [f"    made.{name} = held{k}" for k, name in enumerate(attributes)]
    lines += ["    made.data = data", "    return made", ""]
    namespace = {"new": object.__new__, "cls": cls, **held}
    return define("\n".join(lines), f"<fwdad {cls.__name__}>", namespace, "matrix")


def _read_only(x: Any) -> Any:
    """Read-only views of arrays of indices, which all matrices of an assembly share."""
    if isinstance(x, tuple):
        return tuple(map(_read_only, x))
    if not isinstance(x, np.ndarray):
        return x
    x.flags.writeable = False
    return x[:]
