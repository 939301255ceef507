"""After a derivative the world is as one plain call leaves it; who only looks leaves it alone."""

import numpy as np
import pytest

import fwdad
from fwdad.eager.memory.shadow import SHADOWED
from tests.cases.world.programs import PROGRAMS
from tests.cases.world.seen import world_after
from tests.cases.world.transforms import COMPILED, DERIVATIVES, LOOKS
from tests.differences import central_differences

X = np.array([0.7, 1.3, 2.1, 0.4, 1.6])


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not SHADOWED


@pytest.mark.parametrize("transform", DERIVATIVES.values(), ids=DERIVATIVES)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_derivative(make, transform, tmp_path):
    _, plain = world_after(make, tmp_path / "w", lambda f: f(X.copy()))
    x = X.copy()
    _, derived = world_after(make, tmp_path / "w", lambda f: transform(f, x))
    assert derived == plain
    assert x.tobytes() == X.tobytes()


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_gradient_is_that_of_the_plain_function(make, tmp_path):
    def value_at(x):
        return world_after(make, tmp_path / "w", lambda f: f(x))[0]

    expected = central_differences(value_at, X)
    for transform in ("forward", "forward, ragged", "grad", "jacrev", "linearize"):
        found, _ = world_after(make, tmp_path / "w", lambda f, t=transform: DERIVATIVES[t](f, X))
        if transform == "linearize":
            np.testing.assert_allclose(found[0], np.dot(expected, [1, -0.5, 0.25, 2, -1]),
                                       rtol=1e-5, atol=1e-7)  # fmt: skip
            found = found[1]
        np.testing.assert_allclose(np.ravel(found), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_look(make, look, tmp_path):
    def looked(f):
        try:
            look(f, X.copy())
        except fwdad.errors.FwdadError:  # it may say that it cannot tell
            return

    _, before = world_after(make, tmp_path / "w", lambda _f: None)
    _, after = world_after(make, tmp_path / "w", looked)
    assert after == before


@pytest.mark.parametrize("transform", DERIVATIVES.values(), ids=DERIVATIVES)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_where_f_raises(make, transform, tmp_path):
    """The world is as the plain call leaves it there."""

    def failing(f):
        def g(x):
            y = f(x)
            if y == y:  # noqa: PLR0124 - always, and not known before
                message = "half-way"
                raise ArithmeticError(message)
            return y

        return g

    def caught(call):
        with pytest.raises(ArithmeticError, match="half-way"):
            call()

    _, plain = world_after(make, tmp_path / "w", lambda f: caught(lambda: failing(f)(X.copy())))
    _, derived = world_after(
        make, tmp_path / "w", lambda f: caught(lambda: transform(failing(f), X.copy()))
    )
    assert derived == plain


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
@pytest.mark.parametrize("transform", [*DERIVATIVES.values(), *COMPILED.values()],
                         ids=[*DERIVATIVES, *COMPILED])  # fmt: skip
def test_stores_that_the_value_does_not_read(transform):
    """Of what depends on x, and of what does not."""
    table, row = np.zeros((3, 5)), np.ones(5)

    def f(x):
        table[0] = np.sin(row)
        for k in range(4):
            table[1, k] = 0.5 * k
        table[2] = x
        return np.sum(x * x)

    try:
        transform(f, X.copy())
    except fwdad.errors.UntraceableError:  # the gradient takes a copy, and so reads it
        assert transform is COMPILED["jit(hessian)"]
        assert not table.any()
        return
    np.testing.assert_allclose(table, [np.sin(row), [0.0, 0.5, 1.0, 1.5, 0.0], X], rtol=1e-15)


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
@pytest.mark.parametrize("transform", [*DERIVATIVES.values(), *COMPILED.values()],
                         ids=[*DERIVATIVES, *COMPILED])  # fmt: skip
def test_where_a_value_decides_that_f_raises(transform, capsys):
    """What raises it in another way, for its words, puts nothing out once more."""
    held = []

    def f(x):
        print("first", x[0])
        held.append(x[1])
        if x[0] > 0.5:
            message = f"{x[0]} is too much"
            raise ArithmeticError(message)
        return np.sum(x**3)

    with pytest.raises(ArithmeticError):
        transform(f, X.copy())
    assert capsys.readouterr().out == "first 0.7\n"
    assert held == [1.3]


def test_products_again_where_a_run_has_left_what_it_found():
    """An increment of zero that carries a derivative is none of an earlier call's."""
    held, table = {}, np.ones((2, 3))

    def f(x):
        held["untraceable"] = x[0]
        table[0, 1] += np.tanh(x[0] - x[0])
        return x[0] * x[1] * table[0, 1]

    _, J = fwdad.linearize(f, X)
    for _ in range(3):
        np.testing.assert_allclose(J.matvec(np.ones(5)), [X[0] + X[1]])
        np.testing.assert_allclose(J.matmat(np.eye(5)), J.rmatvec(np.ones(1))[None])


@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
@pytest.mark.parametrize("transform", DERIVATIVES.values(), ids=DERIVATIVES)
def test_where_fwdad_refuses(transform):
    """Objects are as they were before; what has been put out stays."""
    held, work, table = [1.0], np.arange(5.0), {"a": 1}

    def f(x):
        held.append(x[0])
        work[:] = x
        table["b"] = x[1]
        f.calls = 1
        return x[0] * int(x[1])

    with pytest.raises(fwdad.errors.DualLeakError):
        transform(f, X.copy())
    assert held == [1.0]
    assert work.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert table == {"a": 1}
    assert not hasattr(f, "calls")


@pytest.mark.parametrize("transform", COMPILED.values(), ids=COMPILED)
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_compiled(make, transform, tmp_path):
    """Each call puts out what a plain call does, or the program is refused: nothing vanishes."""
    _, plain = world_after(make, tmp_path / "w", lambda f: f(X.copy()))
    _, before = world_after(make, tmp_path / "w", lambda _f: None)

    def run(f):
        try:
            transform(f, X.copy())
        except fwdad.errors.UntraceableError:
            return False
        return True

    ran, after = world_after(make, tmp_path / "w", run)
    assert after == (plain if ran else before)
    if make.__name__ in ("output", "logs", "warned"):
        assert ran
