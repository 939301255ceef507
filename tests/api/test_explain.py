"""``explain`` of derivatives: which way is taken, and why."""

import numpy as np
import pytest

import fwdad

X = np.array([1.0, 2.0, 3.0])


def smooth(x):
    return np.sum(np.sin(x) ** 2)


def doubled(x):
    return 2 * x


def membership(x):
    seen = {}
    for i in range(3):
        if float(x[i]) in seen:
            return 0.0
        seen[i] = x[i]
    return x[0] * x[1]


def printing(x):
    print("seen")
    return np.sum(x * x)


@pytest.mark.parametrize("transform", [fwdad.grad, fwdad.value_and_grad])
def test_tape(transform):
    x = X.copy()
    said = fwdad.explain(transform(smooth), x)
    assert said.startswith("the tape of smooth, forwards and backwards: ")
    assert "run by NumPy" in said
    assert np.all(x == X)


def test_rows():
    for said in (fwdad.explain(fwdad.jacrev(doubled), X), fwdad.explain(fwdad.vjp, doubled, X)):
        assert said.startswith("the tape of doubled")


def test_recorded():
    said = fwdad.explain(fwdad.grad(membership), X)
    assert "membership is recorded as it runs" in said
    line = membership.__code__.co_firstlineno + 3
    assert f"{__file__}:{line}: " in said
    assert "if float(x[i]) in seen:" in said
    assert "it prints" in fwdad.explain(fwdad.grad(printing), X)
    assert "not consist of real floats" in fwdad.explain(fwdad.grad(smooth), 1j * X)

    def failing(x):
        return np.sum(np.linalg.inv(x[:, None] * x))

    assert "its tape raises LinAlgError" in fwdad.explain(fwdad.grad(failing), X)


def test_function_and_jit():
    assert "operations, run by" in fwdad.explain(smooth, X)
    assert fwdad.explain(lambda x: np.sum(x), X).startswith("1 operation, run by")
    assert "operations, run by" in fwdad.explain(fwdad.jit(fwdad.grad(smooth)), X)


EVALUATORS = {
    "vjp": ((X,), "the tape of {}, forwards and backwards"),
    "linearize": ((X,), "backwards for cotangents"),
    "jacobian": ((X,), "by columns: {} is run on duals"),
    "value_and_jacobian": ((X,), "by columns: {} is run on duals"),
    "jvp": ((X, X), "{} is run on duals, line by line"),
    "hvp": ((X, X), "tangents are pushed through the gradient: the tape of {}"),
    "hessian": ((X,), "tangents are pushed through the gradient: the tape of {}"),
}


@pytest.mark.parametrize("name", EVALUATORS)
def test_evaluators(name):
    given, wanted = EVALUATORS[name]
    f = smooth if name in ("hvp", "hessian") else doubled
    assert wanted.format(f.__name__) in fwdad.explain(getattr(fwdad, name), f, *given)
    where = f"{__file__}:{membership.__code__.co_firstlineno + 3}: "
    said = fwdad.explain(getattr(fwdad, name), membership, *given)
    assert "membership is r" in said  # recorded, run on duals, or run again
    if name not in ("jacobian", "value_and_jacobian", "jvp"):
        assert where in said, said


def test_modes_of_jacobians():
    assert "by rows: the tape of doubled" in fwdad.explain(
        fwdad.jacobian, doubled, X, mode="reverse"
    )
    assert fwdad.explain(fwdad.jacfwd(doubled), X).startswith("by columns: doubled is run on duals")
    many = np.ones(100)
    assert "by rows: the tape of smooth" in fwdad.explain(fwdad.jacobian, smooth, many)
    assert "by columns" in fwdad.explain(fwdad.jacobian, smooth, many, mode="forward")


def test_under_jit():
    held = fwdad.jit(doubled, backend="numpy")
    for evaluator, what in ((fwdad.jvp, "tangents"), (fwdad.jacobian, "its Jacobian")):
        said = fwdad.explain(evaluator, held, X)
        assert f"the tape of doubled, with {what}: " in said
        assert "run by NumPy" in said
    complex_one = fwdad.explain(fwdad.jvp, held, np.ones(3) + 0j, holomorphic=True)
    assert "has a tape that is run with tangents, by NumPy" in complex_one
    in_place = fwdad.explain(fwdad.jvp, fwdad.jit(two_ways_in_place), X)
    assert "the tape of two_ways_in_place, with tangents" in in_place
    said = fwdad.explain(fwdad.jvp, fwdad.jit(kept_in_a_list), X, args=([],))
    assert "it changes its arguments" in said
    assert "run on duals" in said


def kept_in_a_list(x, held):
    held.append(x * 2)
    return x * 3


def two_ways_in_place(x):
    x[0] = 2.0
    return x[0] * x[1]


def test_options_of_evaluators():
    def f(x, k, *, shift=0.0):
        return k * x + shift, "aux"

    options = {"args": (2.0,), "kwargs": {"shift": 1.0}, "has_aux": True}
    for evaluator in (fwdad.vjp, fwdad.jacobian, fwdad.jvp):
        said = fwdad.explain(evaluator, f, X, **options)
        assert "tape of f" in said or "f is run on duals" in said
    assert "the tape of f" in fwdad.explain(fwdad.vjp, f, X, 2.0, has_aux=True, shift=1.0)
    x = X.copy()
    fwdad.explain(fwdad.jvp, two_ways_in_place, x)
    fwdad.explain(fwdad.linearize, two_ways_in_place, x)
    assert np.all(x == X)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((fwdad.memory_report, smooth, X), "memory_report is neither"),
        ((fwdad.grad, smooth, X), r"write explain\(grad\(f\), x\)"),
        ((fwdad.linearize, smooth), r"explain\(linearize\) needs a function and a point"),
        ((fwdad.hvp, X, smooth), "expected a function after hvp"),
        ((fwdad.vjp, smooth, 2), "integer"),
    ],
)
def test_what_cannot_be_asked(given, said):
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match=said):
        fwdad.explain(*given)


def raising(x):
    raise ValueError("no")


def returning_nothing(x):
    x[0] = 1.0


def test_what_a_derivative_raises():
    for evaluator in (fwdad.vjp, fwdad.linearize):
        assert "and it raises ValueError: no" in fwdad.explain(evaluator, raising, X)
    with pytest.raises(ValueError, match="no"):
        fwdad.explain(fwdad.jvp, raising, X)
    with pytest.raises(fwdad.errors.NoOutputError):
        fwdad.explain(fwdad.linearize, returning_nothing, X)


def test_a_tape_of_what_f_calls_is_not_its_own():
    held = fwdad.jit(doubled, backend="numpy")

    def calls(x):
        return np.sum(held(x))

    for evaluator in (fwdad.jvp, fwdad.jacobian):
        assert "calls is run on duals, line by line" in fwdad.explain(evaluator, calls, X)


OUTSIDE = np.arange(3.0)


def writes_outside(x):
    OUTSIDE[1] = np.tanh(x[0])
    return np.sum(x * x)


@pytest.mark.parametrize("transform", [fwdad.grad, fwdad.jacfwd, fwdad.jit, lambda f: f])
def test_what_is_written_outside_is_restored(transform):
    fwdad.explain(transform(writes_outside), X)
    np.testing.assert_array_equal(OUTSIDE, np.arange(3.0))
