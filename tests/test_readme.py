"""The README's programs run as they stand, and print what it says they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fwdad

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
PROGRAMS = [
    # the text block right after a program is its output
    (program, following[1] if following[0] == "text" else "")
    for (kind, program), following in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True)
    if kind == "python"
]


@pytest.mark.parametrize(("program", "output"), PROGRAMS, ids=range(len(PROGRAMS)))
def test_program(program, output, tmp_path):
    if "import numba" in program:
        pytest.importorskip("numba")
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(fwdad.__file__).parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == output


def test_programs_are_found():
    assert len(PROGRAMS) == 5
    assert all(output for _, output in PROGRAMS)


def test_two_commands():
    """What .ci/run runs: the main job, then the tests."""
    commands = [block for kind, block in BLOCKS if kind == "sh"]
    assert commands == [
        "pip install . && python -m fwdad demo\n",
        'pip install ".[test]" && pytest -n 2\n',
    ]


ROOT = README.parent
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "fwdad").rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
)


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), target
