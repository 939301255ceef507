"""What is known of a loop's arrays is true: whose memory they are, and how they lie."""

import math

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from numpy.testing import assert_array_equal  # noqa: E402

from fwdad.codegen.llvm.allocation import growing, grown, part_of_stack  # noqa: E402
from fwdad.codegen.loops.array_provenance import Adjacent, Arrays, Given, met  # noqa: E402
from fwdad.codegen.numba_compile import Machine  # noqa: E402
from fwdad.codegen.numpy_backend.source import Source, defined  # noqa: E402
from fwdad.codegen.runtime.arithmetic import loose  # noqa: E402

ARRAYS = {  # by the statement that makes it: the axis that is known, and whether it is apart
    "a": (1, False),
    "b": (1, False),
    "b.T": (0, False),
    "a[1:]": (1, False),
    "a[:, 1:]": (1, False),
    "a[1, :, None]": (1, False),  # of length 1
    "a[:, 0]": (None, False),
    "a[:k, :k]": (1, False),
    "a[:k, k:, None]": (1, False),
    "a[k]": (0, False),
    "a[:, k]": (None, False),
    "cube.transpose((1, 2, 0))": (1, False),
    "cube.transpose((1, 2, 0))[:, :, 0]": (1, False),
    "cube.transpose((1, 2, 0))[0]": (0, False),
    "cube.transpose((1, 2, 0))[:, 0]": (None, False),
    "cube[:, 1:, 1:].transpose((2, 0, 1))": (0, False),
    "a[::2, ::2]": (None, False),
    "a[:, ::-1]": (Adjacent(1, -1), False),
    "a[::-1, ::-1]": (Adjacent(1, -1), False),
    "a[::-1, 1:]": (1, False),
    "a.T[::-1]": (Adjacent(0, -1), False),
    "a[:, ::-1][1:, None, ::-1]": (2, False),
    "a[1, ::-1]": (Adjacent(0, -1), False),
    "a[::-1, 1]": (None, False),
    "a[:, ::-2]": (None, False),
    "loose(a)[:, 1:]": (1, False),
    "loose(a.copy()[:, ::-1])": (Adjacent(1, -1), True),
    "loose(strided)": (None, False),
    "strided": (None, False),
    "strided[1:]": (None, False),
    "np.broadcast_to(a[0, :1], (3,))": (None, False),
    "a.copy()": (1, True),
    "a.copy()[:, 1:]": (1, True),
    "np.empty((k + 2, 3), np.float64)": (1, True),
    "np.zeros((3, k + 2), np.float64).transpose((1, 0))": (0, True),
    "np.dot(a, b)": (1, True),
    "np.arange(0, 3, 1)": (0, True),
    "np.ascontiguousarray(a)": (1, False),
    "a.reshape((k * 9,))": (0, False),
    "growing(5, np.float64)": (0, True),
    "grown(growing(5, np.float64), 10)": (0, True),
}


def made_of(monkeypatch, lines, names, *args):
    """What is known of the arrays of some names, and the arrays, made by NumPy."""
    heard = {}
    given = Arrays.given

    def listening(self, called):
        found = given(self, called)
        heard.update(zip([name.partition(".")[0] for name in called], found, strict=True))
        return found

    monkeypatch.setattr(Arrays, "given", listening)
    loop = [
        "total = 0.0",
        "for i in range(1):",
        *(f"    total = total + {name}.size" for name in names),
    ]
    answered = f"return ({''.join(name + ', ' for name in names)} total)"
    code = "\n    ".join(["def f(a, b, cube, strided, k):", *lines, *loop, answered]) + "\n"
    used = growing, grown, part_of_stack, loose
    namespace = {"np": np, **{f.__name__: f for f in used}}
    source = Source("f", code, namespace, [None] * code.count("\n"))
    made = Machine(source, None, {})
    found = made.kernel(*args)
    assert not any(nest.is_refused for nest in made.nests)
    plain = namespace | {
        "loose": lambda a: a,
        "growing": lambda n, t: np.empty(n, t),
        "grown": lambda a, n: np.append(a, np.zeros(n - a.size)),
        "part_of_stack": lambda a, at, shape, _: a[at : at + math.prod(shape)].reshape(shape),
    }
    source.namespace.update(plain)
    wanted = defined(source)(*args)
    for one, other in zip(found, wanted, strict=True):
        assert np.shape(one) == np.shape(other)
    return heard, dict(zip(names, wanted, strict=False))


ARGUMENTS = (
    np.arange(9.0).reshape(3, 3), np.arange(9.0).reshape(3, 3) + 1.0,
    np.arange(27.0).reshape(3, 3, 3), np.arange(20.0)[::2], 1,
)  # fmt: skip


@pytest.mark.parametrize("part", range(2))
def test_what_is_known_is_so(monkeypatch, part):
    """Of each way to make an array, beside what NumPy's arrays say."""
    some = list(ARRAYS)[part::2]
    names = [f"x{k}" for k in range(len(some))]
    lines = [f"{name} = {made}" for name, made in zip(names, some, strict=True)]
    known, arrays = made_of(monkeypatch, lines, names, *ARGUMENTS)
    for name, made in zip(names, some, strict=True):
        array, (found, is_apart) = arrays[name], known[name]
        axis, wanted = ARRAYS[made]
        assert (found, is_apart) == (Adjacent(axis) if type(axis) is int else axis, wanted), made
        for k, stride in enumerate(known[name].strides(array.ndim, array.itemsize)):
            assert stride in (None, array.strides[k]) or array.shape[k] == 1, made
        if is_apart:
            others = [other for key, other in arrays.items() if key != name]
            assert not any(np.shares_memory(array, other) for other in others), made


def test_names_that_are_assigned_twice(monkeypatch):
    """A name may stand for memory that another one has, if any of its statements says so."""
    lines = [
        "u = np.zeros((3, 3), np.float64)",
        "v = np.zeros((3, 3), np.float64)",
        "w = np.zeros((3, 3), np.float64)",
        "x = u",
        "y = w[1:]",
        "if k > 0:",
        "    x = a",
        "if k > 3:",
        "    y = a[:-1]",
        "while k > 2:",
        "    x = y",
        "    k = k - 1",
        "z = x[:, 1:]",
    ]
    known, arrays = made_of(monkeypatch, lines, ["u", "v", "w", "z"], *ARGUMENTS[:4], 3)
    assert {name: g.is_apart for name, g in known.items()} == {
        "u": False, "v": True, "w": False, "z": False,
    }  # fmt: skip
    assert np.shares_memory(arrays["z"], arrays["w"])


@pytest.mark.parametrize(("names", "apart"), [
    ("one two", "one two"), ("one two new", "one two new"), ("one again two", "two"),
    ("one all", ""), ("all new", "all new"), ("one of_given", ""),
])  # fmt: skip
def test_parts_of_a_stack(monkeypatch, names, apart):
    """Those of two kinds are apart; the stack is not apart from any of them."""
    lines = [
        "all = growing(20, np.float64)",
        "one = part_of_stack(all, k, (3, 2), 0)",
        "two = part_of_stack(all, k + 6, (3,), 1)",
        "again = part_of_stack(all, k, (6,), 0)",
        "new = np.zeros((3,), np.float64)",
        "of_given = part_of_stack(a.reshape((9,)), k, (2,), 1)",
    ]
    known, arrays = made_of(monkeypatch, lines, names.split(), *ARGUMENTS)
    assert {name for name, g in known.items() if g.is_apart} == set(apart.split())
    assert {name: g.neighbours for name, g in known.items()} == {
        name: Adjacent(array.ndim - 1) for name, array in arrays.items()
    }


def test_what_a_loop_carries(monkeypatch):
    """Elements are adjacent if they are in each iteration."""
    lines = [
        "u = loose(a)",
        "v = loose(a)",
        "w = loose(a.copy())",
        "while k > 0:",
        "    u = loose(np.zeros((3, 3), np.float64))",
        "    v = loose(b.T)",
        "    w = loose(w.copy()[:, ::-1])",
        "    k = k - 1",
        "x = u[:, ::-1]",
    ]
    known, _ = made_of(monkeypatch, lines, ["u", "v", "w", "x"], *ARGUMENTS[:4], 3)
    assert known == {
        "u": Given(Adjacent(1)), "v": Given(), "w": Given(is_apart=True),
        "x": Given(Adjacent(1, -1)),
    }  # fmt: skip


def test_a_loop_knows_what_holds_at_all_its_calls():
    """One function serves them."""
    rows, turned = Given(Adjacent(1)), Given(Adjacent(1, -1))
    one = [rows._replace(is_apart=True), Given(Adjacent(0), is_apart=True), Given(), rows]
    other = [rows, rows._replace(is_apart=True), Given(None, is_apart=True), turned]
    assert met([one, other]) == [rows, Given(None, is_apart=True), Given(), Given()]
    assert met([one]) == one


CALLED_TWICE = """
def f(a, b):
    t = np.zeros((a.shape[0],), np.float64)
    for i in range(b.shape[0] - 1):
        t[i + 1] = t[i + 1] + b[i]
    n = t.size
    for i in range(b.shape[0] - 1):
        a[i + 1] = a[i + 1] + b[i]
    return (t, a, n)
"""


@pytest.mark.fast_code
def test_arguments_that_overlap():
    """The same loop, once with new memory and once with arguments that share theirs."""
    lines = CALLED_TWICE.strip() + "\n"
    source = Source("f", lines, {"np": np}, [None] * lines.count("\n"))
    made = Machine(source, None, {})
    assert len(made.nests) == 1
    for shift in (0, 1, 2):
        own, given = np.arange(40.0), np.arange(40.0)
        found = made.kernel(given[shift:], given[: 40 - shift])
        wanted = defined(source)(own[shift:], own[: 40 - shift])
        for one, other in zip(found, wanted, strict=True):
            assert_array_equal(one, other)
