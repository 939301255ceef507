"""Which functions the tapes of gradients keep alive."""

import gc
import weakref

import numpy as np
import pytest

import fwdad


class Model:
    """Holds something large."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return np.sum(x**2) * self.scale


@pytest.mark.usefixtures("young_heap")
def test_objects_are_dropped():
    x = np.ones(3)
    seen = []
    for k in range(40):
        model = Model(float(k))
        seen.append(weakref.ref(model))
        np.testing.assert_array_equal(fwdad.grad(model)(x), 2.0 * k * x)
    del model
    gc.collect()
    assert sum(ref() is not None for ref in seen) <= 16


@pytest.mark.usefixtures("young_heap")
def test_closures_are_dropped():
    x = np.ones(3)
    seen = []

    def make(scale):
        held = Model(scale)
        seen.append(weakref.ref(held))
        return lambda x: np.sum(x**2) * held.scale

    for k in range(40):
        np.testing.assert_array_equal(fwdad.grad(make(float(k)))(x), 2.0 * k * x)
    gc.collect()
    assert sum(ref() is not None for ref in seen) <= 16


def test_many_in_turn_stay_right():
    x = np.ones(3)
    models = [Model(float(k)) for k in range(24)]
    for _ in range(2):
        for k, model in enumerate(models):
            np.testing.assert_array_equal(fwdad.grad(model)(x), 2.0 * k * x)


def test_two_functions_of_one_code_of_which_one_has_a_rule():
    def make():
        def square(x):
            return x**2

        return square

    plain, ruled = make(), make()
    fwdad.rrule(ruled)(lambda primals: (primals[0] ** 2, lambda y_bar: (100.0 * y_bar,)))
    for _ in range(2):
        assert fwdad.grad(ruled)(3.0) == 100.0
        assert fwdad.grad(plain)(3.0) == 6.0
