"""`python -m fwdad`, and the problem that its demo solves."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.__main__ import main
from fwdad.examples import demo
from fwdad.examples.pollu import SPECIES, Y_END, Y_START, pollu, pollu_stored

# The chemistry, as reactions instead of as equations: rate constant, reactants -> products.
REACTIONS = """
.35     NO2        -> NO + O3P
26.6    NO + O3    -> NO2
1.23e4  HO2 + NO   -> NO2 + OH
8.6e-4  HCHO       -> 2 HO2 + CO
8.2e-4  HCHO       -> CO
1.5e4   HCHO + OH  -> HO2 + CO
1.3e-4  ALD        -> MEO2 + HO2 + CO
2.4e4   ALD + OH   -> C2O3
1.65e4  C2O3 + NO  -> NO2 + MEO2 + CO2
9e3     C2O3 + NO2 -> PAN
2.2e-2  PAN        -> C2O3 + NO2
1.2e4   MEO2 + NO  -> CH3O + NO2
1.88    CH3O       -> HCHO + HO2
1.63e4  NO2 + OH   -> HNO3
4.8e6   O3P        -> O3
3.5e-4  O3         -> O1D
1.75e-2 O3         -> O3P
1e8     O1D        -> 2 OH
4.44e11 O1D        -> O3P
1.24e3  SO2 + OH   -> SO4 + HO2
2.1     NO3        -> NO
5.78    NO3        -> NO2 + O3P
4.74e-2 NO2 + O3   -> NO3
1.78e3  NO3 + NO2  -> N2O5
3.12    N2O5       -> NO3 + NO2
"""

# The end state to ten digits, as independent integrations gave it.
TEN_DIGITS = """
0.05646255480  0.1342484130   4.139734331e-9 5.523140207e-3 2.018977262e-7
1.464541863e-7 0.07784249119  0.3245075353   7.494013384e-3 1.622293157e-8
1.135863833e-8 2.230505976e-3 2.087162883e-4 1.396921017e-5 8.964884857e-3
4.352846369e-18 6.899219696e-3 1.007803037e-4 1.772146514e-6 5.682943292e-5
"""


def parse_reactions():
    """Rate constants, the reactants' positions, and the (species, reaction) balance matrix."""
    constants, reactants, balance = [], [], np.zeros((20, 25))
    for j, line in enumerate(REACTIONS.strip().splitlines()):
        constant, equation = line.split(maxsplit=1)
        left, right = equation.split("->")
        constants.append(float(constant))
        reactants.append([SPECIES.index(name) for name in left.replace("+", " ").split()])
        balance[reactants[-1], j] -= 1
        for term in right.split("+"):
            *factor, name = term.split()
            balance[SPECIES.index(name), j] += float(factor[0]) if factor else 1
    return constants, reactants, balance


def mass_action(y):
    """Value and Jacobian by the law of mass action, from the table of reactions."""
    constants, reactants, balance = parse_reactions()
    rates, partials = np.zeros(25), np.zeros((25, 20))
    for j, (constant, species) in enumerate(zip(constants, reactants, strict=True)):
        rates[j] = constant * np.prod(y[species])
        for i, k in enumerate(species):
            partials[j, k] += constant * np.prod(np.delete(y[species], i))
    return balance @ rates, balance @ partials


def test_scalar_form_is_the_chemistry(rng):
    y = rng.uniform(0.1, 1, 20)
    expected, jacobian = mass_action(y)
    # terms up to 1e11 cancel: the tolerance is relative to the largest of a row
    size = np.abs(jacobian) @ y
    assert np.all(np.abs(pollu(0.0, y) - expected) <= 1e-14 * size)
    assert_array_equal(pollu_stored(y), pollu(0.0, y))


def test_reference_end_state():
    digits = np.array(TEN_DIGITS.split(), dtype=float)
    assert_allclose(Y_END, digits, rtol=5e-10)
    # sulphur is conserved, and the published numbers know it
    sulphur = [SPECIES.index("SO2"), SPECIES.index("SO4")]
    assert_allclose(Y_END[sulphur].sum(), Y_START[sulphur].sum(), rtol=1e-14)


@pytest.mark.parametrize("chunk", [None, 1, 7, 20])
def test_jacobian_is_exact(chunk, rng):
    jac = fwdad.jacfwd(pollu, argnums=1, chunk=chunk)
    for y in (Y_START, Y_END, rng.uniform(0.1, 1, 20)):
        j = jac(0.0, y)
        assert j.shape == (20, 20)
        # nothing cancels within an entry: each is a sum of a few terms of one sign
        assert_allclose(j, mass_action(y)[1], rtol=1e-14, atol=0)
        stored = fwdad.jacobian(pollu_stored, y, chunk=chunk)
        assert_allclose(stored, mass_action(y)[1], rtol=1e-14, atol=0)


def read_table(output):
    """The demo's rows: the title, then fwdad's cell and SciPy's."""
    rows = [
        (line[:22].strip(), line[22:44].strip(), line[44:].strip()) for line in output.splitlines()
    ]
    return {title: (ours, theirs) for title, ours, theirs in rows if theirs}


def test_demo_command():
    # -W error: the demo is the first thing that a newcomer sees
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fwdad", "demo", "--repeat", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    table = read_table(done.stdout)
    assert table["Jacobian by"] == ("fwdad.jacfwd", "SciPy's differences")
    for cell in table["max |y/y_ref - 1|"]:
        assert 0 < float(cell) <= 1e-6
    for cell in table["Jacobian evaluations"]:
        assert 1 <= int(cell) <= 100
    for title in ("first solve", "best of 1 solves", "one Jacobian"):
        for cell in table[title]:
            assert float(cell.removesuffix(" ms")) > 0


def test_demo_fails_on_a_wrong_end_state(monkeypatch, capsys):
    wrong = Y_END.copy()
    wrong[SPECIES.index("O1D")] *= 1 + 2e-6
    monkeypatch.setattr(demo, "Y_END", wrong)
    assert main(["demo", "--repeat", "1"]) == 1
    assert "FAILED: O1D is off by 2.0e-06" in capsys.readouterr().out


def test_demo_fails_on_a_state_that_is_not_a_number(monkeypatch, capsys):
    monkeypatch.setattr(demo, "Y_END", np.full(20, np.nan))
    assert main(["demo", "--repeat", "1"]) == 1
    assert "FAILED" in capsys.readouterr().out


def test_usage(capsys):
    assert main([]) == 0
    bare = capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == bare
    assert bare.startswith("usage: python -m fwdad")
    assert "demo" in bare


@pytest.mark.parametrize(
    "arguments", [["demo", "--repeat", "0"], ["demo", "--repeat", "x"], ["no"]]
)
def test_wrong_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "error:" in capsys.readouterr().err
