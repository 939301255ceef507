"""The bar of long derivatives: nothing in the first second, and nothing without tqdm."""

import sys
import time

import numpy as np
import pytest

import fwdad

X = np.linspace(0.2, 1.1, 9)


def field(x):
    return np.sin(x) * x[::-1]


def slow(x):
    time.sleep(0.15)
    return field(x)


def loss(x):
    time.sleep(0.15)
    return np.sum(x**3)


def loss_of_all(x):
    time.sleep(0.15)
    return np.sum(x) ** 3


def blocks(f, mode, **options):
    return list(fwdad.jacobian_blocks(f, X, mode=mode, chunk=1, **options))


FORWARD = {"mode": "forward", "chunk": 1}


@pytest.mark.every(6)
@pytest.mark.parametrize(
    "take",
    [
        lambda: fwdad.jacobian(slow, X, progress=True, **FORWARD),
        lambda: fwdad.value_and_jacobian(slow, progress=True, **FORWARD)(X),
        lambda: fwdad.jacobian(slow, X, out=np.empty((9, 9)), progress=True, **FORWARD),
        lambda: fwdad.jacfwd(slow, chunk=1, progress=True)(X),
        lambda: fwdad.hessian(loss, X, chunk=1, progress=True),
        lambda: blocks(slow, "forward", progress=True),
        lambda: fwdad.jacobian(slow, X, sparse=True, chunk=1, progress=True),
        lambda: fwdad.hessian(loss_of_all, X, sparse=True, chunk=1, progress=True),
    ],
)
def test_a_bar(take, capsys):
    take()
    shown = capsys.readouterr().err
    assert "9/9" in shown
    assert "columns" in shown


def test_rows(capsys, monkeypatch):
    """Rows are counted, too; here from the beginning."""
    monkeypatch.setattr("fwdad.core.progress._SILENT", 0)
    fwdad.jacrev(field, chunk=2, progress=True)(X)
    fwdad.jacobian(field, X, mode="reverse", chunk=2, out=np.empty((9, 9)), progress=True)
    blocks(field, "reverse", progress=True)
    fwdad.jacrev(lambda x: field(np.cumsum(x)), sparse=True, progress=True)(X)
    shown = capsys.readouterr().err
    assert shown.count("9/9") >= 4
    assert "rows" in shown
    next(fwdad.jacobian_blocks(field, X, chunk=2, progress=True))
    assert "2/9" in capsys.readouterr().err


def test_directions(capsys):
    x = np.ones(3)
    fwdad.jvp(lambda x: slow(x) * x[0], x, np.ones((8, 3)), chunk=1, progress=True)
    shown = capsys.readouterr().err
    assert "jvp" in shown
    assert "8/8" in shown
    assert "directions" in shown


def test_silence(capsys):
    """Of what takes less than a second, and where nothing is asked for."""
    for f in (field, fwdad.jit(field, backend="numpy")):
        fwdad.jacobian(f, X, chunk=1)  # traced, which may take its time
        fwdad.jacrev(f)(X)
        capsys.readouterr()
        fwdad.jacobian(f, X, chunk=1, progress=True)
        fwdad.jacobian(f, X, progress=True)
        fwdad.jacrev(f, progress=True)(X)
        fwdad.jacobian(f, X, sparse=True, progress=True)
        fwdad.jvp(f, X, np.ones((2, 9)), progress=True)
        blocks(f, "forward", progress=True)
    fwdad.hessian(lambda x: np.sum(x**3), X, progress=True)
    fwdad.jit(lambda x: fwdad.jacobian(field, x, chunk=2, progress=True))(X)
    assert capsys.readouterr().err == ""


def test_without_tqdm(monkeypatch):
    """It is an extra: the error says which, before f is run."""
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert fwdad.jacobian(field, X).shape == (9, 9)

    def never(_x):
        raise AssertionError

    for take in (
        lambda: fwdad.jacobian(never, X, progress=True),
        lambda: fwdad.jacobian_blocks(never, X, progress=True),
        lambda: fwdad.hessian(never, X, progress=True),
        lambda: fwdad.jacobian(never, X, sparse=True, progress=True),
        lambda: fwdad.hessian(never, X, sparse=True, progress=True),
        lambda: fwdad.jvp(never, X, X, progress=True),
    ):
        with pytest.raises(ImportError, match=r"fwdad\[progress\]"):
            take()
