"""Sparse matrices by columns: a dot product, and a matrix times a vector.

A matrix is ``data``, ``rows`` and ``starts``: what SciPy's ``csc_array`` calls ``data``,
``indices`` (sorted) and ``indptr``, the index arrays as int64.
"""

from __future__ import annotations

from fwdad.reversible import ancilla, compute, cond, copy_out, reversible


@reversible
def sparse_dot(s, a, rows_a, starts_a, b, rows_b, starts_b):
    """Add the sum of a's entries times b's to ``s``.

    The columns are merged: p and q go forward where the row is smaller, both where it is the same.
    Whoever went last has the larger row behind it, which tells the reverse pass.
    """
    for j in range(len(starts_a) - 1):
        with compute():
            p = ancilla(starts_a[j])
            q = ancilla(starts_b[j])
            t = ancilla(0.0)
            while cond(
                p < starts_a[j + 1] and q < starts_b[j + 1],
                p > starts_a[j] or q > starts_b[j],
            ):
                if cond(
                    rows_a[p] == rows_b[q],
                    p > starts_a[j] and q > starts_b[j] and rows_a[p - 1] == rows_b[q - 1],
                ):
                    t += a[p] * b[q]
                    p += 1
                    q += 1
                elif cond(
                    rows_a[p] < rows_b[q],
                    p > starts_a[j] and (q == starts_b[j] or rows_a[p - 1] > rows_b[q - 1]),
                ):
                    p += 1
                else:
                    q += 1
            with copy_out():
                s += t


@reversible
def sparse_product(y, data, rows, starts, x):
    """Add the matrix times ``x`` to ``y``; real or complex."""
    for j in range(len(x)):
        for p in range(starts[j], starts[j + 1]):
            y[rows[p]] += data[p] * x[j]
