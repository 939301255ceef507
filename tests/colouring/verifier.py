"""What a colouring is, from the definitions: by loops over rows, paths and cycles, and slow."""

import itertools

import numpy as np


def is_column_colouring(dense, colours):
    """No row has entries in two columns of one colour; a column with entries has a colour."""
    for row in dense != 0:
        mine = [colours[j] for j in np.flatnonzero(row)]
        if len(set(mine)) < len(mine) or -1 in mine:
            return False
    return True


def neighbours(dense):
    """For each vertex the others that it is joined with."""
    return [[j for j in np.flatnonzero(row) if j != i] for i, row in enumerate(dense != 0)]


def is_proper(dense, colours):
    return all(colours[i] != colours[j] for i, js in enumerate(neighbours(dense)) for j in js)


def is_star_colouring(dense, colours):
    """Proper, and each path on four vertices has three colours."""
    around = neighbours(dense)
    for a, bs in enumerate(around):
        for b in bs:
            for c in around[b]:
                for d in around[c]:
                    if c != a and d not in {a, b} and len({colours[v] for v in (a, b, c, d)}) < 3:
                        return False
    return is_proper(dense, colours)


def is_acyclic_colouring(dense, colours):
    """Proper, and each cycle has three colours: what two colours span has no cycle.

    A graph without cycles is empty once vertices with fewer than two neighbours are taken away.
    """
    around = neighbours(dense)
    for pair in itertools.combinations(sorted(set(colours)), 2):
        left = {v for v in range(len(around)) if colours[v] in pair}
        while leaves := {v for v in left if sum(w in left for w in around[v]) < 2}:
            left -= leaves
        if left:
            return False
    return is_proper(dense, colours)


def is_bidirectional(dense, columns, rows):
    """Each entry is alone in its row with its column's colour, or in its column with its row's."""
    there = dense != 0
    for i, j in zip(*np.nonzero(there), strict=True):
        in_row = [k for k in np.flatnonzero(there[i]) if columns[k] == columns[j]]
        in_column = [k for k in np.flatnonzero(there[:, j]) if rows[k] == rows[i]]
        by_column = columns[j] >= 0 and len(in_row) == 1
        by_row = rows[i] >= 0 and len(in_column) == 1
        if not (by_column or by_row):
            return False
    return True


def is_symmetric_recovery(dense, colours):
    """Each entry, or its mirror image, is alone in its row with its column's colour."""
    there = dense != 0
    for i, j in zip(*np.nonzero(there), strict=True):
        if not any(
            colours[b] >= 0
            and [k for k in np.flatnonzero(there[a]) if colours[k] == colours[b]] == [b]
            for a, b in ((i, j), (j, i))
        ):
            return False
    return True


def fewest_colours(dense, is_colouring):
    """The fewest colours of all, by trying every colouring up to renaming."""
    n = len(dense[0]) if len(dense) else 0
    for k in range(1, n + 1):
        for colours in _assignments(n, k):
            if is_colouring(dense, colours):
                return k
    return 0


def _assignments(n, k, start=()):
    """All ways to give n vertices k colours, where each new colour is the next number."""
    if len(start) == n:
        yield start
        return
    for c in range(min(max(start, default=-1) + 2, k)):
        yield from _assignments(n, k, (*start, c))
