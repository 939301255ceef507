"""What other systems lack is taken away, one thing at a time, and derivatives stay what they are.

`docs/reference/portability.md` has the table. Most of it is decided when fwdad is imported, so each
case is a process of its own: it imports NumPy, SciPy and Numba as they are here, takes something
away, and then imports fwdad.
"""

import importlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import fwdad

ROOT = Path(__file__).parent.parent
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")

LIBRARIES = """
import json, logging, os, platform, sys
import numpy as np, scipy.linalg, scipy.special, scipy.sparse.linalg
try:
    import numba.np.ufunc.parallel, numba.extending, llvmlite.binding
except ImportError:
    pass
"""
PROGRAM = """
import fwdad

def waves(x):  # updates in place, exp and sin of arrays
    y = x.copy()
    for _ in range(3):
        y[1:-1] += 0.1 * np.exp(np.sin(y[2:])) * y[:-2]
    return np.sum(y * y)

def solved(x):  # LAPACK
    n = len(x)
    a = np.reshape(np.cos(np.arange(n * n)), (n, n)) + n * np.eye(n) + x[:, None] * x[None, :]
    return np.sum(np.linalg.solve(a, x))

def power(x, n):  # recursion
    return x[0] if n == 1 else x[n % 5] * power(x, n - 1)

def long(x):  # arrays of megabytes
    v = np.linspace(0.0, 1.0, 600_000) * x[0]
    return np.sum(np.tanh(v) * np.exp(-v)) / v.size

def powers(x):
    return power(x, 60)

def by_complex_steps(f, x):
    return [np.imag(f(x + 1e-30j * e)) / 1e-30 for e in np.eye(len(x))]

x = np.array([1.1, 0.9, 1.05, 0.95, 1.2])
told = []

class Listener(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())

logging.getLogger("fwdad.cache").addHandler(Listener())
logging.getLogger("fwdad.cache").setLevel(logging.DEBUG)
for f in (waves, solved, powers, long):
    wanted = by_complex_steps(f, x)
    for found in (
        fwdad.jacobian(f, x),
        fwdad.grad(f)(x),
        fwdad.jit(fwdad.grad(f))(x),
        fwdad.jit(lambda x, f=f: fwdad.jacobian(f, x, mode="forward"))(x),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
print(json.dumps(told))
"""


def run(taken_away, tmp_path, after="", **environment):
    """What the program's listener was told, in a process without something."""
    path = tmp_path / "program.py"
    path.write_text(f"{LIBRARIES}\n{taken_away}\n{PROGRAM}\n{after}\n", encoding="utf-8")
    places = {name: str(tmp_path / name) for name in ("cache", "config")}
    done = subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", str(path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(fwdad.__file__).parent.parent),
            "FWDAD_CACHE_DIR": places["cache"],
            "FWDAD_STRICT": "1",
            "XDG_CONFIG_HOME": places["config"],
            "LOCALAPPDATA": places["config"],
            "HOME": str(tmp_path),
            **environment,
        },
    )
    assert done.returncode == 0, done.stderr
    assert "EncodingWarning" not in done.stderr or "fwdad" not in done.stderr, done.stderr
    return json.loads(done.stdout)


SYSTEMS = {
    "linux": [],
    "darwin": ["O_PATH"],
    "freebsd14": ["O_PATH"],
    "win32": [
        "O_PATH", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "geteuid", "getuid", "pread",
        "confstr", "fork", "register_at_fork", "fchmod", "getpgid", "mkfifo",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(system, marks=() if system == "win32" else pytest.mark.slow)
        for system in SYSTEMS
    ],
)
def test_other_systems(system, tmp_path):
    """The system's name, what its ``os`` has not, and the cache of compiled code there."""
    away = "".join(f"vars(os).pop({name!r}, None)\n" for name in SYSTEMS[system])
    if system == "win32":
        away += "os.supports_dir_fd = set()\n"
    away += f"sys.platform = {system!r}\n"
    first = run(away, tmp_path)
    if find_spec("numba") is not None:
        assert sum(text.startswith("saved") for text in first) >= 4, first
        second = run(away, tmp_path)
        assert sum(text.startswith("loaded") for text in second) >= 4, second
        assert not any(text.startswith("saved") for text in second)


@pytest.mark.slow
@needs_numba
@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="names x86 processors")
@pytest.mark.parametrize(
    "features", ["", pytest.param("+sse4.2,+avx,+avx2", marks=pytest.mark.slow)]
)
def test_other_processors(features, tmp_path):
    """Instructions that this processor has are not used: none beyond SSE2, and no FMA."""
    after = "from fwdad.codegen.runtime import libmvec\nassert libmvec.register_bits() < 512"
    run("", tmp_path, after, NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES=features)


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("machine", ["aarch64", "arm64", "s390x"])
def test_other_machines(machine, tmp_path):
    away = f"platform.machine = lambda: {machine!r}"
    after = "from fwdad.codegen.runtime import libmvec\nassert libmvec.register_bits() == 0"
    run(away, tmp_path, after)


@needs_numba
@pytest.mark.skipif(sys.platform != "linux", reason="there is no vector library")
def test_without_the_vector_library(tmp_path):
    away = "import fwdad.codegen.runtime.libmvec as libmvec\nlibmvec._LIBRARY = 'libmvec.so.absent'"
    run(away, tmp_path, "assert libmvec.register_bits() == 0")


@pytest.mark.slow
def test_without_numpy_s_lapack(tmp_path):
    """Its names are hidden, as in NumPy's wheels for Windows."""
    away = (
        "import fwdad.rules.core.numpy_lapack as named\n"
        "named._ILP64_NAMES = named._LP64_NAMES = ()\n"
    )
    after = (
        "from fwdad.rules.core.lapack import lapack\n"
        "assert type(lapack()).__name__ == 'SciPyLapack'\n"
    )
    run(away, tmp_path, after)


@pytest.mark.slow
@needs_numba
def test_a_cache_without_owners_and_modes(tmp_path):
    """Neither signed files are refused, nor files of others loaded."""
    away = "vars(os).pop('geteuid')\nos.supports_dir_fd = set()"
    run(away, tmp_path)
    entries = sorted((tmp_path / "cache").glob("*.fwdad"))
    assert len(entries) >= 4
    for path in entries:
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    told = run(away, tmp_path)
    assert not any(text.startswith("loaded") for text in told)
    assert sum("was not written by this user" in text for text in told) == len(entries)


@needs_numba
@pytest.mark.slow
def test_a_cache_that_cannot_be_replaced(tmp_path):
    """Windows refuses to replace a file that another process has open."""
    away = (
        "def refuse(*_arguments, **_options):\n"
        "    raise PermissionError(13, 'Access is denied')\n"
        "os.replace = refuse\n"
    )
    told = run(away, tmp_path)
    assert any("compiled code is not cached in" in text for text in told)
    assert not list((tmp_path / "cache").iterdir())  # no drafts either


# -- files


def test_names_of_files():
    """None that Windows reserves, none that differ by case alone, none that are long."""
    reserved = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
    seen = {}
    for folder in ("fwdad", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if "__pycache__" in path.parts:
                continue
            name = path.relative_to(ROOT).as_posix()
            assert seen.setdefault(name.lower(), name) == name
            assert not any(reserved.fullmatch(part) for part in name.split("/")), name
            assert not re.search(r'[<>:"|?*\\]|[ .]$', name), name
            assert len(name) < 120
            if path.suffix in {".py", ".md"}:
                assert b"\r" not in path.read_bytes(), name


MODULE = """\
{cookie}import numpy as np

WORD = "déjà"

def f(x):
    y = x.copy()
    for _ in range(2):
        y[1:] += np.sin(y[:-1]) * len("déjà")
    return np.sum(y * y)

"""


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("encoding", "cookie"),
    [("utf-8", ""), ("utf-8-sig", ""), ("cp1252", "# -*- coding: cp1252 -*-\n")],
)
def test_sources_as_editors_on_windows_save_them(encoding, cookie, end, tmp_path, monkeypatch):
    name = f"saved_{encoding.replace('-', '_')}_{len(end)}"
    text = MODULE.format(cookie=cookie).replace("\n", end)
    (tmp_path / f"{name}.py").write_bytes(text.encode(encoding))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    x = np.array([0.3, 0.5, 0.7])
    wanted = [np.imag(module.f(x + 1e-30j * e)) / 1e-30 for e in np.eye(3)]
    for found in (
        fwdad.jacobian(module.f, x),
        fwdad.grad(module.f)(x),
        fwdad.jit(fwdad.grad(module.f))(x),
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_reports_are_ascii(capsys):
    """They can be printed where the output's encoding is an old one."""

    def f(x):
        for _ in range(3):
            x = np.sin(x) * x
        return np.sum(x)

    x = np.array([1.0, 2.0])
    print(fwdad.show(fwdad.grad(f), x, backend="tape"))
    print(fwdad.explain(fwdad.grad(f), x))
    print(fwdad.memory_report(f, x))
    print(fwdad.jvp(f, x, x), fwdad.Chunk(np.eye(2)))
    assert capsys.readouterr().out.isascii()
