"""What `import fwdad` gives, and what it says of names that it does not give."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fwdad
from fwdad import errors, reversible
from fwdad.api.neighbours import SPELLINGS, spelling

ROOT = Path(fwdad.__file__).parents[1]


@pytest.mark.parametrize("name", [*SPELLINGS, "SeedError", "ancilla", "check_gradient"])
def test_says_what_to_write(name):
    with pytest.raises(AttributeError, match=re.escape(spelling(name, (errors, reversible)))):
        getattr(fwdad, name)
    assert not hasattr(fwdad, name)
    with pytest.raises(ImportError):
        exec(f"from fwdad import {name}", {})


@pytest.mark.parametrize("name", SPELLINGS)
def test_what_it_says_is_there(name):
    """A call with f is one of fwdad's functions, with arguments that it has."""
    calls = re.findall(r"(\w+)\((?=[fl])", SPELLINGS[name])
    known = [hasattr(fwdad, call) for call in calls if call not in ("f", "derivative_of")]
    assert all(known), calls


def test_other_names_are_compared_with_those_there_are():
    code = "import fwdad; fwdad.jacobain"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "no attribute 'jacobain'. Did you mean: 'jacobian'?" in done.stderr


def test_names_by_subject():
    assert not set(fwdad.__all__) & {*errors.__all__, *reversible.__all__} - {"reversible"}
    assert fwdad.reversible is reversible
    assert fwdad.errors is errors
    assert fwdad.testing is importlib.import_module("fwdad.testing")


def test_rooms_are_imported_when_they_are_asked_for():
    """Nothing of them is there before, so that ``import fwdad`` stays quick."""
    code = (
        "import sys, fwdad\n"
        "assert not {'fwdad.scipy', 'fwdad.compat', 'scipy.optimize'} & sys.modules.keys()\n"
        "assert {'compat', 'scipy', 'testing', 'examples'} <= set(dir(fwdad))\n"
        "print(fwdad.compat.jax.grad(lambda x: x**2)(3.0), fwdad.compat.to_jax.__name__)\n"
        "print(fwdad.compat.autograd.numpy.sin(0.0), fwdad.scipy.root.__name__)\n"
        "import scipy; from fwdad import *; assert not hasattr(scipy, 'METHODS')\n"
        "assert scipy.__name__ == 'scipy' and not {'jax', 'torch'} & sys.modules.keys()\n"
        "fwdad.compat.autogrd\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["6.0", "to_jax", "0.0", "root"]
    assert (
        "module 'fwdad.compat' has no attribute 'autogrd'. Did you mean: 'autograd'?" in done.stderr
    )


def test_dir_shows_public_names_only():
    shown = {name for name in dir(fwdad) if not name.startswith("__")}
    # which `from fwdad import *` does not bring, as it would hide SciPy
    assert shown == {*fwdad.__all__, "compat", "scipy"}
    assert all(hasattr(fwdad, name) for name in dir(fwdad))


def test_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert fwdad.__version__ == project["version"]
    command = [sys.executable, "-m", "fwdad", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"fwdad {project['version']}\n"
