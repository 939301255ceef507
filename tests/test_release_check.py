"""Each thing that stands between a checkout and a release is planted, and found."""

import importlib.util
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="needs the extra `release`")
pytest.importorskip("readme_renderer", reason="needs the extra `release`")

from tests import release_check

ROOT = Path(__file__).parent.parent
ADDRESS = "https://forge.dev/group/fwdad"
PYPROJECT = """\
[project]
name = "fwdad"
version = "1.2.3"
classifiers = [
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Python :: 3",
    "Programming Language :: Python :: 3.12",
    "Programming Language :: Python :: 3.13",
]
[tool.hatch.metadata.hooks.custom]
repository = "https://forge.dev/group/fwdad"
"""
RESULTS = """\
# Results

## 2026-01-02, commit {commit}

Linux x86_64, 2 cores

| environment | Python | NumPy | SciPy | Numba | JAX | result |
|---|---|---|---|---|---|---|
| oldest | 3.12.1 | 2.0.2 | 1.13.1 | - | - | 10 passed, 2 skipped in 3.00s |
| newest | 3.13.0 | 2.5.5 | 1.18.1 | - | - | 12 passed in 3.00s |
| newest | 3.14 | | | | | not run: Python 3.14 not found here |
"""


def git(root, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@forge.dev", *arguments]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def checkout(tmp_path):
    """A checkout that is ready to be released."""
    root = tmp_path / "checkout"
    write(root, {
        "pyproject.toml": PYPROJECT,
        "CHANGELOG.md": "# Changelog\n\n## 1.2.3 (2026-01-03)\n\n## 1.2.2 (2025-01-03)\n",
        "changelog.d/README.md": "How to.\n",
        "fwdad/__init__.py": "",
        "SECURITY.md": "",
    })  # fmt: skip
    git(root, "init", "--quiet")
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "code")
    tested = git(root, "rev-parse", "--short", "HEAD")
    write(root, {"tests/full_results.md": RESULTS.format(commit=tested)})
    commit(root)
    return root


def commit(root):
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "more")


def test_a_checkout_that_is_ready(checkout):
    assert release_check.complaints(checkout) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("pyproject.toml", ADDRESS, "https://repository.invalid/fwdad", ["is a placeholder"]),
        ("pyproject.toml", ADDRESS, "https://example.com/fwdad", ["is a placeholder"]),
        ("pyproject.toml", ADDRESS, "forge.dev/fwdad", ["is not the https address"]),
        ("pyproject.toml", ADDRESS, "https://forge.dev/", ["is not the https address"]),
        ("pyproject.toml", "1.2.3", "1.2.3.dev0", ["has no .dev", "towncrier build"]),
        ("pyproject.toml", "1.2.3", "1.2.3+mine", ["has no .dev and no +", "begins with 1.2.3,"]),
        ("pyproject.toml", "1.2.3", "1.3.0", ["CHANGELOG.md begins with 1.2.3, not with 1.3.0"]),
        ("CHANGELOG.md", " (2026-01-03)", " (not yet released)", ["begins with 1.2.2"]),
        ("changelog.d/+a.added.md", "", "New.", ["not in CHANGELOG.md: +a.added.md"]),
        ("pyproject.toml", "3.13", "3.11", ["Python 3.11 is", "Python 3.13 was tested"]),
        ("pyproject.toml", "POSIX :: Linux", "OS Independent", ["OS Independent is among"]),
        ("tests/full_results.md", "12 passed", "1 failed, 11 passed", ["Python 3.13 is among the"]),
        ("tests/full_results.md", "10 passed", "0 passed, 3 errors", ["Python 3.12 is among the"]),
        ("tests/full_results.md", "| newest | 3.13.0 ", "| newest | 3.14.0 ",
         ["has no run of this code", "Python 3.14 was tested"]),
        ("fwdad/__init__.py", "", "a = 1", ["Python 3.12 is", "Python 3.13 is", "POSIX :: Linux"]),
        ("SECURITY.md", "", "A page may change after the tests.", []),
    ],
)  # fmt: skip
def test_what_is_missing_is_told(checkout, file, old, new, words):
    path = checkout / file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert old in text
    write(checkout, {file: text.replace(old, new, 1) if old else new})
    commit(checkout)
    found = release_check.complaints(checkout)
    assert len(found) == len(words), found
    for sentence, part in zip(found, words, strict=True):
        assert part in sentence


def test_changes_that_are_not_committed(checkout):
    write(checkout, {"left.py": ""})
    (found,) = release_check.complaints(checkout)
    assert found.startswith("there are changes that are not committed: ?? left.py")


def test_no_checkout(checkout):
    (checkout / ".git").rename(checkout / "git")
    found = release_check.complaints(checkout)
    assert any("is not a git checkout" in text for text in found)


def test_results_of_changed_files_do_not_count(checkout):
    path = checkout / "tests/full_results.md"
    text = path.read_text(encoding="utf-8").replace(
        "\n\nLinux", " with uncommitted changes\n\nLinux"
    )
    write(checkout, {"tests/full_results.md": text})
    commit(checkout)
    assert "no run of this code" in release_check.complaints(checkout)[0]


def test_a_tag_elsewhere(checkout):
    git(checkout, "tag", "v1.2.3", "HEAD~1")
    (found,) = release_check.complaints(checkout)
    assert "the tag v1.2.3 is at" in found
    git(checkout, "tag", "--force", "v1.2.3")
    assert release_check.complaints(checkout) == []


# -- what was built

IN_WHEEL = ["fwdad/__init__.py", "fwdad/py.typed", "fwdad-1.2.3.dist-info/RECORD"]
IN_SDIST = [
    "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md", "fwdad/a.py",
    "tests/a.py", "benchmarks/a.py", "notebooks/a.py", "docs/a.md",
]  # fmt: skip
PAGE = f"[a]({ADDRESS}/blob/v1.2.3/SECURITY.md) [b](https://numpy.org) [c](#here)\n"


def build(folder, page=PAGE, wheel=IN_WHEEL, sdist=IN_SDIST, url=f"Source, {ADDRESS}"):
    folder.mkdir()
    metadata = f"Metadata-Version: 2.4\nName: fwdad\nProject-URL: {url}\n\n{page}"
    with zipfile.ZipFile(folder / "fwdad-1.2.3-py3-none-any.whl", "w") as archive:
        for name in wheel:
            archive.writestr(name, "")
        archive.writestr("fwdad-1.2.3.dist-info/METADATA", metadata)
    with tarfile.open(folder / "fwdad-1.2.3.tar.gz", "w:gz") as archive:
        for name in sdist:
            archive.addfile(tarfile.TarInfo(f"fwdad-1.2.3/{name}"), io.BytesIO())
    return folder


def test_distributions_that_are_right(checkout, tmp_path):
    assert release_check.complaints(checkout, build(tmp_path / "dist")) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"page": "[a](SECURITY.md)"}, "leads nowhere: SECURITY.md"),
        ({"page": "[a]: docs/a.md\n\nSee [a]."}, "leads nowhere: docs/a.md"),
        ({"page": '<img src="docs/a.svg">'}, "leads nowhere: docs/a.svg"),
        ({"page": "[a](http://numpy.org)"}, "leads nowhere: http://numpy.org"),
        ({"page": f"[a]({ADDRESS}/blob/v1.2.3/GONE.md)"}, "a file that there is not"),
        (
            {"url": "Source, https://repository.invalid/fwdad"},
            "a URL of the wheel is not the repository's",
        ),
        ({"wheel": [*IN_WHEEL, "tests/a.py"]}, "the wheel installs tests beside fwdad"),
        ({"wheel": [*IN_WHEEL, "fwdad/__pycache__/a.pyc"]}, "the wheel contains fwdad/__pycache__"),
        ({"wheel": [n for n in IN_WHEEL if "typed" not in n]}, "the wheel has no fwdad/py.typed"),
        ({"sdist": [*IN_SDIST, "notebooks/.ipynb_checkpoints/a.py"]}, "the sdist contains"),
        ({"sdist": [n for n in IN_SDIST if "docs" not in n]}, "the sdist has no docs/"),
        ({"sdist": [n for n in IN_SDIST if "LICENSE" not in n]}, "the sdist has no LICENSE"),
    ],
)
def test_distributions_that_are_not(checkout, tmp_path, given, words):
    (found,) = release_check.complaints(checkout, build(tmp_path / "dist", **given))
    assert words in found


def test_distributions_of_another_version(checkout, tmp_path):
    folder = build(tmp_path / "dist")
    (folder / "fwdad-1.2.3.tar.gz").rename(folder / "fwdad-1.2.2.tar.gz")
    (found,) = release_check.complaints(checkout, folder)
    assert "it holds fwdad-1.2.2.tar.gz" in found


# -- the hook that makes the links


def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("[a](b.md#c)", "[a](A/blob/v1/b.md#c)"),
        ("[`a`](./b/c.py)", "[`a`](A/blob/v1/b/c.py)"),
        ("![a](docs/a.png)", "![a](A/raw/v1/docs/a.png)"),
        ("[![a](docs/a.SVG)](b.md)", "[![a](A/raw/v1/docs/a.SVG)](A/blob/v1/b.md)"),
        ('[a](b.md "title")', '[a](A/blob/v1/b.md "title")'),
        ("[a](<b.md>)", "[a](<A/blob/v1/b.md>)"),
        ("text\n[a]: b.md\n", "text\n[a]: A/blob/v1/b.md\n"),
        ('<img src="a.png" width="3">', '<img src="A/raw/v1/a.png" width="3">'),
        ("<a href='b'>", "<a href='A/blob/v1/b'>"),
        ("[a](#b) [c](https://d) [e](mailto:f@g) [h](//i)",) * 2,
        ("`[a](b)` ``x ` [a](b)``",) * 2,
        ("```python\nf = x[0](y)\n```\n[a](b)", "```python\nf = x[0](y)\n```\n[a](A/blob/v1/b)"),
        ("~~~\n[a](b)\n~~~\n",) * 2,
    ],
)  # fmt: skip
def test_links_of_a_page(page, wanted):
    assert hook().absolute(page, "A", "1") == wanted


def test_links_of_a_version_in_development():
    assert hook().absolute("[a](b)", "A", "1.0.dev0") == "[a](A/blob/main/b)"


def test_the_readme_s_links_work_on_a_package_page():
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    made = hook().absolute(page, ADDRESS, "1")
    assert release_check.links_of(made)
    assert list(release_check.about_page(made, ADDRESS, ROOT)) == []
    assert any("leads nowhere" in text for text in release_check.about_page(page, ADDRESS, ROOT))
