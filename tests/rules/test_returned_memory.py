"""Whose memory a function with a rule returns: new, a view of an argument, or either."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager_reverse.run import run_recorded
from fwdad.evaluation.arguments import Arguments
from tests.differences import central_differences

X = np.array([1.0, 2.0, 3.0])


def front(x):
    return x[:2]


def front_frule(primals, tangents):
    return primals[0][:2], tangents[0][:2]


def front_copied(x):
    return x[:2].copy()


def front_copied_frule(primals, tangents):
    return primals[0][:2].copy(), tangents[0][:2]


def viewing(returns, function=front, rule=front_frule):
    """A new function with a rule."""

    def head(x):
        return function(x)

    fwdad.frule(head, returns=returns)(rule)
    return head


# -- what is right, whatever is a view


def write_the_result(head, x):
    y = x.copy()
    h = head(y)
    h *= 3.0
    return y * y


def write_the_argument(head, x):
    y = x.copy()
    h = head(y)
    y *= 3.0
    return np.append(h * h, y)


def write_both(head, x):
    y = x.copy()
    h = head(y)
    h[0] = y[2] * y[1]
    y[1] = h[0] + 1.0
    return np.append(h * h, y)


def write_neither(head, x):
    h = head(x)
    return np.append(h * h, x)


def chosen_in_a_loop(head, x):
    y = np.append(x, x)
    for k in range(3):
        h = head(y[k:])
        h *= x[k]
    return y


PROGRAMS = [write_the_result, write_the_argument, write_both, write_neither, chosen_in_a_loop]


def recorded(f, x):
    run = run_recorded(f, Arguments((x,), {}, (0,)))
    return np.stack([run.pull([e])[0] for e in np.eye(len(f(x.copy())))])


MODES = {
    "jvp": lambda f, x: fwdad.jvp(f, x, np.eye(3))[1].T,
    "forward": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=2),
    "jacrev": lambda f, x: fwdad.jacrev(f)(x),
    "pullback": lambda f, x: fwdad.vjp(f, x)[1](np.eye(len(f(x.copy())))),
    "recorded": recorded,
    "matmat": lambda f, x: fwdad.linearize(f, x)[1].matmat(np.eye(3)),
    "rmatmat": lambda f, x: fwdad.linearize(f, x)[1].rmatmat(np.eye(len(f(x.copy())))).T,
    "hessian": lambda f, x: np.stack(
        [fwdad.grad(lambda x, k=k: f(x)[k])(x) for k in range(len(f(x.copy())))]
    ),
}
TRACED = {
    "jacfwd": lambda f, x, **options: fwdad.jit(fwdad.jacfwd(f), **options)(x),
    "jacobian of jit": lambda f, x, **options: fwdad.jacobian(fwdad.jit(f, **options), x),
    "grads": lambda f, x, **options: np.stack(
        [
            fwdad.jit(fwdad.grad(lambda x, k=k: f(x)[k]), **options)(x)
            for k in range(len(f(x.copy())))
        ]
    ),
}


@pytest.mark.every(3, first=1)
@pytest.mark.slow_cases("write_both-either: a view", "write_the_argument-new")
@pytest.mark.parametrize(
    ("returns", "function", "rule"),
    [
        ("view", front, front_frule),
        ("either", front, front_frule),
        ("either", front_copied, front_copied_frule),
        ("new", front_copied, front_copied_frule),
    ],
    ids=["view", "either: a view", "either: a copy", "new"],
)
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives(program, returns, function, rule):
    head = viewing(returns, function, rule)

    def f(x):
        return program(head, x)

    want = central_differences(lambda x: program(function, x), X)
    for mode, derivative in MODES.items():
        x = X.copy()
        assert_allclose(derivative(f, x), want, rtol=1e-8, atol=1e-8, err_msg=mode)
        assert_array_equal(x, X, err_msg=mode)
    for mode, derivative in TRACED.items():
        try:
            got = derivative(f, X, backend="numpy")
        except fwdad.errors.UntraceableError:
            assert returns != "new", mode
            assert program is not write_neither, mode
        else:
            assert_allclose(got, want, rtol=1e-8, atol=1e-8, err_msg=mode)
    y = fwdad.jit(f, backend="numpy")(X.copy())
    assert_array_equal(y, program(function, X.copy()))


def test_compiled():
    pytest.importorskip("numba")
    head = viewing("new", front_copied, front_copied_frule)
    for program in PROGRAMS:
        want = central_differences(lambda x, p=program: p(front_copied, x), X)
        got = fwdad.jit(fwdad.jacfwd(lambda x, p=program: p(head, x)))(X)
        assert_allclose(got, want, rtol=1e-8, atol=1e-8)
    view = viewing("view")
    with pytest.raises(
        fwdad.errors.UntraceableError, match="returns='view', and that memory is written"
    ):
        fwdad.jit(fwdad.jacfwd(lambda x: write_the_result(view, x)))(X)


# -- promises that are broken


def raises_rule_error(match, f, x=X):
    with pytest.raises(fwdad.errors.RuleError, match=match) as caught:
        f(x)
    assert "test_returned_memory.py:" in caught.value.msg  # where the rule is
    assert caught.value.filename == __file__  # where it is called
    return caught.value


@pytest.mark.parametrize("mode", [*MODES, *TRACED])
@pytest.mark.parametrize("program", [write_the_result, write_neither])
def test_a_view_that_is_not_declared(mode, program):
    head = viewing("new")
    derivative = {**MODES, **TRACED}[mode]
    raises_rule_error(
        "returns memory of an argument", lambda x: derivative(lambda x: program(head, x), x)
    )


def test_a_function_under_jit():
    head = viewing("new")
    raises_rule_error("returns memory", fwdad.jit(lambda x: head(x) * 2.0))


def test_a_view_that_depends_on_values():
    """What samples do not show is seen when a tape runs."""

    def positive(x):
        return x if x[0] > 2.0 else np.abs(x)

    @fwdad.frule(positive)
    def positive_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.abs(x), np.sign(x) * x_dot

    f = fwdad.jit(lambda x: positive(x) * 2.0, backend="numpy")
    assert_array_equal(f(-X), 2 * X)
    raises_rule_error("returns memory of an argument", f, X + 5.0)


@pytest.mark.parametrize("mode", ["jvp", "forward", "recorded"])
def test_a_rule_that_returns_a_view_where_the_function_copies(mode):
    head = viewing("new", front_copied, front_frule)
    raises_rule_error("returns memory", lambda x: MODES[mode](lambda x: head(x) * 1.0, x))


@pytest.mark.parametrize("mode", ["jacfwd", "grads"])
def test_on_a_tape_such_a_rule_is_given_a_copy(mode):
    head = viewing("new", front_copied, front_frule)
    want = central_differences(lambda x: write_the_result(front_copied, x), X)
    got = TRACED[mode](lambda x: write_the_result(head, x), X, backend="numpy")
    assert_allclose(got, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("mode", ["jvp", "recorded", "jacrev"])
def test_a_copy_that_is_declared_to_be_a_view(mode):
    head = viewing("view", front_copied, front_copied_frule)
    raises_rule_error("shares no memory", lambda x: MODES[mode](lambda x: head(x) * 1.0, x))


def test_a_view_without_a_tangent():
    head = viewing("view", front, lambda primals, tangents: (primals[0][:2], fwdad.ZERO))
    raises_rule_error("ZERO as its tangent", lambda x: fwdad.jacobian(head, x))


def test_two_results_in_one_memory():
    def both(x):
        y = 2 * x
        return y, y[1:]

    @fwdad.frule(both)
    def both_frule(primals, tangents):
        y, t = 2 * primals[0], 2 * tangents[0]
        return (y, y[1:]), (t, t[1:])

    raises_rule_error("share memory with each other", lambda x: fwdad.jvp(both, x, x))
    raises_rule_error("share memory with each other", fwdad.jit(lambda x: both(x)[0]))


def test_views_of_options_and_of_lists():
    def pick(x, *, table):
        return table[: len(x)]

    @fwdad.frule(pick)
    def pick_frule(primals, tangents, *, table):
        return table[:3], 0.0 * tangents[0]

    raises_rule_error(
        "returns memory", lambda x: fwdad.jvp(lambda x: pick(x, table=np.ones(4)), x, x)
    )

    def first(parts):
        return parts[0]

    @fwdad.frule(first)
    def first_frule(primals, tangents):
        return primals[0][0], tangents[0][0]

    raises_rule_error("returns memory", lambda x: fwdad.jvp(lambda x: first([x, x]), x, x))


@pytest.mark.parametrize("kind", ["elementwise", "linear", "multilinear", "locally_constant"])
def test_other_ways_to_write_a_rule(kind):
    def same(x):
        return x

    register = {
        "elementwise": lambda: fwdad.elementwise(same, lambda x, y: 1.0),
        "linear": lambda: fwdad.linear(same),
        "multilinear": lambda: fwdad.multilinear(same, argnums=(0,)),
        "locally_constant": lambda: fwdad.locally_constant(same),
    }[kind]
    register()
    raises_rule_error(
        "returns memory of an argument", lambda x: fwdad.jvp(lambda x: same(x) * x, x, x)
    )


def test_a_linear_view():
    def turned(a):
        return a.T

    fwdad.linear(turned, returns="view")

    def f(x):
        m = np.outer(x, x)
        t = turned(m)
        t[0] *= 2.0
        return np.sum(m * m, axis=1)

    def plain(x):
        m = np.outer(x, x)
        m[:, 0] *= 2.0
        return np.sum(m * m, axis=1)

    assert_allclose(fwdad.jacobian(f, X), central_differences(plain, X), rtol=1e-8)


def test_undeclared_writes_on_a_tape():
    def doubles(x):
        x *= 2.0

    @fwdad.frule(doubles)
    def doubles_frule(primals, tangents):
        return None, fwdad.ZERO

    def f(x):
        y = x.copy()
        doubles(y)
        return np.sum(y)

    for run in (fwdad.grad(f), fwdad.jit(f), fwdad.jit(fwdad.grad(f))):
        x = X.copy()
        raises_rule_error(r"doubles writes into its argument `x`.*mutates=", run, x)
        assert_array_equal(x, X)
