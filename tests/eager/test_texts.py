"""Where a source is found that stands in no file: archives, the command line, standard input."""

import importlib
import linecache
import os
import pathlib
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.eager.lifting.source import find_source
from fwdad.eager.lifting.texts import command_of

ROOT = pathlib.Path(fwdad.__file__).parents[1]
X = np.array([0.5, 0.7])

# `math` and `float` refuse duals: only with its source has f a derivative
PROGRAM = """
import math
def helper(v):
    return math.exp(v[0])

def f(x):
    return helper(x) * float(x[1]) + (lambda t: math.cos(t))(x[0])
"""
CHECK = """
import fwdad, numpy as np
x = np.array([0.5, 0.7])
want = [math.exp(0.5) * 0.7 - math.sin(0.5), math.exp(0.5)]
np.testing.assert_allclose(fwdad.jvp(f, x, np.array([1.0, 2.0]))[1], want[0] + 2 * want[1])
np.testing.assert_allclose(fwdad.jacobian(f, x, mode="forward"), want)
np.testing.assert_allclose(fwdad.grad(f)(x), want)
np.testing.assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(x), want)
np.testing.assert_allclose(
    fwdad.hessian(f, x),
    [[math.exp(0.5) * 0.7 - math.cos(0.5), math.exp(0.5)], [math.exp(0.5), 0.0]],
)
print("right")
"""
WANT = np.array([np.exp(0.5) * 0.7 - np.sin(0.5), np.exp(0.5)])


def run(*command, **options):
    """What a fresh Python prints, or the error that it ends with."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True, text=True, check=False, env=environment, timeout=300, **options,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else done.stderr


def check(f):
    assert find_source(f) is not None
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode), WANT)
    for chunk in (1, 2, 3):
        assert_allclose(fwdad.jacobian(f, X, mode="forward", chunk=chunk), WANT)
    assert_allclose(fwdad.grad(f)(X), WANT)
    assert_allclose(fwdad.jit(fwdad.grad(f))(X), WANT)


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("options", [("-c",), ("-Bc",), ("-W", "ignore", "-X", "utf8", "-c")])
def test_program_on_the_command_line(options):
    assert run(*options, PROGRAM + CHECK, "an argument") == "right\n"


def test_program_that_is_glued_to_its_option():
    assert run("-c" + PROGRAM + CHECK) == "right\n"


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["-c", "x"], "x"), (["-cx"], "x"), (["-Bcx"], "x"), (["-B", "-IEc", "x", "-c"], "x"),
        (["-W", "c", "-c", "x"], "x"), (["-Wc", "-c", "x"], "x"), (["-Xc", "c.py"], None),
        (["--check-hash-based-pycs", "-c", "-c", "x"], "x"), (["-m", "c", "-c"], None),
        (["-mc", "-c", "x"], None), (["c.py", "-c", "x"], None), (["-", "-c", "x"], None),
        (["-B"], None), ([], None),
    ],
)  # fmt: skip
def test_options_of_the_interpreter(argv, command):
    assert command_of(argv) == command


@pytest.mark.every(2)
@pytest.mark.skipif(not hasattr(os, "pread"), reason="the file is read where it lies by pread")
@pytest.mark.parametrize("dash", [(), ("-",)])
def test_program_in_a_file_at_standard_input(tmp_path, dash):
    path = tmp_path / "program"
    path.write_text(PROGRAM + CHECK)
    with path.open() as file:
        assert run(*dash, stdin=file) == "right\n"


def test_program_from_a_pipe_is_reported():
    error = run("-", input=PROGRAM + CHECK)
    wanted = (
        "f has no source that can be read: the program was read from standard input, which "
        "cannot be read again. Save the program in a file, or run it with `python -c`"
    )
    assert wanted in error
    assert "would become a float" in error[error.index(wanted) :]


def test_program_at_the_prompt():
    """Python keeps what is typed since 3.13; before, the error says so."""
    # an empty line ends each `def`
    text = PROGRAM.replace("math\ndef", "math\n\ndef") + "\nimport fwdad, numpy as np\n"
    text += "try: print(fwdad.grad(f)(np.array([0.5, 0.7])))\nexcept Exception as e: print(e)\n\n"
    said = run("-i", "-q", input=text)
    if sys.version_info >= (3, 13):
        assert str(WANT)[:6] in said
    else:
        assert "f has no source that can be read: it was typed at Python's prompt" in said
        assert "Define it in a file, or in IPython or Jupyter" in said


def archive(folder, name, text, *, compiled=False):
    """A module inside a zip archive, imported."""
    path = folder / f"{name}.zip"
    with zipfile.ZipFile(path, "w") as file:
        if compiled:
            source = folder / f"{name}.py"
            source.write_text(text)
            import py_compile  # noqa: PLC0415

            file.write(py_compile.compile(source, folder / f"{name}.pyc"), f"{name}.pyc")
            source.unlink()
        else:
            file.writestr(f"{name}.py", text)
    sys.path.insert(0, str(path))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(path))


def test_module_inside_an_archive(tmp_path):
    module = archive(tmp_path, "in_an_archive", PROGRAM)
    check(module.f)
    assert linecache.getline(module.f.__code__.co_filename, 3) == "def helper(v):\n"


def test_form_feeds_inside_an_archive(tmp_path):
    """They end lines for ``str.splitlines``, and none for Python."""
    module = archive(tmp_path, "with_form_feeds", "# a page\f\n\f\n" + PROGRAM)
    check(module.f)


def test_leak_inside_an_archive_shows_its_line(tmp_path):
    module = archive(tmp_path, "leaks_in_an_archive", "def f(x):\n    return int(x[0]) * x[1]\n")
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.grad(module.f)(X)
    assert (caught.value.filename, caught.value.lineno) == (module.f.__code__.co_filename, 2)
    assert caught.value.text == "    return int(x[0]) * x[1]\n"
    assert str(caught.value).startswith("a value that carries a derivative")


def test_compiled_module_inside_an_archive(tmp_path):
    module = archive(tmp_path, "only_compiled", PROGRAM, compiled=True)
    with pytest.raises(fwdad.errors.DualLeakError) as caught:
        fwdad.grad(module.f)(X)
    wanted = f"only_compiled.f has no source that can be read: only its compiled file {tmp_path}"
    assert caught.value.msg.startswith(wanted)


def test_program_that_is_an_archive(tmp_path):
    path = tmp_path / "program.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("__main__.py", PROGRAM + CHECK)
    assert run(str(path)) == "right\n"


class Loader:
    """Has modules in a dict."""

    def __init__(self, text):
        self.text = text

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self.text, "<string>", "exec"), vars(module))

    def get_source(self, _name):
        return self.text


def test_module_of_a_loader_without_files():
    spec = importlib.machinery.ModuleSpec("of_a_loader", Loader(PROGRAM))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check(module.f)


def test_text_in_linecache():
    name = "<made by a test>"
    linecache.cache[name] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), name)
    namespace = {}
    exec(compile(PROGRAM, name, "exec"), namespace)
    check(namespace["f"])
    del linecache.cache[name]


def test_statements_that_are_compiled_one_by_one():
    """So does IPython with a cell: then Python does not see that ``math`` is a module."""
    import ast  # noqa: PLC0415

    name = "<a cell of a test>"
    linecache.cache[name] = (len(PROGRAM), None, PROGRAM.splitlines(keepends=True), name)
    namespace = {}
    for statement in ast.parse(PROGRAM).body:
        exec(compile(ast.Module([statement], []), name, "exec"), namespace)
    check(namespace["f"])
    del linecache.cache[name]


def test_cells_of_ipython(tmp_path):
    pytest.importorskip("IPython")
    path = tmp_path / "cell.ipy"
    path.write_text(PROGRAM + CHECK)
    start = (
        "import sys, IPython\n"
        "IPython.start_ipython(['--no-banner', '-c', open(sys.argv[1]).read()])"
    )
    place = {**os.environ, "IPYTHONDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", start, path], capture_output=True, text=True, check=True, env=place
    )
    assert "right" in done.stdout, done.stdout + done.stderr


def test_module_that_is_loaded_again(tmp_path, monkeypatch):
    """After its file was read once: the lines that are kept are those of the old one."""
    path = tmp_path / "loaded_again.py"
    path.write_text("def f(x):\n    return float(x[0]) * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("loaded_again")
    assert_allclose(fwdad.grad(module.f)(X), [2.0, 0.0])
    path.write_text("def f(x):\n    # longer\n    return float(x[1]) * 30\n")
    importlib.reload(module)
    assert_allclose(fwdad.grad(module.f)(X), [0.0, 30.0])


def test_no_text_is_believed(tmp_path, monkeypatch):
    """A loader that gives another text than it has run."""
    loader = Loader(PROGRAM)
    spec = importlib.machinery.ModuleSpec("of_a_liar", loader)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    loader.text = textwrap.dedent(PROGRAM).replace("math.exp", "math.log")
    assert find_source(module.helper) is None
    assert find_source(module.f) is not None
