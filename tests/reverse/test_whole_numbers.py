"""Functions that would answer whole numbers where a derivative is asked for."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import DualLeakError

WHOLE = {
    "sum": lambda x: np.sum(x, dtype=int) * x,
    "cumsum": lambda x: np.cumsum(x, dtype=np.int32) * x,
    "prod": lambda x: np.prod(x, dtype=int) * x,
    "concatenate": lambda x: np.concatenate([x, x], dtype=int, casting="unsafe") * x[0],
    "trace": lambda x: np.trace(np.outer(x, x), dtype=int) * x,
}
ROUNDED = {
    "comparison": lambda x: np.less(x, 2.0, dtype=bool) * x,
    "zeros": lambda x: np.zeros_like(x, dtype=int) + x,
    "ones": lambda x: np.full_like(x, 2, dtype=int) * x,
}
RUNS = {
    "forward": fwdad.jacobian,
    "reverse": lambda f, x: fwdad.jacobian(f, x, mode="reverse"),
    "gradient": lambda f, x: fwdad.grad(lambda x: np.sum(f(x)))(x),
    "traced": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "traced gradient": lambda f, x: fwdad.jit(fwdad.jacrev(f), backend="numpy")(x),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", WHOLE.values(), ids=WHOLE)
def test_a_derivative_is_not_lost_in_whole_numbers(f, run):
    with pytest.raises(DualLeakError, match=r"would become int(32|64)"):
        run(f, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", ROUNDED.values(), ids=ROUNDED)
def test_whole_numbers_that_depend_on_nothing_are_constants(f, run):
    x = np.array([1.0, 2.5, 3.0])
    assert np.all(np.isfinite(run(f, x)))
