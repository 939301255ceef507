"""Every error class says what came, where (file, line and column), and what to do."""

import inspect
import json
import linecache
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
import scipy.linalg as sl

import fwdad
import fwdad.errors
from tests.cases.error_cases import CASES, LOW, RIGHT, X, int_of_a_dual


def find(function, place):
    """File, line and column (from 1) of the one place in a function's source that reads so."""
    lines, first = inspect.getsourcelines(function)
    head = next(k for k, text in enumerate(lines) if text.lstrip().startswith("def "))
    hits = [(k, text.index(place)) for k, text in enumerate(lines) if place in text and k > head]
    assert len(hits) == 1, f"{place!r} stands {len(hits)} times in {function.__name__}"
    ((k, column),) = hits
    return inspect.getsourcefile(function), first + k, column + 1


def raised(function, error):
    """The error that a case raises."""
    with pytest.raises(error) as caught:
        function()
    return caught.value


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_class_and_message(function, error, place, says):
    caught = raised(function, error)
    assert type(caught) is error or not place
    message = caught.msg if isinstance(caught, fwdad.errors.FwdadError) else str(caught)
    assert re.search(says, message), message


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_file_line_and_column(function, error, place, says):
    caught = raised(function, error)
    if not place:
        pytest.skip("a built-in exception, raised where its traceback points")
    assert isinstance(caught, fwdad.errors.FwdadError)
    assert (caught.filename, caught.lineno, caught.offset) == find(function, place)
    assert caught.text.strip() in "".join(inspect.getsourcelines(function)[0])
    if caught.end_offset is not None and caught.end_lineno == caught.lineno:
        assert caught.end_offset > caught.offset


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_python_prints_the_line_and_the_caret(function, error, place, says):
    if not place:
        pytest.skip("a built-in exception, raised where its traceback points")
    printed = "".join(traceback.format_exception_only(raised(function, error)))
    file, line, column = find(function, place)
    assert f'File "{file}", line {line}' in printed
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
        if isinstance(value, type) and issubclass(value, fwdad.errors.FwdadError)
    }
    # nothing is transposed before reverse mode
    # and what is a mistake of ours has tests of its own
    unraised = {
        fwdad.errors.FwdadError,
        fwdad.errors.MissingTransposeError,
        fwdad.errors.InternalError,
        fwdad.errors.BoundsError,
    }
    assert defined - unraised == {c.values[1] for c in CASES if c.values[2]}
    for error in defined:
        assert error.__name__ in fwdad.errors.__all__
        assert not issubclass(error, SyntaxError)  # which IPython shows as such
        assert error.__doc__


@pytest.mark.parametrize(("function", "error", "place", "says"), CASES)
def test_world_after_an_error(function, error, place, says):
    before = X.tobytes(), LOW.tobytes(), RIGHT.tobytes()
    raised(function, error)
    assert (X.tobytes(), LOW.tobytes(), RIGHT.tobytes()) == before
    assert fwdad.derivative(np.sin, 0.0) == 1.0  # and the next call works


def test_located_error_pickles():
    caught = raised(int_of_a_dual, fwdad.errors.DualLeakError)
    again = pickle.loads(pickle.dumps(caught))
    assert type(again) is fwdad.errors.DualLeakError
    assert (again.msg, again.filename, again.lineno, again.offset) == (
        caught.msg,
        caught.filename,
        caught.lineno,
        caught.offset,
    )


UNREAD = {}
exec("def rounded(x):\n    return float(x)", UNREAD)


def calls_an_unread_text(x):
    return UNREAD["rounded"](x) * 2.0


def test_location_is_no_line_of_a_text_that_is_kept_nowhere():
    """But that of the call; where there is no other line, in ``python -c``, it is one."""
    linecache.cache.pop("<string>", None)  # another test's, where Python keeps such texts
    caught = raised(lambda: fwdad.jvp(calls_an_unread_text, 2.5, 1.0), fwdad.errors.DualLeakError)
    place = find(calls_an_unread_text, 'UNREAD["rounded"](x)')
    assert (caught.filename, caught.lineno, caught.offset) == place
    program = "import fwdad; fwdad.jvp(lambda x: int(x), 2.5, 1.0)"
    ran = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert 'File "<string>", line 1' in ran.stderr


def test_location_in_a_file_with_wide_characters(tmp_path):
    """Columns count characters, not bytes."""
    path = tmp_path / "wide.py"
    source = "def f(x):\n    größe, наклон = x * 2.0, '→→'; return größe + int(größe)\n"
    path.write_text(source, encoding="utf-8")
    namespace = {}
    exec(compile(source, str(path), "exec"), namespace)
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
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

    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.jacobian(f, X)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(f, "int(")


def test_location_in_a_callee_of_library_code():
    """The innermost frame of the user's: the callback, not SciPy's loop or the outer call."""
    from scipy.optimize import newton  # noqa: PLC0415

    def residual(z, x):
        return z * z - x * (1 + 0 * int(x))

    def f(x):
        return newton(residual, 1.5, args=(x,))

    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.derivative(f, 2.0)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(
        residual, "int(x)"
    )


def test_location_in_library_code_called_by_the_user():
    """Where library code leaks, the user's call of it is named."""

    def f(x):
        return 1.0 + len(json.JSONEncoder().encode([x[0]]))

    with pytest.raises(fwdad.errors.FwdadError) as caught:
        fwdad.jacobian(f, X)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(
        f, "json.JSONEncoder().encode("
    )


def test_location_in_a_nested_derivative():
    def inner(y):
        return y * 2.0 if int(y) else y

    def f(x):
        return fwdad.derivative(inner, x) * x

    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.derivative(f, 2.0)
    assert (caught.value.filename, caught.value.lineno, caught.value.offset) == find(
        inner, "int(y)"
    )


def test_located_errors_in_threads():
    def leak(x):
        return 1.0 + int(x)

    def work(k):
        with pytest.raises(fwdad.errors.DualLeakError) as caught:
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


def plainly(f):
    return f


@plainly
@plainly
def decorated(x):
    y = x * 2.0
    return y + int(x[0])


def test_location_in_a_decorated_function():
    """Lines of code count from the first decorator's."""
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.jacobian(decorated, X)
    place = caught.value.filename, caught.value.lineno, caught.value.offset
    assert place == find(decorated, "int(")
    assert "return y + int" in caught.value.text


def within_a_library(x):
    a = np.outer(x, x) - 9 * np.eye(len(x))
    b = sl.schur(a)[0]
    return np.sum(b * b)


@pytest.mark.parametrize("of", [fwdad.jacfwd, fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f))])
def test_rule_to_write_is_that_of_the_function_the_user_calls(of):
    with pytest.raises(
        fwdad.errors.MissingRuleError, match=r"@fwdad.frule\(scipy.linalg.schur\)"
    ) as caught:
        of(within_a_library)(X)
    error = caught.value
    where, line, _ = find(within_a_library, "sl.schur")
    assert (error.filename, error.lineno) == (where, line)
