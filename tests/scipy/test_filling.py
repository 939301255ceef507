"""The signatures, the table of methods, and the lines that tell of derivatives."""

import inspect
import re

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import fwdad
from fwdad import scipy as door
from fwdad.scipy import filling

# ours alone; those that newer versions of SciPy have; and defaults that are about derivatives
OURS = {"verbose"}
DERIVATIVES = {"jac", "hess", "hessp", "fprime", "fprime2", "fun_jac", "bc_jac"}


def of_scipy(name):
    return getattr(scipy.integrate if name.startswith("solve") else scipy.optimize, name)


def parameters(f):
    return inspect.signature(f).parameters


@pytest.mark.parametrize("name", door.__all__)
def test_parameters_are_scipys(name):
    own, scipys = parameters(getattr(door, name)), parameters(of_scipy(name))
    ours = [key for key in own if key not in OURS or key in scipys]
    if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 17):
        assert ours == list(scipys)
    for key in set(ours) & set(scipys) - DERIVATIVES - {"tr_options", "kwargs"}:
        assert own[key].kind == scipys[key].kind, key
        assert own[key].default == scipys[key].default or key == "x_scale", key
    assert set(own) - set(scipys) <= OURS | {"callback", "workers", "rng", "seed"}


def methods_of_scipy(name):
    """The methods that SciPy's documentation names."""
    return re.findall(r"- '([\w-]+)' *:ref:`\(see here\)", of_scipy(name).__doc__)


def test_the_table_has_all_methods():
    for name in ("minimize", "root", "root_scalar"):
        documented = methods_of_scipy(name)
        assert len(documented) > 7
        assert filling.METHODS[name].keys() - {"a callable"} == set(documented)
    assert filling.METHODS["solve_ivp"].keys() == scipy.integrate._ivp.ivp.METHODS.keys()
    assert set(filling.METHODS) == set(door.__all__)


def test_the_table_for_the_documentation():
    lines = filling.as_markdown().splitlines()
    assert lines[:2] == ["| function | method | filled in |", "|---|---|---|"]
    assert "| `solve_ivp` | Radau, BDF, LSODA | jac |" in lines
    assert "| `solve_ivp` | RK45, RK23, DOP853 | nothing |" in lines


def rates(t, y):
    return np.array([-50 * y[0] + y[1], -(y[1] ** 2)])


def test_what_is_said(capsys):
    door.solve_ivp(rates, (0, 2), [1, 1], "BDF", verbose=1)
    said = capsys.readouterr().out
    assert re.fullmatch(
        r"fwdad: jac is dense, by forward mode with 2 tangents, because x has at most 64 numbers, "
        r"not compiled \(its calls took [\d.e+]+ m?s so far\); \d+ calls?\n",
        said,
    )
    door.solve_ivp(rates, (0, 2), [1, 1], "BDF")
    assert capsys.readouterr().out == ""
    door.solve_ivp(rates, (0, 0.1), [1, 1], verbose=1)
    assert capsys.readouterr().out == 'fwdad: solve_ivp by "RK45" takes no derivative\n'
    door.minimize(lambda x: x @ x, [1, 1], jac=lambda x: 2 * x, verbose=1)
    assert capsys.readouterr().out == "fwdad: jac is as given\n"
    wide = lambda x: np.array([np.sum(x**2) - 1, x[0]])  # noqa: E731
    door.least_squares(wide, np.full(80, 0.1), verbose=1, tr_solver="exact")
    assert "fwdad: jac is dense, by reverse mode with 2 cotangents, not" in capsys.readouterr().out


def test_why_a_gradient_is_recorded_is_said(capsys):
    def untraced(x):
        class Kept:
            pass

        return np.sum(x**2)

    door.minimize(untraced, [1, 1], verbose=1)
    said = capsys.readouterr().out
    assert "by reverse mode, because" in said
    assert "class" in said


def test_an_error_says_so_too(capsys):
    def fails(t, y):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return -y

    with pytest.raises(ZeroDivisionError, match="mine"):
        door.solve_ivp(fails, (0, 2), [1], "BDF", verbose=1)
    assert capsys.readouterr().out.startswith("fwdad: jac is dense")


def test_tracebacks_are_without_our_frames():
    with pytest.raises(ZeroDivisionError) as caught:
        door.minimize(lambda x: 1 / 0, [1, 1])
    files = [entry.path for entry in caught.traceback]
    assert not [f for f in files if str(f).startswith(str(fwdad.__path__[0]))]
