"""One function for each way to go wrong: the error, the place that it names, what it says."""

import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import fwdad
import fwdad.errors
from fwdad.colouring import colour
from fwdad.reversible import Stack, ancilla, free, push, reversible

X = np.array([1.0, 2.0, 3.0])


lapack = scipy.linalg.lapack


LOW, RIGHT = np.ones(2), np.ones((3, 1))


OBJECTS = np.array([1.0, 2.0], dtype=object)


CASES = []


def case(error, place, says=""):
    """Enter a function: called, it raises `error` at the expression `place` in its source."""

    def enter(function):
        CASES.append(pytest.param(function, error, place, says, id=function.__name__))
        return function

    return enter


# -- rules


@case(
    fwdad.errors.MissingRuleError, "lapack.dgtsv(LOW, y, LOW, RIGHT)", r"(?s)dgtsv.*@fwdad\.frule"
)
def c_function_without_a_rule():
    def f(x):
        y = x * 2.0
        return y + lapack.dgtsv(LOW, y, LOW, RIGHT)[3][0]

    return fwdad.jacobian(f, X)


@case(fwdad.errors.MissingRuleError, "weigh(x, weight=x[0])", r"weight")
def active_option_of_a_rule():
    def weigh(x, *, weight=1.0):
        return x * weight

    @fwdad.frule(weigh)
    def weigh_frule(primals, tangents, *, weight):
        return primals[0] * weight, tangents[0] * weight

    def f(x):
        return 1.0 + weigh(x, weight=x[0])

    return fwdad.jacobian(f, X)


@case(fwdad.errors.DuplicateRuleError, "fwdad.linear(double)", r"(?s)error_cases\.py.*override")
def second_rule():
    def double(x):
        return 2 * x

    fwdad.elementwise(double, lambda x, y: 2.0)
    return [fwdad.linear(double)]


def with_rule(body):
    """A function of one argument whose rule is `body`."""

    def primal(x):
        return x**2

    fwdad.frule(primal)(body)
    return lambda x: primal(x) * 2.0


@case(fwdad.errors.NonlinearTangentError, "x_dot * x_dot", "linear")
def rule_that_squares_its_tangent():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, 2 * x * (x_dot * x_dot)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.errors.NonlinearTangentError, "np.sin(x_dot)", "linear")
def rule_that_takes_the_sine_of_its_tangent():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, x * np.sin(x_dot)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.errors.ChunkOperationError, "np.partition(x_dot, 1)", r"lanes|map_lanes")
def rule_that_uses_what_is_not_on_the_list():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, x * np.partition(x_dot, 1)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.errors.ChunkOperationError, "x_dot + 1.0", "affine|add")
def rule_that_adds_a_constant():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, 2 * (x_dot + 1.0)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.errors.ChunkMismatchError, "x_dot + fwdad.Chunk(np.ones((5, 3)))", r"(?s)\b2\b.*\b5\b")
def rule_that_mixes_widths():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, x * (x_dot + fwdad.Chunk(np.ones((5, 3))))

    return fwdad.jacobian(with_rule(rule), X, chunk=2)


@case(fwdad.errors.RuleError, "head(y)", r"frule of .*head .*returns='view'")
def rule_that_says_nothing_of_a_view():
    def head(v):
        return v[:2]

    @fwdad.frule(head)
    def head_frule(primals, tangents):
        return primals[0][:2], fwdad.map_lanes(lambda t: t[:2], tangents[0])

    def f(x):
        y = x * 2.0
        h = head(y)
        h *= 3.0
        return y

    return fwdad.jacobian(f, X)


@case(fwdad.errors.ChunkMismatchError, "cut(x * 2.0)", r"\(3,\)|shape")
def rule_whose_tangent_has_another_shape():
    def cut(x):
        return x**2

    @fwdad.frule(cut)
    def rule(primals, tangents):
        return primals[0] ** 2, tangents[0][:2]

    def f(x):
        return 1.0 + cut(x * 2.0)

    return fwdad.jacobian(f, X)


# -- values


@case(fwdad.errors.NondeterministicFunctionError, "fwdad.jacobian(f, X, chunk=1)", r"chunk|differ")
def value_that_differs_between_chunks():
    left = iter([1.0, 2.0, 3.0])
    namespace = {"draw": left.__next__}
    exec("def draws(): return draw()", namespace)
    draws = namespace["draws"]

    def f(x):
        return x * draws()

    return 2.0 * fwdad.jacobian(f, X, chunk=1)


@case(fwdad.errors.UntraceableError, "np.random.standard_normal()", "random numbers")
def random_numbers_on_a_tape():
    def f(x):
        return x * np.random.standard_normal()

    return fwdad.trace(f, X)


@case(
    fwdad.errors.NotHolomorphicError, "fwdad.jacobian(f, X + 1j, holomorphic=True)", "holomorphic"
)
def not_holomorphic():
    def f(z):
        return z * np.conj(z)

    return 1.0 + fwdad.jacobian(f, X + 1j, holomorphic=True)


@case(fwdad.errors.NotHolomorphicError, "fwdad.jacobian(f, X + 1j)", "holomorphic=True")
def complex_without_saying_so():
    def f(z):
        return z * z

    return 1.0 + fwdad.jacobian(f, X + 1j)


@case(fwdad.errors.DualLeakError, "int(y[1])", r"int")
def int_of_a_dual():
    def f(x):
        y = x + 1.0
        return 2.0 * int(y[1]) + y

    return fwdad.jacobian(f, X)


@case(fwdad.errors.DualLeakError, "counts[1] = x[0]", "int")
def dual_into_an_integer_buffer():
    def f(x):
        counts = np.zeros(3, dtype=int)
        if len(counts):
            counts[1] = x[0]
        return counts

    return fwdad.jacobian(f, X)


@case(fwdad.errors.DualLeakError, "pickle.dumps([x])", "pickle|plain data")
def pickled_dual():
    def f(x):
        return x * len(pickle.dumps([x]))

    return fwdad.jacobian(f, X)


@case(fwdad.errors.DualLeakError, "pickle.dumps(x)", "plain data")
def saved_dual():
    def f(x):
        return x if pickle.dumps(x) else 2.0

    return fwdad.jacobian(f, X)


@case(fwdad.errors.UnpicklableTapeError, "pickle.dumps(tape)", "dict.*lock.*pass that as an arg")
def pickled_tape_that_reads_a_lock():
    held = {"rate": 2.0, "lock": threading.Lock()}
    tape = fwdad.trace(lambda x: held["rate"] * x, X)
    return pickle.dumps(tape)


@case(fwdad.errors.ExecutorError, "fwdad.jacobian(np.sin, X, executor=workers)", "takes no work")
def executor_that_is_shut_down():
    workers = ThreadPoolExecutor(1)
    workers.shutdown()
    return fwdad.jacobian(np.sin, X, executor=workers)


@case(fwdad.errors.UnpicklableFunctionError, "fwdad.jacobian(f, X, executor=workers)", "lock")
def function_that_cannot_be_sent():
    lock = threading.Lock()

    def f(x):
        with lock:
            return x * x

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers:
        return fwdad.jacobian(f, X, executor=workers)


@case(fwdad.errors.SharedWriteError, "fwdad.jacobian(f, X, executor=workers)", "array from outside")
def threads_that_write_one_array():
    kept = np.zeros(X.size)

    def f(x):
        kept[:] = x
        return kept * x

    with ThreadPoolExecutor(1) as workers:
        return fwdad.jacobian(f, X, executor=workers)


@case(fwdad.errors.CheckpointError, "fwdad.jacobian(np.sin, X, checkpoint_to=__file__)", "a file")
def checkpoint_that_is_a_file():
    return fwdad.jacobian(np.sin, X, checkpoint_to=__file__)


@case(fwdad.errors.ColouringError, 'colour(wide, kind="star")', r"symmetric.*\(2, 3\).*columns")
def colouring_of_a_wide_pattern():
    wide = scipy.sparse.csr_array(np.eye(2, 3))
    return colour(wide, kind="star")


@case(
    fwdad.errors.PatternError,
    "fwdad.jacobian(np.cumsum",
    r"misses the entry \(\d, \d\).*sparse=True",
)
def pattern_without_an_entry():
    return fwdad.jacobian(np.cumsum, np.ones(3), sparse=np.eye(3))


@case(fwdad.errors.OutError, "fwdad.jacobian(np.cumsum", r"(2, 3).*(3, 3)")
def out_of_another_shape():
    return fwdad.jacobian(np.cumsum, np.ones(3), out=np.empty((2, 3)))


@case(fwdad.errors.StaleValueError, "held[0] * x", "earlier derivative call.*stop_gradient")
def result_that_an_earlier_call_has_kept():
    held = []

    def f(x):
        if held:
            return held[0] * x
        held.append(x * x)
        return held[0]

    fwdad.jacobian(f, X)
    return fwdad.jacobian(f, X)


@case(fwdad.errors.DualLeakError, "x.ctypes", "ctypes")
def dual_for_ctypes():
    def f(x):
        return x * (2 + x.ctypes.data)

    return fwdad.jacobian(f, X)


@case(fwdad.errors.DeadDualError, "np.cos(dead) * dead", r"(?s)outliv|ended|call")
def dual_that_outlived_its_call():
    kept = []
    namespace = {"keep": kept.append}
    exec("def f(x):\n    keep(x)\n    return x", namespace)
    fwdad.jacobian(namespace["f"], X)
    dead = kept[0]
    return 2.0 + np.sin(dead * 2.0) if dead is None else [np.cos(dead) * dead]


@case(fwdad.errors.UndefinedDerivativeError, "vectors * x", "eigen")
def eigenvectors_of_a_repeated_eigenvalue():
    def f(x):
        values, vectors = np.linalg.eigh(x[0] * np.eye(3))
        total = np.sum(values)
        return total + vectors * x

    return fwdad.jacobian(f, X)


@case(fwdad.errors.UndefinedDerivativeError, "special.jv(x, 2.0)", "order|argument")
def derivative_by_the_order_of_a_bessel_function():
    from scipy import special  # noqa: PLC0415

    def f(x):
        return 1.0 + special.jv(x, 2.0)

    return fwdad.jacobian(f, X)


@case(fwdad.errors.AliasedArgumentError, "a[0] = 7.0", "alias|memory|copy")
def store_into_one_of_two_aliased_arguments():
    def f(a, b):
        if len(b):
            a[0] = 7.0
        return a * b

    return fwdad.jacobian(f, X, args=(X,))


# -- the call itself


@case(
    fwdad.errors.SeedError, "fwdad.jvp(np.sin, X, np.ones(4))", r"(?s)\(4,\).*\(3,\)|\(3,\).*\(4,\)"
)
def seed_of_another_shape():
    return [fwdad.jvp(np.sin, X, np.ones(4))]


@case(fwdad.errors.SeedError, "fwdad.jvp(f, dict(a=1.0), dict(b=1.0))", "structure|dict|key|'a'")
def seed_of_another_structure():
    def f(p):
        return p["a"]

    return [fwdad.jvp(f, dict(a=1.0), dict(b=1.0))]  # noqa: C408


@case(fwdad.errors.SeedError, "fwdad.jvp(np.sin, X, X * 1j)", "complex")
def complex_seed_of_a_real_argument():
    return [fwdad.jvp(np.sin, X, X * 1j)]


@case(fwdad.errors.NonScalarOutputError, "fwdad.grad(np.sin)(X)", r"(?s)\(3,\).*jacobian")
def gradient_of_a_vector():
    return 1.0 + fwdad.grad(np.sin)(X)


@case(fwdad.errors.NonScalarOutputError, "fwdad.hessian(np.sin, X)", r"\(3,\)")
def hessian_of_a_vector():
    return 1.0 + fwdad.hessian(np.sin, X)


@case(fwdad.errors.NonScalarOutputError, "fwdad.grad(f)(X)", r"complex")
def gradient_of_a_complex_value():
    def f(x):
        return np.sum(x) * 1j

    return 1.0 + fwdad.grad(f)(X)


@case(
    fwdad.errors.UnsupportedTypeError,
    "fwdad.jacobian(f, Opaque())",
    r"(?s)Opaque.*register_tangent_type",
)
def argument_of_an_unknown_type():
    class Opaque:
        pass

    def f(x):
        return 1.0

    return [fwdad.jacobian(f, Opaque())]


@case(fwdad.errors.UnsupportedTypeError, "fwdad.jacobian(np.sum, OBJECTS)", "object")
def argument_of_objects():
    return [fwdad.jacobian(np.sum, OBJECTS)]


@case(fwdad.errors.NoOutputError, "fwdad.jacobian(f, X)", r"(?s)None.*(return|mutated)")
def nothing_returned():
    def f(x):
        x * 2.0

    return [fwdad.jacobian(f, X)]


@case(TypeError, "", "2.0")
def derivative_by_an_int():
    return fwdad.derivative(np.sin, 2)


@case(TypeError, "", r"jacobian\(f, x, args=…\)")
def arguments_without_a_point():
    return fwdad.jacobian(np.sin, args=(1.0,))


# -- reversible functions


@case(fwdad.errors.IrreversibleError, "x = x + y", r"(?s)x.*\+=")
def statement_without_an_inverse():
    @reversible
    def f(x, y):
        x = x + y

    return f(1.0, 2.0)


@case(fwdad.errors.InvertibilityError, "free(t, 0.0)", r"2\.0.*must be 0\.0")
def promise_that_is_broken():
    @reversible
    def f(x, y):
        t = ancilla(0.0)
        t += y
        x += t
        free(t, 0.0)

    return f(1.0, 2.0)


@case(fwdad.errors.CapacityError, "push(s, x)", r"1")
def stack_that_is_full():
    @reversible
    def f(x, y, s):
        push(s, y)
        push(s, x)

    return f(1.0, 2.0, Stack(1))
