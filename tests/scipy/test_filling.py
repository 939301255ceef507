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
        r"fwdad: jac is a dense matrix, by forward mode with 2 tangents, because reverse mode pays "
        r"from 65 columns on, and there are 2; \d+ calls?, not compiled \(it will be once its "
        r"calls have taken [48]00 ms of processor time; so far they took [\d.e+]+ m?s\)\n",
        said,
    )
    door.solve_ivp(rates, (0, 2), [1, 1], "BDF")
    assert capsys.readouterr().out == ""
    door.solve_ivp(rates, (0, 0.1), [1, 1], verbose=1)
    assert capsys.readouterr().out == ('fwdad: solve_ivp takes no derivative with method="RK45"\n')
    door.root_scalar(lambda x: x**3 - 2, x0=1, x1=2, verbose=1)
    assert capsys.readouterr().out == (
        'fwdad: root_scalar takes no derivative with method="secant"\n'
    )
    door.minimize(lambda x: x @ x, [1, 1], jac=lambda x: 2 * x, verbose=1)
    assert capsys.readouterr().out == "fwdad: jac is as given\n"
    wide = lambda x: np.array([np.sum(x**2) - 1, x[0]])  # noqa: E731
    door.least_squares(wide, np.full(80, 0.1), verbose=1, tr_solver="exact")
    assert (
        "fwdad: jac is a dense matrix, by reverse mode with 2 cotangents, because it has 2 rows "
        "and 80 columns; "
    ) in capsys.readouterr().out
    square = lambda x: x**3 + np.sum(x) - 1  # noqa: E731
    door.root(square, np.ones(80), verbose=1)
    assert (
        "fwdad: jac is a dense matrix, by forward mode with 80 tangents, because reverse mode pays "
        "from 4 times as many columns as rows on, and there are 80 columns and 80 rows; "
    ) in capsys.readouterr().out


def said_of(capsys, solver, *args, **options):
    """The lines of a solve, without what is told of compilation."""
    solver(*args, verbose=1, **options)
    lines = capsys.readouterr().out.splitlines()
    return [line.partition(";")[0].removeprefix("fwdad: ") for line in lines if "fwdad" in line]


def test_what_is_said_of_second_derivatives(capsys):
    cases = (
        (3, "hess is a dense matrix, by forward mode with 3 tangents over the gradient by reverse"),
        (65, "hessp is the product of the Hessian and a vector, by forward mode with 1 tangent"),
        (65, "hessp is a sparse matrix, by 3 directions for 193 entries"),
    )
    square = lambda x: np.sum(x) ** 2 + scipy.optimize.rosen(x)  # noqa: E731
    for (n, start), f in zip(cases, (scipy.optimize.rosen, square, scipy.optimize.rosen),
                             strict=True):  # fmt: skip
        gradient, hessian = said_of(capsys, door.minimize, f, np.zeros(n), method="trust-krylov")
        assert gradient == "jac is the gradient, by reverse mode"
        assert hessian.startswith(start)
    gradient, hessian = said_of(
        capsys, door.minimize, scipy.optimize.rosen, np.zeros(3), method="dogleg",
        jac=scipy.optimize.rosen_der,
    )  # fmt: skip
    assert gradient == "jac is as given"
    assert hessian.endswith("with 3 tangents over the gradient that was given")


def test_what_is_said_of_what_was_given(capsys):
    f = lambda x: (x @ x, 2 * x)  # noqa: E731
    for jac, says in (("3-point", "'3-point'"), (False, "False")):
        first, second = said_of(
            capsys, door.minimize, lambda x: x @ x, [1, 1], method="trust-constr", jac=jac
        )
        assert first == f"jac is by SciPy's finite differences, because it is given as {says}"
        assert second == "hess is not filled in, because jac is by finite differences"
    said = said_of(capsys, door.minimize, f, [1, 1], jac=True)
    assert said == ["jac is returned by the function itself, because it is given as True"]
    said = said_of(
        capsys, door.least_squares, lambda x: x, np.ones(3), diff_step=1e-6, method="dogbox"
    )
    assert said == ["jac is by SciPy's finite differences, because diff_step is given"]


def test_the_lines_are_in_scipys_order(capsys):
    inside = {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x}
    said = said_of(capsys, door.minimize, lambda x: np.sum(x), [0, 0], constraints=inside)
    expected = ["jac is the gradient, by reverse mode", "constraints[0]['jac'] is as given"]
    assert said == expected


def test_a_method_that_is_not_scipys(capsys):
    class Own(scipy.integrate.RK45):
        pass

    said = said_of(capsys, door.solve_ivp, lambda t, y: -y, (0, 1), [1], Own)
    assert said == ['nothing is filled in for method="Own", which is none of SciPy\'s']


def test_why_a_gradient_is_recorded_is_said(capsys):
    def untraced(x):
        class Kept:
            pass

        return np.sum(x**2)

    door.minimize(untraced, [1, 1], verbose=1)
    said = capsys.readouterr().out
    assert "by reverse mode, recorded at each call, because the function cannot be traced:" in said
    assert "class" in said


def test_an_error_says_so_too(capsys):
    def fails(t, y):
        if t > 0.5:
            raise ZeroDivisionError("mine")
        return -y

    with pytest.raises(ZeroDivisionError, match="mine"):
        door.solve_ivp(fails, (0, 2), [1], "BDF", verbose=1)
    assert capsys.readouterr().out.startswith("fwdad: jac is a dense matrix")


def test_tracebacks_are_without_our_frames():
    with pytest.raises(ZeroDivisionError) as caught:
        door.minimize(lambda x: 1 / 0, [1, 1])
    files = [entry.path for entry in caught.traceback]
    assert not [f for f in files if str(f).startswith(str(fwdad.__path__[0]))]
