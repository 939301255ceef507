"""Under jit what is put out is put out at each call, with real values, in the program's order."""

import collections
import contextlib
import io
import logging
import warnings

import numpy as np
import pytest

import fwdad

X = np.array([1.0, 2.0, 3.0])
SEEN, LATEST = [], collections.deque(maxlen=2)
LOGGER = logging.getLogger("tests.world.compiled")

WAYS = {
    "jit": lambda f: fwdad.jit(f),
    "jit, numpy": lambda f: fwdad.jit(f, backend="numpy"),
    "jit(grad)": lambda f: fwdad.jit(fwdad.grad(f)),
    "jit(grad), numpy": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy"),
    "jit(jacfwd)": lambda f: fwdad.jit(fwdad.jacfwd(f, chunk=1)),
    "jit(hessian)": lambda f: fwdad.jit(lambda x: fwdad.hessian(f, x)),
    "jit(grad(checkpoint))": lambda f: fwdad.jit(fwdad.grad(fwdad.checkpoint(f))),
    "trace": lambda f: fwdad.trace(f, X),
}


def in_loops_and_branches(x):
    print("begins", x, end=";\n")
    total = np.sum(x) * 0.0
    for k in range(3):
        if x[k] > 1.5:
            print(f"{k}: {x[k]:.2f} {total!s:>8}", "%.3e" % x[k])  # noqa: UP031
            SEEN.append((k, x[k]))
        total = total + helper(x[k])
    print("{} and {:.1f}".format("total", total))
    LATEST.append(x * 2.0)
    return total


def helper(v):
    LOGGER.info("helper of %s", v)
    SEEN.append(v)
    return v * v


def seen_by(run, points):
    SEEN.clear()
    LATEST.clear()
    out, log = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    LOGGER.handlers[:], LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.INFO)
    with contextlib.redirect_stdout(out):
        for x in points:
            run(x)
    kept = [np.asarray(v).tolist() for v in SEEN], [a.tolist() for a in LATEST]
    return out.getvalue(), log.getvalue(), kept


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_in_order_at_each_call(way):
    points = [X, X[::-1].copy(), 0.5 * X, X]
    g = way(in_loops_and_branches)
    assert seen_by(g, points) == seen_by(in_loops_and_branches, points)


LEFT = np.zeros((2, 3))


def stores_and_raises(x):
    LEFT[0] = 2.0 * x
    for k in range(3):
        LEFT[1, k] = LEFT[0, k] + 1.0
        assert x[k] != 2.0, "two"
    if np.sum(x) > 5.0:
        LEFT[0, 1] = 9.0
        raise ValueError("large")
    LEFT[1] *= 2.0
    return np.sum(LEFT[0] * x)


@pytest.mark.slow_cases("jit(grad(checkpoint))")
@pytest.mark.parametrize("way", list(WAYS.values())[:-1], ids=list(WAYS)[:-1])
@pytest.mark.filterwarnings("ignore:checkpoint has no effect")
def test_what_is_stored_before_an_exception_stays(way):
    g = way(stores_and_raises)
    for x in (X, X / 4.0, X + 3.0, X[::-1] + 1.0):
        left, raised = [], []
        for run in (stores_and_raises, g):
            LEFT[:] = 0.0
            try:
                run(x.copy())
            except Exception as error:  # noqa: BLE001 - it is compared
                raised.append(type(error))
            left.append(LEFT.copy())
        np.testing.assert_array_equal(*left)
        assert raised[:1] == raised[1:]
    LEFT[:] = 0.0


def of_callers(x):
    total = 0.0
    for value in warning_steps(x):
        total = (
            total + warns(value)
        )  # fmt: skip
    return total


def warning_steps(x):
    for k in range(3):
        warnings.warn(f"step {k}", stacklevel=2)
        yield x[k]


def warns(v):
    warnings.warn("of the caller", UserWarning, 2)
    warnings.warn("of the caller's caller", stacklevel=3)
    return 2.0 * v


@pytest.mark.parametrize("way", ["plain", "jit, numpy", "jit(grad), numpy"])
def test_warnings_of_callers(way):
    def outer(x):
        return of_callers(x)

    with pytest.warns(UserWarning, match="step|of the") as caught:
        WAYS.get(way, lambda f: f)(outer)(X)
    first = of_callers.__code__.co_firstlineno
    assert {w.filename for w in caught} == {__file__}
    lines = {str(w.message): w.lineno - first for w in caught}
    furthest = lines.pop("of the caller's caller")
    assert lines == {"step 0": 2, "step 1": 2, "step 2": 2, "of the caller": 4}
    assert furthest == outer.__code__.co_firstlineno + 1 - first


def test_tracing_puts_nothing_out():
    assert seen_by(lambda x: fwdad.trace(in_loops_and_branches, x), [X]) == ("", "", ([], []))


def test_a_list_that_is_also_read_is_refused():
    def f(x):
        SEEN.append(x[0])
        return np.sum(x) * len(SEEN)

    def g(x):
        last = SEEN[-1] if SEEN else 0.0
        SEEN.append(x[0])
        return np.sum(x) * last

    SEEN[:] = [1.0]
    for h in (f, g):
        with pytest.raises(fwdad.errors.UntraceableError, match="appended to, and is read"):
            fwdad.jit(h)(X)
    assert SEEN == [1.0]


def test_arrays_that_are_appended_are_copies():
    def f(x):
        u = x * 1.0
        SEEN.append(u)
        y = u * 3.0
        return np.sum(y * y)

    SEEN.clear()
    g = fwdad.jit(fwdad.grad(f))
    for k in (1.0, 2.0, 3.0):
        g(k * X)
    assert [a.tolist() for a in SEEN] == [(k * X).tolist() for k in (1.0, 2.0, 3.0)]


def test_what_is_not_known_to_be_put_out_only_is_refused():
    def opened(x):
        with open("never", "w") as file:  # noqa: PTH123
            file.write("a")
        return np.sum(x)

    for f in (opened, lambda x: np.sum(x) + (input() == "a"), lambda x: x.tofile("never") or x):
        with pytest.raises(fwdad.errors.UntraceableError) as caught:
            fwdad.jit(f)(X)
        assert caught.value.filename == __file__


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_files_of_numpy(way, tmp_path):
    binary, text, archive = tmp_path / "a.npy", str(tmp_path / "b.txt"), tmp_path / "c.npz"

    def f(x):
        np.save(binary, x)
        np.savetxt(text, 2.0 * x)
        np.savez(archive, x=x * 3.0)
        return np.sum(x * x)

    g = way(f)
    for k in (1.0, 2.0):
        g(k * X)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), k * X)
        np.testing.assert_array_equal(np.loadtxt(tmp_path / "b.txt"), 2.0 * k * X)
        np.testing.assert_array_equal(np.load(tmp_path / "c.npz")["x"], 3.0 * k * X)
