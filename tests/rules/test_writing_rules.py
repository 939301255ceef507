"""Functions that write into an argument: a call is a store in every mode, whoever writes its rule.

What is right is told by differences of the same program with the function itself in it.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager_reverse.run import run_recorded
from fwdad.evaluation.arguments import Arguments
from tests.differences import central_differences

X = np.array([0.7, 1.1, 1.6])
WEIGHTS = np.array([1.0, -2.0, 3.0])


def blend(x, c):
    """Write a nonlinear function of x and c into x; return the sum of the old content."""
    total = np.sum(x)
    x *= np.sin(x) * c
    return total


def blend_frule(primals, tangents):
    (x, c), (x_dot, c_dot) = primals, tangents
    slope = (np.sin(x) + x * np.cos(x)) * c
    new_dot = slope * x_dot + x * np.sin(x) * c_dot
    return (np.sum(x), x * np.sin(x) * c), (np.sum(x_dot), new_dot)


def blend_rrule(primals):
    x, c = primals
    slope = (np.sin(x) + x * np.cos(x)) * c

    def pullback(bars):
        total_bar, new_bar = bars
        return np.ones_like(x) * total_bar + slope * new_bar, np.sum(x * np.sin(x) * new_bar)

    return (np.sum(x), x * np.sin(x) * c), pullback


def by_frule(x, c):
    total = np.sum(x)
    x *= np.sin(x) * c
    return total


def by_rrule(x, c):
    total = np.sum(x)
    x *= np.sin(x) * c
    return total


def by_both(x, c):
    total = np.sum(x)
    x *= np.sin(x) * c
    return total


fwdad.frule(by_frule, mutates=(0,))(blend_frule)
fwdad.rrule(by_rrule, mutates=(0,))(blend_rrule)
fwdad.frule(by_both, mutates=(0,))(blend_frule)
fwdad.rrule(by_both, mutates=(0,))(blend_rrule)
WRITERS = {"frule": by_frule, "rrule": by_rrule, "both": by_both}


# -- programs


def of_a_copy(write, x):
    y = x.copy()
    total = write(y, 2.0)
    return np.sum(y * y) + total


def of_the_argument(write, x):
    total = write(x, 2.0)
    return np.sum(x) * total


def twice(write, x):
    y = x.copy()
    write(y, x[0])
    write(y, x[1])
    return np.sum(y**2)


def old_content_is_read(write, x):
    y = x.copy()
    z = y**2
    before = np.sum(z * y)
    write(y, 1.5)
    return before + np.sum(y * z)


def in_a_loop(write, x):
    y = x.copy()
    total = 0.0
    for k in range(4):
        total = total + write(y, 1.0 + 0.1 * k) * x[k % 3]
    return total + np.sum(y)


def in_a_while_loop(write, x):
    y = x.copy()
    n = 0
    while np.sum(y) < 20.0 and n < 5:
        write(y, 3.0)
        n += 1
    return np.sum(y * x)


def in_a_branch(write, x):
    y = x.copy()
    if x[0] > 0.5:
        write(y, 2.0)
    else:
        y *= 3.0
    return np.sum(y * x)


def called(write, y, c):
    write(y, c)
    return np.sum(y)


def in_a_callee(write, x):
    y = x.copy()
    return called(write, y, x[2]) * np.sum(y)


def of_a_view(write, x):
    y = x.copy()
    write(y[1:], 2.0)
    return np.sum(y * y)


def seen_by_a_view(write, x):
    y = x.copy()
    head = y[:2]
    write(y, 2.0)
    return np.sum(head * head) + np.prod(y)


def of_a_row_and_a_column(write, x):
    m = np.outer(x, x)
    write(m[1], x[0])
    write(m[:, 2], 2.0)
    return np.sum(m * m)


def of_each_row(write, x):
    m = np.outer(x, x)
    total = 0.0
    for k in range(3):
        total = total + write(m[k], x[k])
    return np.sum(m * m) + total


def by_keywords(write, x):
    y = x.copy()
    write(c=x[0], x=y)
    return np.sum(y * y)


def unused(write, x):
    y = x.copy()
    write(y, 2.0)
    return np.sum(x * x)


def of_constants(write, x):
    y = np.array([1.0, 2.0, 3.0])
    write(y, 2.0)
    return np.sum(y * x)


def of_a_constant_array(write, x):
    y = np.array([1.0, 2.0, 3.0])
    write(y, x[1])
    return np.sum(y * x)


PROGRAMS = [
    of_a_copy,
    of_the_argument,
    twice,
    old_content_is_read,
    in_a_loop,
    in_a_while_loop,
    in_a_branch,
    in_a_callee,
    of_a_view,
    seen_by_a_view,
    of_a_row_and_a_column,
    of_each_row,
    by_keywords,
    unused,
    of_constants,
    of_a_constant_array,
]


def recorded(f, x):
    run = run_recorded(f, Arguments((x,), {}, (0,)))
    return run.pull([np.ones(())])[0]


FIRST = {
    "jvp": lambda f, x: fwdad.jvp(f, x, np.eye(3))[1],
    "forward, ragged chunks": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=2),
    "grad": lambda f, x: fwdad.grad(f)(x),
    "value_and_grad": lambda f, x: fwdad.value_and_grad(f)(x)[1],
    "vjp": lambda f, x: fwdad.vjp(f, x)[1](1.0),
    "jacrev": lambda f, x: fwdad.jacrev(f)(x),
    "matmat": lambda f, x: fwdad.linearize(f, x)[1].matmat(np.eye(3))[0],
    "rmatvec": lambda f, x: fwdad.linearize(f, x)[1].rmatvec(np.ones(1)),
    "traced grad": lambda f, x: fwdad.jit(fwdad.grad(f), backend="numpy")(x),
    "traced jacfwd": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "jacobian of jit": lambda f, x: fwdad.jacobian(fwdad.jit(f, backend="numpy"), x),
    "grad of jit": lambda f, x: fwdad.grad(fwdad.jit(f, backend="numpy"))(x),
}
SECOND = {
    "hessian": lambda f, x: fwdad.hessian(f, x) @ WEIGHTS,
    "hvp": lambda f, x: fwdad.hvp(f, x, WEIGHTS),
    "grad of grad": lambda f, x: fwdad.grad(lambda x: np.sum(fwdad.grad(f)(x) * WEIGHTS))(x),
}


@pytest.fixture(params=WRITERS)
def write(request):
    return WRITERS[request.param]


@pytest.mark.every(4, first=1)
@pytest.mark.parametrize("program", PROGRAMS)
def test_first_derivatives(program, write):
    want = central_differences(lambda x: program(blend, x), X)
    for mode, derivative in FIRST.items():
        x = X.copy()
        got = derivative(lambda x: program(write, x), x)
        assert_allclose(np.ravel(got), want, rtol=1e-8, atol=1e-8, err_msg=mode)
        assert_array_equal(x, X, err_msg=mode)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_call_without_derivatives_writes_as_the_function_does(program, write):
    x, plain = X.copy(), X.copy()
    y = fwdad.jit(lambda x: program(write, x), backend="numpy")(x)
    assert_allclose(y, program(blend, plain), rtol=1e-14)
    assert_array_equal(x, plain)


@pytest.mark.every(2)
@pytest.mark.parametrize("program", [of_a_copy, twice, in_a_loop, seen_by_a_view, of_each_row])
def test_second_derivatives(program, write):
    def directional(x):
        return np.dot(slopes_at(program, x), WEIGHTS)

    want = central_differences(directional, X)
    for mode, derivative in SECOND.items():
        x = X.copy()
        got = derivative(lambda x: program(write, x), x)
        assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=mode)
        assert_array_equal(x, X, err_msg=mode)


def slopes_at(program, x):
    """The gradient at x, by forward mode of the function's own source."""
    return fwdad.jacobian(lambda x: program(blend, x), x, mode="forward")


@pytest.mark.parametrize("program", PROGRAMS)
def test_recorded(program, write):
    want = central_differences(lambda x: program(blend, x), X)
    x = X.copy()
    got = recorded(lambda x: program(write, x), x)
    assert_allclose(got, want, rtol=1e-8, atol=1e-8)
    assert_array_equal(x, X)


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("program", [of_a_copy, of_the_argument, in_a_loop, of_a_view])
def test_compiled(program, write):
    pytest.importorskip("numba")
    want = central_differences(lambda x: program(blend, x), X)
    for transform in (fwdad.grad, fwdad.jacfwd):
        x = X.copy()
        got = fwdad.jit(transform(lambda x: program(write, x)))(x)
        assert_allclose(got, want, rtol=1e-8, atol=1e-8)
        assert_array_equal(x, X)
    x, plain = X.copy(), X.copy()
    y = fwdad.jit(lambda x: program(write, x))(x)
    assert_allclose(y, program(blend, plain), rtol=1e-14)
    assert_allclose(x, plain, rtol=1e-15)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tangents_of_what_is_written(n, write):
    """``outputs="mutated"`` of the function itself."""
    v = np.random.default_rng(n).normal(size=(n, 3))
    want = np.stack([(np.sin(X) + X * np.cos(X)) * 2.0 * lane for lane in v])
    for f in (write, lambda x, c: write(x, c)):
        y, y_dot = fwdad.jvp(f, X, v, args=(2.0,), outputs="mutated")
        assert_allclose(y, X * np.sin(X) * 2.0, rtol=1e-15)
        assert_allclose(y_dot, want, rtol=1e-14)


def test_arrays_from_outside_are_put_back(write):
    scratch = np.full(3, 5.0)

    def f(x):
        scratch[:] = x
        write(scratch, 2.0)
        return np.sum(scratch**2)

    def plain(x):
        y = x.copy()
        blend(y, 2.0)
        return np.sum(y**2)

    want = central_differences(plain, X)
    for mode in ("jvp", "grad", "vjp", "rmatvec"):
        assert_allclose(np.ravel(FIRST[mode](f, X)), want, rtol=1e-8, err_msg=mode)


def test_positions_are_those_of_primals():
    """The written primal need not be the first argument of the call."""

    def axpy(a, x, out, scale=1.0):
        out += scale * a * x

    @fwdad.frule(axpy, mutates=(1,), argnums=("x", "out"))
    def axpy_frule(primals, tangents, a, scale):
        (x, out), (x_dot, out_dot) = primals, tangents
        return (None, out + scale * a * x), (fwdad.ZERO, out_dot + scale * a * x_dot)

    def f(x):
        y = x**2
        axpy(3.0, x, y, scale=2.0)
        return np.sum(y * WEIGHTS)

    want = (2 * X + 6.0) * WEIGHTS
    for mode, derivative in FIRST.items():
        assert_allclose(np.ravel(derivative(f, X.copy())), want, rtol=1e-13, err_msg=mode)
    log = np.zeros(3)

    def keeps(x):
        axpy(1.0, np.ones(3), log)
        return np.sum(x * log)

    assert_array_equal(fwdad.jacobian(keeps, X, chunk=1, mode="forward"), np.ones(3))


def test_two_arguments_written():
    def rotate(x, y, angle):
        c, s = np.cos(angle), np.sin(angle)
        x[:], y[:] = c * x - s * y, s * x + c * y

    @fwdad.frule(rotate, mutates=(0, 1))
    def rotate_frule(primals, tangents):
        (x, y, angle), (x_dot, y_dot, angle_dot) = primals, tangents
        c, s = np.cos(angle), np.sin(angle)
        new = c * x - s * y, s * x + c * y
        new_dot = (
            c * x_dot - s * y_dot - new[1] * angle_dot,
            s * x_dot + c * y_dot + new[0] * angle_dot,
        )
        return (None, *new), (fwdad.ZERO, *new_dot)

    def run(turn, x):
        a, b = x.copy(), x**2
        for k in range(3):
            turn(a, b, x[k])
        return np.sum(a * WEIGHTS) * np.sum(b)

    def run_on_rows(turn, x):
        m = np.outer(x, x**2)
        turn(m[0], m[1], x[2])
        turn(m[:, 0], m[:, 2], x[1])
        return np.sum(m * WEIGHTS)

    def itself(x, y, angle):
        c, s = np.cos(angle), np.sin(angle)
        x[:], y[:] = c * x - s * y, s * x + c * y

    for program in (run, run_on_rows):
        want = central_differences(lambda x, program=program: program(itself, x), X)
        for mode, derivative in FIRST.items():
            got = derivative(lambda x, program=program: program(rotate, x), X.copy())
            assert_allclose(np.ravel(got), want, rtol=1e-8, err_msg=mode)


# -- what is refused


def test_two_arguments_that_share_memory(write):
    def copy_into(target, source):
        target *= source

    @fwdad.frule(copy_into, mutates=(0,))
    def copy_into_frule(primals, tangents):
        (a, b), (a_dot, b_dot) = primals, tangents
        return (None, a * b), (fwdad.ZERO, b * a_dot + a * b_dot)

    def f(x):
        y = x.copy()
        copy_into(y[1:], y[:-1])
        return np.sum(y)

    for mode in ("jvp", "grad", "vjp", "traced grad", "traced jacfwd"):
        with pytest.raises(
            fwdad.errors.AliasedArgumentError, match="`target`, which may share memory"
        ):
            FIRST[mode](f, X)


@pytest.mark.parametrize("mode", ["jvp", "grad", "traced grad"])
def test_what_is_written_is_an_array(mode, write):
    with pytest.raises(
        (fwdad.errors.UnsupportedTypeError, fwdad.errors.UntraceableError), match="`x`"
    ):
        FIRST[mode](lambda x: write(x[0], 2.0), X)


def test_wrong_registrations():
    def f(x, y):
        x += y

    for rule in (fwdad.frule, fwdad.rrule):
        with pytest.raises(ValueError, match="2 primals"):
            rule(f, mutates=(2,))(lambda primals: None)
    with pytest.raises(ValueError, match="must return new memory"):
        fwdad.frule(f, mutates=(0,), returns="view")
    with pytest.raises(ValueError, match="'old'"):
        fwdad.frule(f, returns="old")
    fwdad.frule(f, mutates=(0,))(lambda primals, tangents: None)
    with pytest.raises(fwdad.errors.DuplicateRuleError, match=r"mutates=\(0,\), but the rrule"):
        fwdad.rrule(f)(lambda primals: None)


def test_an_rrule_first():
    def f(x, y):
        x += y

    fwdad.rrule(f, mutates=(0,))(lambda primals: None)
    with pytest.raises(fwdad.errors.DuplicateRuleError, match=r"same mutates=\(0,\)"):
        fwdad.frule(f)(lambda primals, tangents: None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x, dx: (2 * x, 2 * dx), r"it must be a tuple of what the function returns"),
        (lambda x, dx: ((None, x[:2]), (fwdad.ZERO, dx[:2])), r"new contents of shape \(2,\)"),
        (lambda x, dx: ((None, 2 * x), (fwdad.ZERO, dx[:2])), r"tangent of shape \(2,\)"),
        (lambda x, dx: ((None, 2 * x), 2 * dx), r"a Chunk as y_dot|a Recorded as y_dot"),
    ],
)
def test_rules_that_return_something_else(answer, message):
    def double(x):
        x *= 2.0

    @fwdad.frule(double, mutates=(0,))
    def double_frule(primals, tangents):
        return answer(primals[0], tangents[0])

    def f(x):
        y = x.copy()
        double(y)
        return np.sum(y)

    for mode in ("jvp", "grad", "traced jacfwd"):
        with pytest.raises(fwdad.errors.ChunkMismatchError, match=message) as caught:
            FIRST[mode](f, X)
        assert "test_writing_rules.py:" in caught.value.msg


@pytest.mark.parametrize("outer", ["forward", "reverse"])
@pytest.mark.parametrize("inner", ["forward", "reverse"])
@pytest.mark.parametrize("how", ["assigned", "by itself", "a value"])
def test_second_derivatives_where_the_rule_fills_an_array(how, inner, outer):
    """Its memory has the tangents of the outer call, and its tangent those of the inner one."""

    def square(x, out):
        out[:] = x**2

    @fwdad.frule(square, argnums=("x", "out"), mutates=(1,))
    def square_frule(primals, tangents):
        (x, out), (x_dot, _) = primals, tangents
        y = np.empty_like(out)
        if how == "assigned":
            y[:] = x**2
        elif how == "by itself":
            square(x, y)
        else:
            y = x**2
        return (None, y), (fwdad.ZERO, 2 * x * x_dot)

    def f(x):
        out = np.empty(len(x))
        square(x, out)
        return np.sum(out**2)

    x = np.array([0.3, 1.2, -0.7])
    H = fwdad.jacobian(lambda x: fwdad.jacobian(f, x, mode=inner), x, mode=outer)
    np.testing.assert_allclose(H, np.diag(12 * x**2), rtol=1e-13)
