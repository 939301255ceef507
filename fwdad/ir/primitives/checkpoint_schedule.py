"""Which states of a loop are kept, so that it can be run backwards without keeping all of them.

A state is kept at the beginning of some iterations; from it the loop is run again. Positions are
counted in iterations. A *leaf* is a run of iterations that are run backwards together, with what
they need kept on stacks. Backends have these functions too: they are plain arithmetic of integers.

References
----------
Griewank and Walther (2000), "Algorithm 799: revolve", doi:10.1145/347837.347846.
Wang, Moin and Iaccarino (2009), "Minimal repetition dynamic checkpointing algorithm for unsteady
adjoint calculation", doi:10.1137/080727890.
"""

from __future__ import annotations


def default_snapshots(n: int) -> int:
    """How many states are kept of a loop of n iterations: three repetitions are enough.

    Parameters
    ----------
    n : int
        Iterations.
    """
    k = 1
    while k * k * k < n:
        k += 1
    return 3 * k


def snapshots_in(memory: int, size: int) -> int:
    """How many states of a size there are in some memory; one at least.

    Parameters
    ----------
    memory : int
        Bytes.
    size : int
        Bytes of a state.
    """
    return max(memory // max(size, 1), 1)


def leaf_of_numbers(saved: int) -> int:
    """The length of a leaf where a state is a few numbers: a third of what may be kept.

    Parameters
    ----------
    saved : int
        How many states may be kept.
    """
    return max(saved // 3, 1)


def places_beside(saved: int, leaf: int) -> int:
    """How many states may be kept beside those of a leaf; one at least.

    Parameters
    ----------
    saved, leaf : int
        How many may be kept in all, and how many of them are those of a leaf.
    """
    return max(saved - leaf, 1)


def trips(start: int, stop: int, step: int) -> int:
    """How many iterations a range has.

    Parameters
    ----------
    start, stop, step : int
        Of the range.
    """
    if step > 0:
        return max((stop - start + step - 1) // step, 0)
    return max((start - stop - step - 1) // -step, 0)


def next_stop(p: int, end: int, used: int, places: int, leaf: int) -> int:
    """Where to stop on the way from a kept state to the leaf before an end.

    The binomial schedule: the fewest repetitions of an iteration for the places that are left, and
    as few iterations as they allow.

    Parameters
    ----------
    p : int
        A kept state; it is one of those used.
    end : int
        The iterations from here on have been run backwards.
    used, places : int
        How many states are kept, and may be.
    leaf : int
        The length of a leaf.

    Returns
    -------
    int
        Where the next state is kept, if there is a place for it; else the beginning of the leaf.
    """
    units = (end - p + leaf - 1) // leaf
    s = places - used + 1
    if s <= 1:
        return p + (units - 1) * leaf
    # reach = C(s + t, t) units are within reach of s states and t repetitions of each
    t, reach, before = 0, 1, 0
    while reach < units:
        t += 1
        before, reach = reach, reach * (s + t) // t
    if t < 1:
        return p
    fewer = before * s // (s + t - 1)  # C(s - 1 + t - 1, t - 1)
    return p + min(before, units - fewer) * leaf


def next_snapshot(p: int, end: int, used: int, places: int, leaf: int) -> int:
    """Where the next state is kept after one that was kept; -1 if none is.

    Parameters
    ----------
    p, end, used, places, leaf : int
        As :func:`next_stop` takes them.
    """
    stop = next_stop(p, end, used, places, leaf)
    return stop if used < places and end - stop > leaf else -1


def most_of_unknown(p: int, places: int) -> int:
    """How many states are kept at an iteration of a loop whose end is not known; an even number.

    Half of the places: the others are needed in the reverse pass.

    Parameters
    ----------
    p : int
        The iteration.
    places : int
        How many states may be kept; 0 for as many as a loop that ended here would keep.
    """
    found = default_snapshots(p) if places == 0 else places
    return max(found // 4 * 2, 2)
