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
    assert "not made of real floats" in fwdad.explain(fwdad.grad(smooth), 1j * X)

    def failing(x):
        return np.sum(np.linalg.inv(x[:, None] * x))

    assert "its tape raises LinAlgError" in fwdad.explain(fwdad.grad(failing), X)


def test_function_and_jit():
    assert "operations, run by" in fwdad.explain(smooth, X)
    assert "operations, run by" in fwdad.explain(fwdad.jit(fwdad.grad(smooth)), X)
