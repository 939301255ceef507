"""Where a source is missing, the first words of the error say so, why, and what to do."""

import importlib
import math
import os
import py_compile
import struct
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.reversible import reversible

X = np.array([0.5, 0.7])
TEXT = "import math\ndef f(x):\n    return math.sin(x[0]) * float(x[1])\n"
GRADIENT = [0.7 * math.cos(0.5), math.sin(0.5)]

WAYS = {
    "jvp": lambda f: fwdad.jvp(f, X, np.ones(2)),
    "forward": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=1),
    "gradient": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X),
    "hessian": lambda f: fwdad.hessian(f, X),
    "compiled": lambda f: fwdad.jit(fwdad.grad(f))(X),
    "called": lambda f: fwdad.grad(lambda x: f(2.0 * x))(X),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def says(way, f, reason):
    with pytest.raises((fwdad.errors.DualLeakError, fwdad.errors.UntraceableError)) as caught:
        way(f)
    first, _, rest = caught.value.msg.partition(": ")
    end = (
        ", so it cannot be traced"
        if isinstance(caught.value, fwdad.errors.UntraceableError)
        else ""
    )
    assert first.endswith(f"f has no source that can be read{end}")
    assert rest.startswith(reason)
    return rest


def executed(text):
    namespace = {"math": math, "np": np, "struct": struct}
    exec(text, namespace)
    return namespace["f"]


def module_of(folder, monkeypatch, name, text=TEXT):
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    sys.modules.pop(name, None)
    return importlib.import_module(name)


@ways
def test_text_that_is_kept_nowhere(way):
    reason = "it was made by exec, eval or compile from text that was not kept. Define it in "
    says(way, executed(TEXT), reason + "a file or a notebook, or add its text to linecache")


@ways
def test_compiled_file_alone(tmp_path, monkeypatch, way):
    source = tmp_path / "only_compiled_file.py"
    source.write_text(TEXT)
    compiled = py_compile.compile(source, tmp_path / "only_compiled_file.pyc")
    source.unlink()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "only_compiled_file", raising=False)
    module = importlib.import_module("only_compiled_file")
    wanted = f"only its compiled file {compiled} exists. Install only_compiled_file.py next to it"
    says(way, module.f, wanted)


@ways
def test_file_that_has_changed(tmp_path, monkeypatch, way):
    name = f"has_changed_{next(k for k, v in WAYS.items() if v is way)}"
    module = module_of(tmp_path, monkeypatch, name)
    path = tmp_path / f"{name}.py"
    path.write_text(TEXT.replace("sin", "cos"))
    wanted = f"{path} has changed on disk since it was imported. Reload the module "
    says(way, module.f, wanted + "(importlib.reload) or restart Python")
    path.write_text("# one line more\n" + TEXT)
    importlib.reload(module)
    assert_allclose(fwdad.grad(module.f)(X), GRADIENT)


def test_file_that_was_replaced_by_an_older_one(tmp_path, monkeypatch):
    """Its time says nothing then: what Python has kept of the import does."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    module = module_of(tmp_path, monkeypatch, "is_replaced_by_an_older")
    path = tmp_path / "is_replaced_by_an_older.py"
    path.write_text(TEXT.replace("sin", "cos"))
    os.utime(path, (1e9, 1e9))
    says(WAYS["gradient"], module.f, f"{path} has changed on disk since it was imported")


def test_file_that_is_gone(tmp_path, monkeypatch):
    module = module_of(tmp_path, monkeypatch, "is_gone")
    (tmp_path / "is_gone.py").unlink()
    says(WAYS["gradient"], module.f, f"{tmp_path / 'is_gone.py'} does not exist. Restore the file")


@ways
def test_bytecode_that_was_rewritten(tmp_path, monkeypatch, way):
    """By a decorator, say; the file is older than this process."""
    monkeypatch.setattr("fwdad.eager.lifting.why_missing._STARTED", math.inf)
    f = module_of(tmp_path, monkeypatch, "is_rewritten").f
    f.__code__ = f.__code__.replace(co_consts=(*f.__code__.co_consts, "more"))
    rest = says(way, f, f"its bytecode is not what {tmp_path / 'is_rewritten.py'} compiles to")
    assert "Differentiate the function before a decorator or tool rewrites it" in rest


def test_helpers_with_a_source_below():
    """What a function without source calls runs as it is, too."""

    def helper(x):
        return math.cos(x)

    f = executed("def f(x, helper=None):\n    return helper(x[0])\n")
    f.__defaults__ = (helper,)
    says(WAYS["gradient"], f, "it was made by exec")
    assert_allclose(fwdad.grad(lambda x: helper(x[0]))(X), [-math.sin(0.5), 0.0])


def test_helpers_with_a_source_above():
    """A leak of a function with a source has its own words, whoever has called it."""
    f = executed("def f(x, call=None):\n    return call(x)\n")
    f.__defaults__ = (fwdad.grad(lambda x: int(x[0]) * x[1]),)
    with pytest.raises(fwdad.errors.DualLeakError, match=r"^a value that carries a derivative"):
        f(X)


@pytest.mark.parametrize("text", ["struct.pack('d', x[0])", "memoryview(x)", "np.frombuffer(x)"])
def test_what_c_says_is_explained(text):
    f = executed(f"def f(x):\n    return {text}\n")
    with pytest.raises((TypeError, struct.error)) as caught:
        fwdad.jacobian(f, X, mode="forward")
    assert caught.value.__notes__[0].startswith("f has no source that can be read: it was made by")


def test_exceptions_of_the_program_are_its_own():
    f = executed("def f(x):\n    raise TypeError('mine')\n")
    with pytest.raises(TypeError, match=r"^mine$") as caught:
        fwdad.jacobian(f, X, mode="forward")
    assert not hasattr(caught.value, "__notes__")


def test_derivatives_that_need_no_source():
    f = executed("def f(x):\n    return np.sin(x[0]) * x[1]\n")
    assert_allclose(fwdad.grad(f)(X), GRADIENT)
    assert_allclose(fwdad.jacobian(f, X, mode="forward"), GRADIENT)


def test_supported_says_why():
    found = fwdad.supported(executed(TEXT))
    assert not found
    assert "no Python source to build one from: it was made by exec" in found.reason


def test_reversible_says_why():
    f = executed("def f(x):\n    x += 1.0\n")
    with pytest.raises(
        fwdad.errors.IrreversibleError, match=r"that of f is not found: it was made by"
    ):
        reversible(f)
