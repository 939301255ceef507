"""Forward mode on tapes, against differences and against the evaluator that runs at once."""

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.errors import MissingRuleError, UntraceableError
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Branch, is_array, walk
from fwdad.transforms.forward import push, push_forward
from fwdad.transforms.forward.opaque_call import PushWhole
from tests.differences import central_differences, difference_along
from tests.transforms.forward.programs import PROGRAMS, X


def pushed(f, args, lanes):
    """The value and the lanes of a traced function, by generated source."""
    tape = trace(f, *args)
    n = len(lanes)
    inputs = tape.leaves([a.copy() if isinstance(a, np.ndarray) else a for a in args])
    seeds = [True, *[False] * (len(inputs) - 1)]
    program, constants = push_forward(tape.program, n, seeds)
    return compiled(numpy_source(program))(*inputs, lanes.copy(), *constants)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_lanes_are_derivatives_along_directions(name, n):
    f, args = PROGRAMS[name]
    rng = np.random.default_rng(n)
    lanes = rng.standard_normal((n, *np.shape(args[0])))
    y, y_dot = pushed(f, args, lanes)
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    assert_allclose(y, f(*given), rtol=0, atol=0)
    x, rest = args[0], args[1:]
    for v, column in zip(lanes, y_dot, strict=True):
        v = float(v) if isinstance(x, float) else v
        expected = difference_along(lambda x: f(x, *rest), x, v)
        assert_allclose(column, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", PROGRAMS)
def test_lanes_are_those_of_the_evaluator_that_runs_at_once(name):
    f, args = PROGRAMS[name]
    lanes = np.random.default_rng(0).standard_normal((3, *np.shape(args[0])))
    _, y_dot = pushed(f, args, lanes)
    _, expected = fwdad.jvp(f, args[0], lanes, args=args[1:])
    assert_allclose(y_dot, expected, rtol=1e-12, atol=1e-13)


def test_a_zero_lane_stays_zero_through_an_infinite_partial():
    x = np.array([0.0, 2.0])
    _, y_dot = pushed(lambda x: np.sqrt(x), (x,), np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert_allclose(y_dot, [[0.0, 0.5 / np.sqrt(2)], [np.inf, 0.0]])


def test_an_array_of_memory_that_is_overwritten_keeps_its_old_tangent():
    def f(x):
        y = x * 1.0
        s = np.sin(y)
        y[:] = 0.0
        return s + y

    _, y_dot = pushed(f, (X,), np.eye(3))
    assert_allclose(y_dot, np.diag(np.cos(X)))


def test_a_scaling_is_the_value_at_its_time():
    def f(x):
        y = x.copy()
        product = y * y
        y[:] = 100.0
        return product

    _, y_dot = pushed(f, (X,), np.eye(3))
    assert_allclose(y_dot, np.diag(2 * X))


def test_a_chain_of_elementwise_operations_meets_the_lanes_once():
    f, args = PROGRAMS["elementwise"]
    program, _ = push_forward(trace(f, *args).program, 8, [True])
    meetings = [
        op for op in program.walk() if getattr(op, "function", None).__name__ == "scale_lanes"
    ]
    assert len(meetings) == 1


def test_the_program_does_not_grow_with_the_trip_count():
    f, _ = PROGRAMS["power"]
    sizes = []
    for n in (10, 100_000):
        tape = trace(f, 1.0, n)
        program, _ = push_forward(tape.program, 2, [True, False])
        sizes.append(program.count())
    assert sizes[0] == sizes[1]


def test_what_has_no_rule_is_named_with_its_line():
    def f(x):
        return scipy.special.agm(x, 0.5)

    with pytest.raises((MissingRuleError, UntraceableError)) as caught:
        pushed(f, (X,), np.eye(3))
    assert caught.value.filename == __file__
    assert "agm" in caught.value.text


def periodic(x):
    y = np.zeros(3)
    for i in range(3):
        y[i] = x[i - 1] ** 2 * x[-1 - i]
    return y


def test_places_counted_from_the_end_in_a_loop():
    x = np.array([1.0, 2.0, 3.0])
    for f in (periodic, lambda x: periodic(x[::-1])):
        J = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
        assert_allclose(J(x), fwdad.jacobian(f, x), rtol=1e-14)

    def of_two(pair):
        return periodic(pair[0]) + periodic(pair[1]) * 2

    J = fwdad.jit(lambda a, b: fwdad.jacobian(of_two, (a, b)), backend="numpy")
    for found, expected in zip(J(x, x + 1), fwdad.jacobian(of_two, (x, x + 1)), strict=True):
        assert_allclose(found, expected, rtol=1e-14)


def test_a_rule_that_returns_a_number_of_numpy_s_is_written_out_for_python_s():
    def root(a):
        x = a
        while abs(x * x - a) > 1e-14 * a:
            x = 0.5 * (x + a / x)
        return x * abs(a - 3.0)

    program = trace(fwdad.jacfwd(root), 2.0).program
    assert not any(isinstance(getattr(op, "function", None), PushWhole) for op in program.walk())
    J = fwdad.jit(fwdad.jacfwd(root), backend="numpy")
    assert_allclose(J(2.0), (3.0 - 2.0) / (2 * 2**0.5) - 2**0.5, rtol=1e-13)
    J = fwdad.jit(fwdad.jacfwd(lambda x: abs(complex(x, 1.0))), backend="numpy")
    assert_allclose(J(0.75), 0.75 / 1.25, rtol=1e-14)


def _cast(x):
    return x.astype(np.int64) * x


def _counted(x):
    return int(x[0] * 3) * x


def _stored(x):
    y = np.zeros(3, np.int64)
    y[1] = x[0]
    return y * x


@pytest.mark.parametrize("f", [_cast, _counted, _stored])
def test_a_derivative_is_not_lost_in_whole_numbers(f):
    x = np.array([0.5, 1.5, 2.5])
    for trial in (f, fwdad.jit(f, backend="numpy")):
        with pytest.raises(fwdad.errors.DualLeakError, match="derivative"):
            fwdad.jacobian(trial, x)
    with pytest.raises(fwdad.errors.DualLeakError, match="int64"):
        fwdad.jit(lambda x: fwdad.jacobian(f, x), backend="numpy")(x)


def test_what_is_stopped_may_become_whole():
    def f(x):
        return int(fwdad.stop_gradient(x[0] * 3)) * x + int(np.floor(x[1])) * x

    x = np.array([0.5, 1.5, 2.5])
    found = fwdad.jit(lambda x: fwdad.jacobian(f, x), backend="numpy")(x)
    np.testing.assert_array_equal(found, fwdad.jacobian(f, x))


def turned(x):
    if x[0] > 0.0:
        y, z = x[0] * x[1], np.sin(x[2])
    else:
        y, z = x[1] - 3.0 * x[0], 2.0 * x[2]
    return np.array([y * z, np.exp(y) * x[1]])


@pytest.mark.parametrize("x0", [0.7, -0.7])
def test_few_directions_cross_a_branch_as_numbers(x0):
    x = np.array([x0, 0.4, 1.3])
    for n in (1, 2, 3):
        y, y_dot = pushed(turned, (x,), np.eye(3)[:n])
        assert_allclose(y, turned(x), rtol=0, atol=0)
        assert_allclose(y_dot, central_differences(turned, x).T[:n], rtol=1e-9, atol=1e-9)
    found = fwdad.jit(fwdad.jacfwd(turned), backend="numpy")(x)
    assert_allclose(found, central_differences(turned, x), 1e-9)
    (branch,) = [op for op in held_program(turned, x).walk() if isinstance(op, Branch)]
    assert not any(is_array(v) for v in branch.outputs)


def held_program(f, x):
    return fwdad.trace(fwdad.jacfwd(f), x).program


def test_a_direction_that_one_way_has_alone_stays_zero_before_an_infinite_slope():
    def f(x):
        y = x[0] if x[1] > 0.0 else 0.0
        return np.sqrt(y) + x[1]

    x = np.array([2.0, -1.0])
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), [0.0, 1.0])


def stored_into_a_copy(x):
    y = np.outer(x, x[:2]).T * 2  # which lies column by column
    y.reshape(-1)[1:] = x[1]  # a copy, which is dropped
    return y


@pytest.mark.parametrize("of", [fwdad.jacfwd, lambda f: lambda x: fwdad.jvp(f, x, X)[1]])
def test_a_store_into_a_reshape_that_is_a_copy_is_dropped(of):
    found = fwdad.jit(of(stored_into_a_copy), backend="numpy")(X)
    plain = of(lambda x: np.outer(x, x[:2]).T * 2)(X)
    assert_allclose(found, plain)


def turned_in_a_loop(x):
    z = x + 0j
    for k in range(1, len(x)):
        z[k] = z[k - 1] * np.exp(1j * z[k])
    return np.sum(z.real**3)


def turned_in_a_view(x):
    z = np.array(x, dtype=complex)
    w = z[:2]
    w *= 1j * z[1:]
    return np.sum((z * z).imag) + z[0].imag * x[1]


def turned_on_one_side(x):
    z = x.astype(complex)
    if x[0] > 0:
        z[0] = 1j * x[1]
    return np.sum((z * z * (1 + 1j)).imag)


@pytest.mark.parametrize("f", [turned_in_a_loop, turned_in_a_view, turned_on_one_side])
def test_complex_numbers_are_stored_where_the_tangent_was_real(f):
    """The lanes of `x + 0j` are real; those of the memory that is written are not."""
    x, v = np.array([0.7, 1.3, -0.4]), np.array([0.3, -1.0, 0.5])
    expected = fwdad.jacobian(f, x)
    assert_allclose(expected @ v, difference_along(f, x, v), rtol=1e-9)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x), expected, rtol=1e-13)
    one = fwdad.jit(lambda x: fwdad.jvp(f, x, v)[1], backend="numpy")
    assert_allclose(one(x), expected @ v, rtol=1e-13)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(x), expected, rtol=1e-12)


def read_through_the_transposed(x):
    m = np.outer(x, np.sin(x))
    t = m.mT if hasattr(m, "mT") else m.T
    m[0] = 5.0
    t[1] *= x
    return np.sum(t**3) + np.sum(m)


def test_a_transposed_stack_is_a_view_of_lanes_too():
    x = np.array([0.7, 1.3, -0.4])
    found = fwdad.jit(fwdad.jacfwd(read_through_the_transposed), backend="numpy")(x)
    assert_allclose(found, fwdad.jacobian(read_through_the_transposed, x), rtol=1e-12)
    expected = central_differences(read_through_the_transposed, x).T
    assert_allclose(found, expected, rtol=1e-8)


def longer_at_first(m, x, n):
    """The argument v begins with has no derivative; what the loop hands on has, and is shorter."""
    v, w, s = np.sin(x), m[0] * 1.0, 0.0
    for _ in range(n):
        s = s + np.ravel(v)[-1] ** 2 + np.sum(np.arange(len(x)) * v[:, None])
        v = w[:2]
    return s


def test_a_loop_that_begins_with_an_inactive_array_of_another_length():
    m, x = np.linspace(-0.4, 0.9, 12).reshape(3, 4), np.array([0.7, 1.3, -0.4])
    traced = fwdad.jit(fwdad.jacfwd(longer_at_first), backend="numpy")
    for n in (3, 1, 0):
        found = traced(m, x, n)
        assert_allclose(found, fwdad.jacobian(longer_at_first, m, args=(x, n)), rtol=1e-13)
        expected = central_differences(lambda m, n=n: longer_at_first(m, x, n), m)
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


def chained(x):
    """Loops that carry what an earlier one has made active, and store it."""
    kept, also = np.zeros(6), np.zeros(3)
    s = t = u = 0.0
    for i in range(3):
        s, kept[i] = s + x[i] * s + 0.1 * x[i], s
    for i in range(3):
        t, kept[3 + i] = t * s + kept[i], t
    for i in range(3):
        u, also[i] = u * t + kept[3 + i], u
    return s + np.sum(kept**2) + np.sum(also * u)


def test_what_is_active_is_known_beforehand(monkeypatch):
    attempts = []
    run = push._Pushforward.run

    def counted(self, given, **options):
        attempts.append(self)
        return run(self, given, **options)

    monkeypatch.setattr(push._Pushforward, "run", counted)
    x, v = np.array([0.4, 0.7, -0.3]), np.array([1.0, -0.5, 0.3])
    y, lanes = pushed(chained, (x,), v[None])
    assert_allclose(lanes[0], difference_along(chained, x, v), rtol=1e-9)
    assert y == chained(x)
    assert len(attempts) == 1  # of five facts, each of which makes the next one


def summed_numbers(x):
    """Numbers that hang on many carried ones, each with lanes of its own."""
    a = b = c = d = e = f = x[0]
    for i in range(3):
        s = a + x[1] * b + x[2] * c + x[3] * d + a * e + b * f
        s = 0.2 * np.sin(s) * s + 0.1 * np.cos(s) * np.tanh(s)
        s = 0.2 * np.sin(s) * s + 0.1 * np.cos(s) * np.tanh(s)
        a, b, c, d, e, f = b * s, c * s, d + s, e * s, f * x[3], s
    return a + b + c + d + e + f


def test_sums_of_many_tangents_are_multiplied_out():
    x, v = np.array([0.4, 0.7, -0.3, 0.9]), np.array([1.0, -0.5, 0.3, 0.8])
    tape = trace(summed_numbers, x)
    program, _ = push_forward(tape.program, 1, [True])
    found = pushed(summed_numbers, (x,), v[None])[1][0]
    assert_allclose(found, difference_along(summed_numbers, x, v), rtol=1e-8)
    assert len(list(walk(program.block))) < 8 * len(list(walk(tape.program.block)))
