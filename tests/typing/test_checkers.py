"""What mypy and pyright make of fwdad: of programs that are right, and of ones that are not."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT, WRONG = HERE / "right.py", HERE / "wrong.py"
FILES = [str(RIGHT), str(WRONG)]


def by_mypy(tmp_path):
    """The lines that mypy reports, of both files."""
    options = ["--strict", "--config-file", str(HERE / "mypy.ini"), "--output", "json"]
    command = ["mypy", *options, "--cache-dir", str(tmp_path), *FILES]
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [(Path(e["file"]).name, e["line"], e["message"]) for e in found]


def by_pyright(_tmp_path):
    """The lines that pyright reports, of both files."""
    options = ["--outputjson", "--pythonpath", sys.executable, "--project", str(HERE)]
    done = subprocess.run(
        [sys.executable, "-m", "pyright", *options], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [
        (Path(e["file"]).name, e["range"]["start"]["line"] + 1, e["message"])
        for e in found
        if e["severity"] == "error"
    ]


def refused():
    """The lines of wrong.py that a checker has to report."""
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    return {k for k, line in enumerate(lines, 1) if line.endswith("# refused")}


@pytest.mark.slow_cases("mypy")
@pytest.mark.parametrize(("name", "check"), [("mypy", by_mypy), ("pyright", by_pyright)])
def test_right_and_wrong(name, check, tmp_path):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: it is in the extra lint")
    found = check(tmp_path)
    assert [e for e in found if e[0] == RIGHT.name] == []
    assert len(refused()) > 20
    assert {line for file, line, _ in found if file == WRONG.name} == refused()
