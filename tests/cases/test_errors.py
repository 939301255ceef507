"""Every error class says what came, where (file, line and column), and what to do."""

import inspect
import os
import pickle
import re
import subprocess
import sys
import textwrap
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import fwdad
import fwdad.errors

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


def find(function, place):
    """File, line and column (from 1) of the one place in a function's source that reads so."""
    lines, first = inspect.getsourcelines(function)
    head = next(k for k, text in enumerate(lines) if text.lstrip().startswith("def "))
    hits = [(k, text.index(place)) for k, text in enumerate(lines) if place in text and k > head]
    assert len(hits) == 1, f"{place!r} stands {len(hits)} times in {function.__name__}"
    ((k, column),) = hits
    return __file__, first + k, column + 1


# -- rules


@case(fwdad.MissingRuleError, "lapack.dgtsv(LOW, y, LOW, RIGHT)", r"(?s)dgtsv.*@fwdad\.frule")
def c_function_without_a_rule():
    def f(x):
        y = x * 2.0
        return y + lapack.dgtsv(LOW, y, LOW, RIGHT)[3][0]

    return fwdad.jacobian(f, X)


@case(fwdad.MissingRuleError, "weigh(x, weight=x[0])", r"weight")
def active_option_of_a_rule():
    def weigh(x, *, weight=1.0):
        return x * weight

    @fwdad.frule(weigh)
    def weigh_frule(primals, tangents, *, weight):
        return primals[0] * weight, tangents[0] * weight

    def f(x):
        return 1.0 + weigh(x, weight=x[0])

    return fwdad.jacobian(f, X)


@case(fwdad.DuplicateRuleError, "fwdad.linear(double)", r"(?s)test_errors\.py.*override")
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


@case(fwdad.NonlinearTangentError, "x_dot * x_dot", "linear")
def rule_that_squares_its_tangent():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, 2 * x * (x_dot * x_dot)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.NonlinearTangentError, "np.sin(x_dot)", "linear")
def rule_that_takes_the_sine_of_its_tangent():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, x * np.sin(x_dot)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.ChunkOperationError, "np.partition(x_dot, 1)", r"lanes|map_lanes")
def rule_that_uses_what_is_not_on_the_list():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, x * np.partition(x_dot, 1)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.ChunkOperationError, "x_dot + 1.0", "affine|add")
def rule_that_adds_a_constant():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, 2 * (x_dot + 1.0)

    return fwdad.jacobian(with_rule(rule), X)


@case(fwdad.ChunkMismatchError, "x_dot + fwdad.Chunk(np.ones((5, 3)))", r"(?s)\b2\b.*\b5\b")
def rule_that_mixes_widths():
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**2, x * (x_dot + fwdad.Chunk(np.ones((5, 3))))

    return fwdad.jacobian(with_rule(rule), X, chunk=2)


@case(fwdad.ChunkMismatchError, "cut(x * 2.0)", r"\(3,\)|shape")
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


@case(fwdad.NondeterministicFunctionError, "fwdad.jacobian(f, X, chunk=1)", r"chunk|differ")
def value_that_differs_between_chunks():
    left = iter([1.0, 2.0, 3.0])
    namespace = {"draw": left.__next__}
    exec("def draws(): return draw()", namespace)
    draws = namespace["draws"]

    def f(x):
        return x * draws()

    return 2.0 * fwdad.jacobian(f, X, chunk=1)


@case(fwdad.NotHolomorphicError, "fwdad.jacobian(f, X + 1j, holomorphic=True)", "holomorphic")
def not_holomorphic():
    def f(z):
        return z * np.conj(z)

    return 1.0 + fwdad.jacobian(f, X + 1j, holomorphic=True)


@case(fwdad.NotHolomorphicError, "fwdad.jacobian(f, X + 1j)", "holomorphic=True")
def complex_without_saying_so():
    def f(z):
        return z * z

    return 1.0 + fwdad.jacobian(f, X + 1j)


@case(fwdad.DualLeakError, "int(y[1])", r"int")
def int_of_a_dual():
    def f(x):
        y = x + 1.0
        return 2.0 * int(y[1]) + y

    return fwdad.jacobian(f, X)


@case(fwdad.DualLeakError, "counts[1] = x[0]", "int")
def dual_into_an_integer_buffer():
    def f(x):
        counts = np.zeros(3, dtype=int)
        if len(counts):
            counts[1] = x[0]
        return counts

    return fwdad.jacobian(f, X)


@case(fwdad.DualLeakError, "pickle.dumps([x])", "pickle|plain data")
def pickled_dual():
    def f(x):
        return x * len(pickle.dumps([x]))

    return fwdad.jacobian(f, X)


@case(fwdad.DualLeakError, "np.save(sys.stderr, x)", "file|save")
def saved_dual():
    def f(x):
        return x if np.save(sys.stderr, x) else 2.0

    return fwdad.jacobian(f, X)


@case(fwdad.DualLeakError, "x.ctypes", "ctypes")
def dual_for_ctypes():
    def f(x):
        return x * (2 + x.ctypes.data)

    return fwdad.jacobian(f, X)


@case(fwdad.DeadDualError, "np.cos(dead) * dead", r"(?s)outliv|ended|call")
def dual_that_outlived_its_call():
    kept = []
    namespace = {"keep": kept.append}
    exec("def f(x):\n    keep(x)\n    return x", namespace)
    fwdad.jacobian(namespace["f"], X)
    dead = kept[0]
    return 2.0 + np.sin(dead * 2.0) if dead is None else [np.cos(dead) * dead]


@case(fwdad.UndefinedDerivativeError, "vectors * x", "eigen")
def eigenvectors_of_a_repeated_eigenvalue():
    def f(x):
        values, vectors = np.linalg.eigh(x[0] * np.eye(3))
        total = np.sum(values)
        return total + vectors * x

    return fwdad.jacobian(f, X)


@case(fwdad.UndefinedDerivativeError, "special.jv(x, 2.0)", "order|argument")
def derivative_by_the_order_of_a_bessel_function():
    from scipy import special  # noqa: PLC0415

    def f(x):
        return 1.0 + special.jv(x, 2.0)

    return fwdad.jacobian(f, X)


@case(fwdad.AliasedArgumentError, "a[0] = 7.0", "alias|memory|copy")
def store_into_one_of_two_aliased_arguments():
    def f(a, b):
        if len(b):
            a[0] = 7.0
        return a * b

    return fwdad.jacobian(f, X, args=(X,))


# -- the call itself


@case(fwdad.SeedError, "fwdad.jvp(np.sin, X, np.ones(4))", r"(?s)\(4,\).*\(3,\)|\(3,\).*\(4,\)")
def seed_of_another_shape():
    return [fwdad.jvp(np.sin, X, np.ones(4))]


@case(fwdad.SeedError, "fwdad.jvp(f, dict(a=1.0), dict(b=1.0))", "structure|dict|key|'a'")
def seed_of_another_structure():
    def f(p):
        return p["a"]

    return [fwdad.jvp(f, dict(a=1.0), dict(b=1.0))]  # noqa: C408


@case(fwdad.SeedError, "fwdad.jvp(np.sin, X, X * 1j)", "complex")
def complex_seed_of_a_real_argument():
    return [fwdad.jvp(np.sin, X, X * 1j)]


@case(fwdad.NonScalarOutputError, "fwdad.grad(np.sin)(X)", r"(?s)\(3,\).*jacobian")
def gradient_of_a_vector():
    return 1.0 + fwdad.grad(np.sin)(X)


@case(fwdad.NonScalarOutputError, "fwdad.hessian(np.sin, X)", r"\(3,\)")
def hessian_of_a_vector():
    return 1.0 + fwdad.hessian(np.sin, X)


@case(fwdad.NonScalarOutputError, "fwdad.grad(f)(X)", r"complex")
def gradient_of_a_complex_value():
    def f(x):
        return np.sum(x) * 1j

    return 1.0 + fwdad.grad(f)(X)


@case(
    fwdad.UnsupportedTypeError, "fwdad.jacobian(f, Opaque())", r"(?s)Opaque.*register_tangent_type"
)
def argument_of_an_unknown_type():
    class Opaque:
        pass

    def f(x):
        return 1.0

    return [fwdad.jacobian(f, Opaque())]


@case(fwdad.UnsupportedTypeError, "fwdad.jacobian(np.sum, OBJECTS)", "object")
def argument_of_objects():
    return [fwdad.jacobian(np.sum, OBJECTS)]


@case(fwdad.NoOutputError, "fwdad.jacobian(f, X)", r"(?s)None.*(return|mutated)")
def nothing_returned():
    def f(x):
        x * 2.0

    return [fwdad.jacobian(f, X)]


@case(TypeError, "", "2.0")
def derivative_by_an_int():
    return fwdad.derivative(np.sin, 2)


@case(TypeError, "", "jacfwd")
def jacobian_without_a_point():
    return fwdad.jacobian(np.sin)


def raised(function, error):
    """The error that a case raises."""
    with pytest.raises(error) as caught:
        function()
    return caught.value


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_class_and_message(function, error, place, says):
    caught = raised(function, error)
    assert type(caught) is error or not place
    message = caught.msg if isinstance(caught, fwdad.FwdadError) else str(caught)
    assert re.search(says, message), message


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_file_line_and_column(function, error, place, says):
    caught = raised(function, error)
    if not place:
        pytest.skip("a built-in exception, raised where its traceback points")
    assert isinstance(caught, fwdad.FwdadError)
    assert (caught.filename, caught.lineno, caught.offset) == find(function, place)
    assert caught.text.strip() in "".join(inspect.getsourcelines(function)[0])
    if caught.end_offset is not None and caught.end_lineno == caught.lineno:
        assert caught.end_offset > caught.offset


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_python_prints_the_line_and_the_caret(function, error, place, says):
    if not place:
        pytest.skip("a built-in exception, raised where its traceback points")
    printed = "".join(traceback.format_exception_only(raised(function, error)))
    _, line, column = find(function, place)
    assert f'File "{__file__}", line {line}' in printed
    source = inspect.getsourcelines(function)[0][line - inspect.getsourcelines(function)[1]]
    assert source.strip() in printed
    (carets,) = [text for text in printed.splitlines() if text.strip() and not text.strip("^ ")]
    indent = len(source) - len(source.lstrip())
    assert carets.index("^") - 4 == column - 1 - indent


def test_every_class_has_a_case():
    """A class that no case raises is a class that nobody has seen raised."""
    defined = {
        value
        for value in vars(fwdad.errors).values()
        if isinstance(value, type) and issubclass(value, fwdad.FwdadError)
    }
    # nothing is transposed before reverse mode
    unraised = {fwdad.FwdadError, fwdad.errors.MissingTransposeError}
    assert defined - unraised == {c.values[1] for c in CASES if c.values[2]}
    for error in defined:
        assert getattr(fwdad, error.__name__) is error
        assert issubclass(error, SyntaxError)
        assert error.__doc__


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_world_after_an_error(function, error, place, says):
    before = X.tobytes(), LOW.tobytes(), RIGHT.tobytes()
    raised(function, error)
    assert (X.tobytes(), LOW.tobytes(), RIGHT.tobytes()) == before
    assert fwdad.derivative(np.sin, 0.0) == 1.0  # and the next call works


def test_located_error_pickles():
    caught = raised(int_of_a_dual, fwdad.DualLeakError)
    again = pickle.loads(pickle.dumps(caught))
    assert type(again) is fwdad.DualLeakError
    assert (again.msg, again.filename, again.lineno, again.offset) == (
        caught.msg,
        caught.filename,
        caught.lineno,
        caught.offset,
    )


def test_location_in_a_file_with_wide_characters(tmp_path):
    """Columns count characters, not bytes."""
    path = tmp_path / "wide.py"
    source = "def f(x):\n    größe, наклон = x * 2.0, '→→'; return größe + int(größe)\n"
    path.write_text(source, encoding="utf-8")
    namespace = {}
    exec(compile(source, str(path), "exec"), namespace)
    with pytest.raises(fwdad.DualLeakError) as caught:
        fwdad.derivative(namespace["f"], 2.0)
    assert caught.value.filename == str(path)
    assert caught.value.lineno == 2
    assert caught.value.offset == source.splitlines()[1].index("int(") + 1


def test_location_of_an_expression_over_several_lines():
    def f(x):
        y = (
            x
            + int(
                x[0]
            )
        )  # fmt: skip
        return y * 2.0

    with pytest.raises(fwdad.DualLeakError) as caught:
        fwdad.jacobian(f, X)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(f, "int(")


def test_location_in_a_callee_of_library_code():
    """The innermost frame of the user's: the callback, not SciPy's loop or the outer call."""
    from scipy.optimize import newton  # noqa: PLC0415

    def residual(z, x):
        return z * z - x * (1 + 0 * int(x))

    def f(x):
        return newton(residual, 1.5, args=(x,))

    with pytest.raises(fwdad.DualLeakError) as caught:
        fwdad.derivative(f, 2.0)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(
        residual, "int(x)"
    )


def test_location_in_library_code_called_by_the_user():
    """Where library code leaks, the user's call of it is named."""

    def f(x):
        return 1.0 + np.savetxt(sys.stderr, x)

    with pytest.raises(fwdad.FwdadError) as caught:
        fwdad.jacobian(f, X)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(
        f, "np.savetxt("
    )


def test_location_in_a_nested_derivative():
    def inner(y):
        return y * 2.0 if int(y) else y

    def f(x):
        return fwdad.derivative(inner, x) * x

    with pytest.raises(fwdad.DualLeakError) as caught:
        fwdad.derivative(f, 2.0)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(
        inner, "int(y)"
    )


def test_located_errors_in_threads():
    def leak(x):
        return 1.0 + int(x)

    def work(k):
        with pytest.raises(fwdad.DualLeakError) as caught:
            fwdad.derivative(leak, float(k))
        return caught.value.filename, caught.value.lineno, caught.value.offset

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(16))) == {find(leak, "int(x)")}


def test_error_without_a_source(tmp_path):
    """Code from standard input: no line to show, still file and line."""
    program = """
        import fwdad
        def f(x):
            y = x * 2.0
            return y + int(y)
        fwdad.derivative(f, 1.0)
    """
    done = subprocess.run(
        [sys.executable, "-"],
        input=textwrap.dedent(program),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(fwdad.__file__).parent.parent)},
    )
    assert done.returncode == 1
    assert 'File "<stdin>", line 5' in done.stderr
    assert "DualLeakError" in done.stderr


def test_traceback_points_at_the_users_lines():
    """An error of the user's own passes through frames that read as their source."""

    def helper(y):
        raise ValueError(str(y.shape))

    def f(x):
        return helper(x * 2.0)

    with pytest.raises(ValueError, match=r"\(3,\)") as caught:
        fwdad.jacobian(f, X)
    frames = traceback.extract_tb(caught.value.__traceback__)
    own = [(frame.lineno, frame.name, frame.line) for frame in frames if frame.filename == __file__]
    (_, f_line, _), (_, helper_line, _) = find(f, "return helper"), find(helper, "raise ValueError")
    assert own[-2:] == [
        (f_line, "f", "return helper(x * 2.0)"),
        (helper_line, "helper", "raise ValueError(str(y.shape))"),
    ]


@pytest.mark.parametrize("method", ["rmatvec", "rmatmat"])
def test_transposed_products_wait_for_reverse_mode(method):
    _, operator = fwdad.linearize(np.sin, X)
    argument = np.ones(3) if method == "rmatvec" else np.ones((3, 2))
    with pytest.raises((NotImplementedError, fwdad.errors.MissingTransposeError), match="reverse"):
        getattr(operator, method)(argument)
