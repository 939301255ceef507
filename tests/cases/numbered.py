"""The numbered cases as functions of one argument that return a number, and their gradients."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fwdad import derivative, grad, hessian, jacobian, jvp

INF, NAN = math.inf, math.nan
NUMBERED: list["KnownGradient"] = []


class KnownGradient(NamedTuple):
    """A function, a point, and the gradient that is known beforehand."""

    number: int
    function: Callable[[Any], Any]
    x: Any
    gradient: Any
    rtol: float = 1e-14

    def __str__(self):
        return f"{self.number}-{self.function.__name__}"


def case(number, x, gradient, **facts):
    """Enter a function at a point."""

    def enter(function):
        known = (x, gradient) if isinstance(x, float) else (np.asarray(x), np.asarray(gradient))
        NUMBERED.append(KnownGradient(number, function, *known, **facts))
        return function

    return enter


T12, T13 = np.linspace(-1.0, 2.0, 12), np.linspace(-2.0, 3.0, 13)


@case(1, T13, 2 * T13)
def squares(x):
    return np.sum(x**2)


@case(2, T12, np.exp(np.sin(T12)) * np.cos(T12))
def elementwise(x):
    return np.sum(np.exp(np.sin(x)))


@case(3, T12, 8 * T12)
def squares_of_doubled(x):
    x *= 2
    return np.sum(x**2)


@case(3, T12, np.linspace(0.0, 2.0, 12))
def doubled_and_returned(x):
    def doubled(x):
        x *= 2
        return x

    return doubled(x) @ np.linspace(0.0, 1.0, 12)


A6 = np.array([[2.0, 1.0], [0.5, 3.0]])
INVERSE = np.linalg.inv(A6)


@case(6, A6, -INVERSE.T @ np.array([[1.0, 2.0], [3.0, 4.0]]) @ INVERSE.T, rtol=1e-12)
def inverse_of_a_view(x):
    big = np.zeros((4, 4))
    big[::2, 1::2] = x
    return np.sum(np.linalg.inv(big[::2, 1::2]) * np.array([[1.0, 2.0], [3.0, 4.0]]))


@case(8, 1.0, 1.0)
def derivative_within(x):
    return x * derivative(lambda y: x + y, 1.0)


@case(8, 2.0, 0.0)
def derivative_of_what_is_outside(x):
    return derivative(lambda y: x, 1.0)


@case(8, 1.0, 1.0)
def one_function_within_itself(y):
    return within_itself(y)


def within_itself(y, x=None):
    return y * derivative(within_itself, 1.0, args=(y,)) if x is None else x + y


Q8 = np.array([[1.0, 2.0], [-3.0, 0.5]])


@case(8, [0.3, -0.7], (Q8 + Q8.T) @ [1.0, 2.0])
def jacobian_of_a_gradient(x):
    """By one more derivative: the product of the Hessian with a vector."""
    return jvp(lambda x: x @ Q8 @ x, x, np.array([1.0, 2.0]))[1]


@case(8, 1.5, 24 * 1.5, rtol=1e-13)
def three_levels(x):
    return derivative(lambda y: derivative(lambda z: z**4, y), x) * 1.0


@case(9, 1.0, 0.0)
def branch_at_equality(x):
    return 1.0 if x == 1 else x**2


@case(10, [1.0, 2.0, 1.0, 2.0, 3.0], [2.0, 4.0, 0.0, 0.0, 6.0])
def first_of_equals(x):
    return np.sum(np.unique(x) ** 2)


@case(11, [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, np.pi, 3.0]],
      [[6.0, 0.0, 0.0], [0.0, 3.0, -np.pi], [0.0, 0.0, 2.0]])  # fmt: skip
def determinant(x):
    return np.linalg.det(x)


@case(12, [0.0, 0.0], [3.0, -1.0])
def product_at_zero(x):
    return np.sum(x * (np.array([[1.0, 2.0], [-3.0, 1.0]]) @ np.ones(2)) * [1.0, 0.5])


@case(12, [0.0, 0.0], (Q8 + Q8.T) @ [2.0, 3.0])
def hessian_at_zero(x):
    return (
        hessian(lambda x: x @ Q8 @ x, x)[0] @ x * 2.0 + hessian(lambda x: x @ Q8 @ x, x)[1] @ x * 3
    )


@case(13, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
def norm_at_zero(x):
    return np.linalg.norm(x)


@case(13, [1.0, 0.0], [0.0, INF])
def logarithm_at_zero(x):
    return np.log(0 + x[1])


@case(13, [0.0, 4.0, -1.0], [0.0, 0.25, 0.0])
def square_root_under_where(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0))


@case(14, [0.0, 0.5], [INF, 0.0])
@case(14, [0.0, 1.5], [0.0, 0.0])
@case(14, [0.0, 0.0], [0.0, -INF])
@case(14, [-2.0, 3.0], [12.0, NAN])
def power(x):
    return x[0] ** x[1]


@case(14, 0.0, 0.0)
def beyond_the_degree(x):
    return derivative(lambda x: derivative(lambda x: x**2, x), x)


@case(15, [1.0, 1.0], [1.0, 0.0])
def tie_of_two(x):
    return np.maximum(x[:1], x[1:])[0]


@case(15, [2.0, 2.0, 2.0], [1.0, 0.0, 0.0])
def tie_of_many(x):
    return np.max(x)


@case(15, [2.0, NAN, 5.0], [0.0, 1.0, 0.0])
def nan_is_the_greatest(x):
    return np.max(x)


@case(15, [-1.0, 0.0, 0.5, 1.0, 2.0], [0.0, 1.0, 1.0, 1.0, 0.0])
def clip_at_its_ends(x):
    return np.sum(np.clip(x, 0.0, 1.0))


@case(15, [-2.0, 0.0, 3.0], [-1.0, 0.0, 1.0])
def magnitude_at_zero(x):
    return np.sum(np.abs(x))


@case(15, [2.0, -2.0, 2.0, -2.0], [1.0, -1.0, -1.0, 1.0])
def signs_that_agree(x):
    return np.sum(np.copysign(x, np.array([3.0, 3.0, -3.0, -0.0])))


@case(16, [0.0], [0.0])
def least_of_one_and_infinity(x):
    return min(1, 1 / x[0])


@case(17, [0.5, 1.5, 2.5], [1.0 + 2.0, 1.0, 1.0])
def carries_no_tangent(x):
    return np.sum(x) + x[0] * np.argmax(x) + np.floor(x[1]) + np.round(x[2]) + (x[1] > 1)


@case(18, np.zeros(0), np.zeros(0))
def empty(x):
    return np.sum(x**2)


@case(18, [1.0, 2.0], [0.0, 0.0])
def constant(x):
    return 3.0


@case(18, np.array(2.0), np.array(12.0))
def without_axes(x):
    y = x.reshape(())
    return np.sum(y * y * y)


@case(18, 1.5, 3.0)
def python_float(x):
    return x * x


@case(19, 1.2, 10.368)
def scratch(x):
    tmp = np.zeros(1)
    tmp[0] = 1
    for _ in range(5):
        tmp[0] *= x
    return tmp[0]


@case(22, np.array([1.5, 2.5], np.float32), np.array([0.6, 1.0], np.float32), rtol=1e-6)
def single_with_double(x):
    return np.sum(x * x * np.array([0.2, 0.2]))


@case(22, [3.0, 4.0], [0.6, 0.8])
def through_complex(x):
    return np.abs(x[0] + 1j * x[1])


@case(22, [0.7, 1.3, 2.1, 0.4], [8 * 0.7, 8 * 1.3, 8 * 2.1, 8 * 0.4], rtol=1e-13)
def through_fft(x):
    return np.sum(np.abs(np.fft.fft(x)) ** 2)


R23 = np.array([[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])


@case(23, [1.0, 2.0, 3.0], [4 + 14.0, 5 + 16.0, 6 + 18.0])
def unequal_ranks(x):
    return np.sum((x * R23).T * [1.0, 2.0])


@case(8, [0.5, 1.5], jacobian(grad(lambda x: np.sum(x**3) * x[0]), np.array([0.5, 1.5]),
                              mode="forward") @ np.ones(2))  # fmt: skip
def gradient_within(x):
    return np.sum(grad(lambda x: np.sum(x**3) * x[0])(x))
