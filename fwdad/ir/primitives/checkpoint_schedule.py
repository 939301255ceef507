"""The checkpoint schedule: which states of a loop are kept for its reverse pass.

A state is kept at the beginning of some iterations, and the loop runs again from it. Positions are
counted in iterations. A *leaf* is a sequence of iterations that are reversed together, with their
residuals on stacks. Backends have these functions, too, since they are integer arithmetic.

References
----------
Griewank and Walther (2000), "Algorithm 799: revolve", doi:10.1145/347837.347846.
Wang, Moin and Iaccarino (2009), "Minimal repetition dynamic checkpointing algorithm for unsteady
adjoint calculation", doi:10.1137/080727890.
"""

from __future__ import annotations

from fwdad.ops.record import own_op


@own_op()
def default_snapshots(n: int) -> int:
    """How many states of a loop of n iterations are kept: enough for three repetitions of each."""
    k = 1
    while k * k * k < n:
        k += 1
    return 3 * k


@own_op()
def snapshots_in(memory: int, size: int) -> int:
    """How many states of ``size`` bytes fit into ``memory`` bytes; at least one."""
    return max(memory // max(size, 1), 1)


@own_op()
def leaf_of_numbers(saved: int) -> int:
    """The length of a leaf whose states are a few numbers: a third of what may be kept."""
    return max(saved // 3, 1)


@own_op()
def places_beside(saved: int, leaf: int) -> int:
    """How many states may be kept besides those of a leaf; at least one."""
    return max(saved - leaf, 1)


@own_op()
def trips(start: int, stop: int, step: int) -> int:
    """The trip count of a range."""
    if step > 0:
        return max((stop - start + step - 1) // step, 0)
    return max((start - stop - step - 1) // -step, 0)


@own_op()
def next_stop(p: int, end: int, used: int, places: int, leaf: int) -> int:
    """Where to stop on the way from the kept state ``p`` to the last leaf before ``end``.

    Binomial schedule: the fewest repetitions per iteration for the free places, in as few
    iterations as possible. ``used`` states are kept, ``p`` among them; from ``end`` on all is
    reversed. Returns where the next state is kept if a place is free, else the start of the leaf.
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


@own_op()
def next_snapshot(p: int, end: int, used: int, places: int, leaf: int) -> int:
    """Where the next state is kept after the state ``p``; -1 if nowhere.

    The arguments are those of :func:`next_stop`.
    """
    stop = next_stop(p, end, used, places, leaf)
    return stop if used < places and end - stop > leaf else -1


@own_op()
def most_of_unknown(p: int, places: int) -> int:
    """How many states a loop of unknown trip count keeps at iteration ``p``; an even number.

    Half of ``places``, since the reverse pass needs the others; 0 places mean as many as a loop of
    p iterations would keep.
    """
    snapshots = default_snapshots(p) if places == 0 else places
    return max(snapshots // 4 * 2, 2)
