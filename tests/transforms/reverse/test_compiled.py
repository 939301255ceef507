"""Programs and the programs backwards, compiled as one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.transforms.reverse.programs import (
    LONG,
    X,
    branch,
    broken_off,
    buffers_of_an_inner_loop,
    carried_array,
    carried_number,
    cholesky,
    in_place,
    products_in_place,
    recurrence,
    stencil,
    two_buffers,
)

pytest.importorskip("numba")


@pytest.mark.every(2)
@pytest.mark.slow_cases("two_buffers-x5", "cholesky-x9", "stencil-x7")
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (carried_number, X),
        (recurrence, LONG),
        (branch, X),
        (broken_off, X),
        (carried_array, X),
        (two_buffers, LONG),
        (in_place, X),
        (stencil, LONG),
        (buffers_of_an_inner_loop, X),
        (cholesky, X),
        (products_in_place, LONG),
    ],
)
def test_compiled_gradient(f, x):
    compiled = fwdad.jit(fwdad.value_and_grad(f))
    plain = fwdad.jit(fwdad.value_and_grad(f), backend="numpy")
    for y, z in zip(compiled(x), plain(x), strict=True):
        assert_allclose(y, z, rtol=1e-13, atol=1e-15)
    assert "run by Numba" in fwdad.explain(compiled)
    assert "NumPy" not in fwdad.explain(compiled)
    # the stacks have grown by now, and other lengths are the same code
    if x is LONG:
        longer = np.linspace(0.3, 0.6, 300)
        assert_allclose(compiled(longer)[1], plain(longer)[1], rtol=1e-12)
        assert fwdad.cache_info(compiled).traces == 1


def test_compiled_hessian():
    H = fwdad.jit(fwdad.jacfwd(fwdad.grad(stencil)))
    assert_allclose(H(LONG), fwdad.hessian(stencil, LONG), rtol=1e-12, atol=1e-14)
