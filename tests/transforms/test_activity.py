"""Activity analysis, against forward mode along one argument after the other."""

import numpy as np
import pytest

import fwdad
from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.ops import Value
from fwdad.transforms.activity import Activity


def elementwise(x, w, n):
    return np.sin(x) * 2.0, np.cos(w), np.floor(x), n * 2


def through_memory(x, w, n):
    a, b = np.zeros(3), np.zeros(3)
    a[0] = x[1]
    view = a[:2]
    b[1:] = w[1:]
    return view[1] + 0.0, b[0] + 1.0


def around_a_loop(x, w, n):
    a, b, c = w[0], w[1], w[2]
    for _ in range(n):
        a, b, c = b, c, c * x[0]
    return a, w[2] * 1.0


def one_side(x, w, n):
    y = w[0]
    if w[1] > 0.3:
        y = x[0] * y
    return y, w[1] * 2.0


def decided_by(x, w, n):
    return (w[0] if x[0] > 0.2 else w[1]), np.argmax(x), np.floor(x)


def summed(a, k):
    if k == 0:
        return 0.0
    return a[k - 1] + summed(a, k - 1)


def fill(out, a, k):
    if k == 0:
        return
    out[k - 1] = a[k - 1]
    fill(out, a, k - 1)


def recursive(x, w, n):
    return summed(x, n), summed(w, n)


def recursive_in_place(x, w, n):
    out, other = np.zeros(3), np.zeros(3)
    fill(out, x, n)
    fill(other, w, n)
    return out * 1.0, other * 1.0


PROGRAMS = [
    elementwise, through_memory, around_a_loop, one_side, decided_by, recursive,
    recursive_in_place,
]  # fmt: skip
X, W = np.array([0.4, 0.7, -0.3]), np.array([0.9, 0.5, 0.2])


def active_results(f, k):
    """Which results of a program may depend on its k-th argument."""
    program = fwdad.trace(f, X, W, 3).program
    block = program.block
    activity = Activity(block, [block.params[k]], memory_of(program))
    return [isinstance(r, Value) and activity.is_active(r) for r in block.results]


@pytest.mark.parametrize("k", [0, 1])
@pytest.mark.parametrize("f", PROGRAMS)
def test_what_has_a_derivative_is_active(f, k):
    y_dots = []
    for v in np.eye(3):
        if k == 0:
            _, y_dot = fwdad.jvp(f, X, v, args=(W, 3))
        else:
            _, y_dot = fwdad.jvp(lambda w: f(X, w, 3), W, v)
        y_dots.append([np.max(np.abs(t), initial=0.0) if _is_float(t) else 0.0 for t in y_dot])
    moving = np.max(y_dots, axis=0) > 0
    active = active_results(f, k)
    assert len(active) == len(moving)
    assert all(on for on, moves in zip(active, moving, strict=True) if moves)


def _is_float(t):
    return np.asarray(t).dtype.kind == "f"


@pytest.mark.parametrize(
    ("f", "of_x", "of_w"),
    [
        (elementwise, [True, False, False, False], [False, True, False, False]),
        (decided_by, [False, False, False], [True, False, False]),
        (around_a_loop, [True, False], [True, True]),
        (recursive, [True, False], [False, True]),
        (recursive_in_place, [True, False], [False, True]),
    ],
)
def test_what_cannot_have_one_is_not(f, of_x, of_w):
    assert active_results(f, 0) == of_x
    assert active_results(f, 1) == of_w
