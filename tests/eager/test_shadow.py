"""Shadow memory: any two views of one piece of memory see the same tangents."""

import array
import ctypes

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.testing import assert_array_equal

import fwdad
from fwdad.eager.memory.shadow import (
    SHADOWED,
    Shadow,
    address,
    find_shadow,
    make_shadow,
    owner_of,
)
from fwdad.eager.run import Tag
from tests.cases.check import check_jacobian, programs, with_widths

ALIASES, aliased = programs()

X = np.array([0.7, 1.3, 0.4, 2.1])
OBLONG = np.array([[0.7, 1.3, 0.4], [0.2, -0.5, 0.9]])


@aliased(X)
def views_on_a_bytearray(x):
    memory = bytearray(32)
    whole, part = np.frombuffer(memory), np.frombuffer(memory, offset=8, count=2)
    whole[:] = x
    part *= x[0]
    whole[1] += part[1]
    return whole * 2


@aliased(X)
def views_on_an_array_array(x):
    memory = array.array("d", [0.0] * 4)
    a, b = np.frombuffer(memory), np.asarray(memory)
    a[:] = x
    b[1] *= x[0]
    return a * b


@aliased(X)
def views_on_ctypes(x):
    memory = (ctypes.c_double * 4)()
    a, b = np.ctypeslib.as_array(memory), np.frombuffer(memory)
    a[:] = x
    b[2] = a[3]
    return a * b


@aliased(X)
def view_of_a_memoryview(x):
    y = np.zeros(4)
    whole, part = np.asarray(memoryview(y)), np.asarray(memoryview(y)[1:3])
    y[:] = x
    part *= 2
    return whole * 2


@aliased(X)
def shapes_assigned_between_stores(x):
    y = np.zeros(4)
    y[:] = x
    view = y[1:3]
    view[0] *= x[0]
    y.shape = (2, 2)
    view.shape = (2, 1)
    view[1, 0] += x[3] * view[0, 0]
    y[1] *= y[0]
    return y


@aliased(X)
def a_view_of_no_axes(x):
    y = np.zeros(4)
    y[2] = x[0]
    corner = y[2, ...]
    corner += x[1] * corner
    return y * x


@aliased(X)
def many_views_in_turn(x):
    y = np.zeros((100, 4))
    for row in range(100):
        y[row] = x * row
    for row in range(1, 100):
        part = y[row, ::-1]
        part[1:] += y[row - 1, :3]
    return y[-1]


@aliased(X)
def overlapping_strides(x):
    y = np.zeros(4)
    pairs = as_strided(y, (3, 2), (8, 8))
    y[:] = x
    pairs[1, 1] *= x[0]
    return pairs.sum(axis=1) * y[:3]


@aliased(X)
def sliding_windows_that_are_written(x):
    y = np.zeros(4)
    pairs = sliding_window_view(y, 2, writeable=True)
    y[:] = x
    pairs[0] = pairs[1] * 2
    return y * pairs.sum()


@aliased(X)
def array_interface_of_another_object(x):
    y = np.zeros(4)

    class View:
        __array_interface__ = y.__array_interface__
        owner = y

    z = np.asarray(View())
    y[:] = x
    return z * 2


@aliased(X)
def dlpack(x):
    y = np.zeros(4)
    z = np.from_dlpack(y)
    y[:] = x
    return z * 2


@aliased(X)
def complex_view_of_reals(x):
    y = np.zeros(4)
    z = y.view(complex)
    y[:3] = x[1:]
    z *= 1j
    return y * 2


@aliased(X)
def real_and_imaginary_views(x):
    z = np.zeros(4, complex)
    re, im = z.real, z.imag
    z[:] = x * (1 + 2j)
    re[0] = x[1]
    im[:] = re * 2
    return np.concatenate((z.real, im))


@aliased(X)
def fields_of_a_structured_array(x):
    y = np.zeros(4, dtype=[("a", float), ("b", float)])
    a = y["a"]
    y["a"] = x
    y["b"][1:] = a[:-1] * 2
    return y["a"] * y["b"]


@aliased(X)
def steps_in_a_longer_buffer(x):
    memory = np.zeros(12)
    a, c = memory[1:5], memory[4:11:2]
    a[:] = x
    c *= 2
    c += x
    backwards = memory[::-3]
    backwards[1] = x[0]
    return memory


@aliased(OBLONG)
def fortran_order(x):
    y = np.zeros((2, 3), order="F")
    y[:] = x
    view, copy = y.ravel(order="F"), y.ravel()
    view[0] = 99.0
    copy[1] = 98.0
    y.T.reshape(-1)[2] = x[1, 1]
    return y * x


@aliased(X)
def zero_dimensional_views(x):
    y = np.zeros(2)
    v = y[0:1].reshape(())
    s = np.array(0.0)
    t = s
    s += x[0]
    t *= x[1]
    v[...] = s
    s[()] = s * x[2]
    return np.array([s[()], float(t), y[0]])


@aliased(X)
def rows_in_two_lists(x):
    y = np.zeros((2, 4))
    rows = list(y)
    y[0] = x
    rows[1][:] = rows[0] * x[0]
    return y


# NumPy 2.5 deprecates the assignment of shapes, which programs do all the same
@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize(("program", "chunk"), with_widths(ALIASES))
def test_views_on_one_memory(program, chunk):
    check_jacobian(program, chunk)


def test_owner_is_found_through_every_kind_of_view():
    y = np.zeros(6)
    for view in (
        y[::2],
        y.reshape(2, 3).T,
        as_strided(y, (2, 2), (8, 8)),
        sliding_window_view(y, 2)[1:],
        np.asarray(memoryview(y)),
        np.frombuffer(y),
    ):
        assert owner_of(view) is y
    memory = bytearray(8)
    assert owner_of(np.frombuffer(memory)[:]) is memory


def test_shadow_has_the_layout_of_its_owner():
    y = np.arange(6.0).reshape(2, 3)
    tag = Tag(3)
    shadow = Shadow(y, address(y), y.nbytes)
    shadow.allocate(tag)
    whole = shadow.view(tag, y)
    assert whole.shape == (3, 2, 3)
    assert_array_equal(whole, 0.0)
    shadow.view(tag, y.T[::-1])[2, 0, 1] = 7.0  # y[1, 2]
    expected = np.zeros((3, 2, 3))
    expected[2, 1, 2] = 7.0
    assert_array_equal(whole, expected)
    assert_array_equal(shadow.view(tag, y[1:, 1:]), expected[:, 1:, 1:])
    assert shadow.view(tag, y[:0]).shape == (3, 0, 3)


def test_find_and_make_shadow():
    y = np.zeros(4)
    assert find_shadow(y) is None
    tag = Tag(np.float64)
    shadow = make_shadow(y[1:], tag, np.zeros((3, 4)))
    try:
        assert find_shadow(y[::-1]) is shadow is make_shadow(y, tag)
        assert find_shadow(y.copy()) is None
        assert find_shadow(np.zeros(4)) is None
    finally:
        del SHADOWED[id(y)]


@pytest.mark.parametrize("fails", [False, True])
def test_no_shadow_is_left_behind(fails):
    def f(x):
        y = np.zeros(4)
        y[:] = x
        if fails:
            raise ZeroDivisionError
        return y

    before = dict(SHADOWED)
    if fails:
        with pytest.raises(ZeroDivisionError):
            fwdad.jacobian(f, X)
    else:
        fwdad.jacobian(f, X)
    assert before == SHADOWED


def test_memoryview_made_before_the_store_is_refused():
    def f(x):
        y = np.zeros(4)
        bytes_of_y = memoryview(y)
        y[:] = x
        return x * bytes_of_y[0]

    with pytest.raises(fwdad.errors.DualLeakError):
        fwdad.jacobian(f, X)


def test_subclass_on_shadowed_memory_is_refused():
    class Sub(np.ndarray):
        pass

    def f(x):
        y = np.zeros(4)
        s = y.view(Sub)
        y[:] = x
        return x * s.sum()

    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="Sub"):
        fwdad.jacobian(f, X)


def test_write_through_bytes_is_refused():
    def f(x):
        y = np.zeros(4)
        y[:] = x
        y.view(np.uint8)[:] = 0
        return y + x

    with pytest.raises(fwdad.errors.DualLeakError, match="uint8"):
        fwdad.jacobian(f, X)
