"""A colouring as an object: its pattern, its colours, seeds, and decompression."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from fwdad.colouring.graphs import Indices, canonical_pattern, check_symmetric, row_indices
from fwdad.colouring.partial_distance2 import number_of
from fwdad.colouring.recovery import Recovery, recover_directly, recover_stars, recover_trees
from fwdad.errors import ColouringError, with_article

Kind = Literal["columns", "rows", "both", "star", "acyclic"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SYMMETRIC = ("star", "acyclic")
_WITH_COLUMNS = ("columns", "both", "star", "acyclic")
_WITH_ROWS = ("rows", "both")


@dataclass(frozen=True, eq=False, repr=False)
class Colouring:
    """Groups of columns, or of rows, of a sparse matrix that are differentiated together.

    A colour is a group. The sum of its columns is one product with the matrix, ``J @ seed``, and
    :meth:`decompress` finds the entries in all of these. ``colour`` makes colourings, and
    :meth:`from_colours` takes one that was made elsewhere, and checks it.

    Parameters
    ----------
    pattern : scipy.sparse.csr_array
        The entries, sorted by rows and columns: data are returned in this order.
    kind : {"columns", "rows", "both", "star", "acyclic"}
        What has colours: the columns; the rows; both; the columns of a symmetric matrix, each entry
        found directly ("star") or by substitution ("acyclic").
    column_colours, row_colours : array of int or None
        The colour of each column and row, from 0 on, and -1 for those that no product needs. None
        where the kind has none.
    order : str
        How the colours were found: the order of the greedy colouring, or "given".
    """

    pattern: sp.csr_array
    kind: Kind
    column_colours: Indices | None
    row_colours: Indices | None
    order: str = "given"

    def __repr__(self) -> str:
        m, n = self.pattern.shape
        return (
            f"<Colouring of {m} × {n} with {self.pattern.nnz} entries by {self.kind}: "
            f"{self.count} colours, {self.order}>"
        )

    @classmethod
    def from_colours(
        cls,
        pattern: Any,
        kind: Kind,
        *,
        columns: Any = None,
        rows: Any = None,
    ) -> Colouring:
        """Take colours that were found elsewhere.

        Parameters
        ----------
        pattern : sparse matrix or array
            Its stored entries are the pattern; of a dense array the nonzeros.
        kind : {"columns", "rows", "both", "star", "acyclic"}
            What has colours.
        columns, rows : array_like of int
            The colours, those that the kind has; -1 for none.

        Returns
        -------
        Colouring
            It has been verified.

        Raises
        ------
        ColouringError
            If the colours do not fit the pattern, or an entry cannot be found with them.
        """
        pattern = canonical_pattern(pattern)
        if kind not in KINDS:
            raise ColouringError(f"kind is one of {', '.join(KINDS)}, and {kind!r} came")
        if kind in SYMMETRIC:
            check_symmetric(pattern, kind)
        m, n = pattern.shape
        made = cls(
            pattern,
            kind,
            _checked(columns, n, "columns", kind, kind in _WITH_COLUMNS, pattern),
            _checked(rows, m, "rows", kind, kind in _WITH_ROWS, pattern),
        )
        made.verify()
        return made

    @property
    def column_count(self) -> int:
        """How many groups of columns there are: products with the matrix."""
        return 0 if self.column_colours is None else number_of(self.column_colours)

    @property
    def row_count(self) -> int:
        """How many groups of rows there are: products with its transpose."""
        return 0 if self.row_colours is None else number_of(self.row_colours)

    @property
    def count(self) -> int:
        """How many colours there are."""
        return self.column_count + self.row_count

    def column_seeds(self, dtype: Any = float, colours: slice = slice(None)) -> Any:
        """The matrix S of ``J @ S``: column c is 1 at the columns of colour c.

        Parameters
        ----------
        dtype : dtype, optional
            That of the seeds.
        colours : slice, optional
            Which colours; all by default.

        Returns
        -------
        ndarray
            Of shape (n, colours), in the order of memory that has each seed in one piece.

        Raises
        ------
        ColouringError
            If the kind has no colours of columns.
        """
        return self._seeds(self.column_colours, "columns", dtype, colours).T

    def row_seeds(self, dtype: Any = float, colours: slice = slice(None)) -> Any:
        """The matrix S of ``S @ J``: row c is 1 at the rows of colour c.

        Parameters
        ----------
        dtype : dtype, optional
            That of the seeds.
        colours : slice, optional
            Which colours; all by default.

        Returns
        -------
        ndarray
            Of shape (colours, m).

        Raises
        ------
        ColouringError
            If the kind has no colours of rows.
        """
        return self._seeds(self.row_colours, "rows", dtype, colours)

    def _seeds(self, of: Indices | None, side: str, dtype: Any, colours: slice) -> Any:
        if of is None:
            raise ColouringError(f'a colouring of kind="{self.kind}" has no colours of {side}')
        wanted = np.arange(number_of(of), dtype=of.dtype)[colours]
        return np.asarray(of[None, :] == wanted[:, None], dtype)

    def decompress(self, columns: Any = None, rows: Any = None) -> Any:
        """The entries of the matrix, from its products with the seeds.

        Parameters
        ----------
        columns : array_like, optional
            ``J @ column_seeds()``, of shape (m, column_count), where the kind has colours of
            columns.
        rows : array_like, optional
            ``row_seeds() @ J``, of shape (row_count, n), where it has colours of rows.

        Returns
        -------
        ndarray
            The data of a csr array with the pattern's indices.

        Raises
        ------
        ColouringError
            If a product is missing, or has another shape.
        """
        (m, n), recovery = self.pattern.shape, self.recovery
        if recovery.unknown.size:
            self.verify()
        columns = self._product(columns, "columns", (m, self.column_count), _WITH_COLUMNS)
        rows = self._product(rows, "rows", (self.row_count, n), _WITH_ROWS)
        return recovery.data(columns, rows)

    def matrix(self, columns: Any = None, rows: Any = None) -> sp.csr_array:
        """The matrix, from its products with the seeds: see :meth:`decompress`.

        Parameters
        ----------
        columns, rows : array_like, optional
            The products.

        Returns
        -------
        scipy.sparse.csr_array
            It has arrays of its own.
        """
        data = self.decompress(columns, rows)
        parts = (data, self.pattern.indices.copy(), self.pattern.indptr.copy())
        made = sp.csr_array(parts, shape=self.pattern.shape)
        made.has_canonical_format = True
        return made

    def _product(
        self, product: Any, side: str, shape: tuple[int, int], kinds: tuple[str, ...]
    ) -> Any:
        """A product as an array of the right shape."""
        if product is None or self.kind not in kinds:
            if product is None and (self.kind not in kinds or 0 in shape):
                return np.zeros(shape)
            verb = "needs" if product is None else "takes no"
            raise ColouringError(
                f'a colouring of kind="{self.kind}" {verb} product with its seeds of {side}: '
                f"decompress({side}=…) of shape {shape}"
            )
        product = np.asarray(product)
        if product.shape != shape or product.dtype.kind not in "biufcO":
            raise ColouringError(
                f"the product with the seeds of {side} is an array of numbers of shape {shape}, "
                f"and {with_article(product.dtype.name)} array of shape {product.shape} came"
            )
        return product

    @functools.cached_property
    def recovery(self) -> Recovery:
        """Where each entry is found in the products, as arrays of indices."""
        if self.kind == "star" and self.column_colours is not None:
            return recover_stars(self.pattern, self.column_colours)
        if self.kind == "acyclic" and self.column_colours is not None:
            return recover_trees(self.pattern, self.column_colours)
        return recover_directly(self.pattern, self.column_colours, self.row_colours)

    def verify(self) -> None:
        """Make sure that each entry is found.

        Raises
        ------
        ColouringError
            If one is not. It tells the first one.
        """
        unknown = self.recovery.unknown
        if unknown.size:
            k = unknown[0]
            i, j = int(row_indices(self.pattern)[k]), int(self.pattern.indices[k])
            raise ColouringError(
                f'these colours are no colouring of kind="{self.kind}": the entry ({i}, {j}) '
                f"cannot be found, as {unknown.size} of {self.pattern.nnz} cannot. Let "
                "fwdad.colouring.colour choose them"
            )

    def check_pattern(self, pattern: Any) -> None:
        """Make sure that a pattern is that of this colouring.

        Parameters
        ----------
        pattern : sparse matrix or array
            The pattern of the matrix that is to be compressed.

        Raises
        ------
        ColouringError
            If it is another one.
        """
        other, own = canonical_pattern(pattern), self.pattern
        if other.shape != own.shape:
            raise ColouringError(
                f"the colouring is of a pattern of shape {own.shape}, and this one has shape "
                f"{other.shape}. Colour this one"
            )
        same = np.array_equal(other.indptr, own.indptr)
        if not same or not np.array_equal(other.indices, own.indices):
            more = (other.astype(np.int8) - own.astype(np.int8)).data
            raise ColouringError(
                f"the colouring is of another pattern: this one has {int(np.sum(more > 0))} "
                f"entries more and {int(np.sum(more < 0))} fewer. Colour this one"
            )


def _checked(
    colours: Any, length: int, side: str, kind: str, wanted: bool, pattern: sp.csr_array
) -> Indices | None:
    """Colours as an array, if the kind has any on this side."""
    if (colours is not None) != wanted:
        verb = "needs" if wanted else "has no"
        raise ColouringError(f'kind="{kind}" {verb} colours of {side}')
    if colours is None:
        return None
    array = np.asarray(colours)
    if array.shape != (length,) or (array.size and array.dtype.kind not in "iu"):
        raise ColouringError(
            f"the colours of {side} are {length} ints, and {with_article(array.dtype.name)} array "
            f"of shape {array.shape} came"
        )
    if array.size and not -1 <= np.min(array) <= np.max(array) < max(length, 1):
        raise ColouringError(
            f"colours of {side} are from 0 to {length - 1}, or -1 for none, and they came from "
            f"{np.min(array)} to {np.max(array)}"
        )
    return array.astype(pattern.indices.dtype)
