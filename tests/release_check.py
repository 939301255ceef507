"""What stands between this checkout and a release: ``python -m tests.release_check [FOLDER]``.

It prints what has to be done first, a line each, and ends with status 1 if there is anything. With
the folder of the built sdist and wheel it looks into them, too. ``.ci/release`` builds them from a
clean clone and calls this. Needs the extra ``release``.
"""

import argparse
import email
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from packaging.version import Version
from readme_renderer import markdown

ROOT = Path(__file__).parent.parent
# kept for examples by RFC 2606 and RFC 6761: there is never anything there
RESERVED = (
    ".invalid", ".example", ".test", ".localhost", "example.com", "example.org", "example.net",
)  # fmt: skip
# what `uname -s` says, as the results of .ci/full have it, and the words of the classifiers
SYSTEMS = {"Linux": "POSIX :: Linux", "Darwin": "MacOS", "Windows": "Microsoft :: Windows"}
PYTHON = re.compile(r"Programming Language :: Python :: (3\.\d+)")
SYSTEM = "Operating System :: "
# what a distribution must not contain, by a part of its path
NOT_SHIPPED = {
    "__pycache__", ".git", ".github", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache",
    ".ipynb_checkpoints", ".venv", "build", "dist",
}  # fmt: skip
IN_SDIST = ("fwdad", "tests", "benchmarks", "notebooks", "docs")


def git(*arguments, root):
    """What git prints, or None if it fails."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def settings(root):
    """The contents of ``pyproject.toml``."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


def about_address(root):
    """The repository's address is real."""
    address = settings(root)["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme != "https" or "." not in host or parts.path.strip("/") == "":
        yield f"{address!r} in pyproject.toml is not the https address of a repository"
    elif host.endswith(RESERVED):
        yield (
            f"the repository's address in pyproject.toml, {address}, is a placeholder: write the "
            "real one at [tool.hatch.metadata.hooks.custom]"
        )


def about_version(root):
    """The version is one to release, and the changelog begins with it."""
    text = settings(root)["project"]["version"]
    version = Version(text)
    if version.is_devrelease or version.local:
        yield f"the version in pyproject.toml is {text}: a release has no .dev and no + in it"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    if newest is None or newest[1] != text:
        found = "no version" if newest is None else newest[1]
        yield (
            f"CHANGELOG.md begins with {found}, not with {text} and its date: "
            f"towncrier build --version {version.base_version}"
        )
    tagged = git("rev-list", "-n", "1", f"v{text}", root=root)
    if tagged is not None and tagged != git("rev-parse", "HEAD", root=root):
        yield f"the tag v{text} is at {tagged[:8]}, which is not the commit checked out"


def about_fragments(root):
    """All fragments are in the changelog."""
    left = sorted(p.name for p in (root / "changelog.d").glob("*.md") if p.name != "README.md")
    if left:
        yield f"changelog.d has fragments that are not in CHANGELOG.md: {', '.join(left)}"


def about_tree(root):
    """What is here is what is committed."""
    status = git("status", "--porcelain", root=root)
    if status is None:
        yield f"{root} is not a git checkout, so nobody can tell what is released"
    elif status:
        lines = status.splitlines()
        more = f" and {len(lines) - 5} more" if len(lines) > 5 else ""
        yield f"there are changes that are not committed: {', '.join(lines[:5])}{more}"


def tested(results):
    """(commit, systems, {Python: results}) for each section of the results of ``.ci/full``."""
    for section in re.split(r"^## ", results, flags=re.MULTILINE)[1:]:
        head = section.partition("\n")[0]
        commits = re.findall(r"\b[0-9a-f]{7,40}\b", head)
        if "uncommitted" in head:
            commits = []
        systems = [name for name in SYSTEMS if re.search(rf"^{name}\b", section, re.MULTILINE)]
        rows = {}
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found = re.match(r"3\.\d+", cells[1]) if len(cells) == 7 else None
            if found:
                rows.setdefault(found[0], []).append(cells[-1])
        yield commits, systems, rows


def is_same_code(commit, root):
    """Whether the package is what it was then; tests and pages may have changed."""
    return git("diff", "--quiet", commit, "HEAD", "--", "fwdad/*.py", root=root) is not None


def about_classifiers(root):
    """The classifiers name the Pythons and the systems on which this code passed ``.ci/full``."""
    declared = settings(root)["project"]["classifiers"]
    pythons = {found[1] for c in declared if (found := PYTHON.fullmatch(c))}
    systems = {
        c.removeprefix("Operating System :: ") for c in declared if c.startswith("Operating")
    }
    passed, failed, seen = set(), {}, set()
    results = (root / "tests" / "full_results.md").read_text(encoding="utf-8")
    for commits, on, rows in tested(results):
        # the same package: tests and pages may have changed since
        if not any(
            git("diff", "--quiet", c, "HEAD", "--", "fwdad", root=root) == "" for c in commits
        ):
            continue
        for python, summaries in rows.items():
            for summary in summaries:
                if "passed" in summary and "failed" not in summary and "error" not in summary:
                    passed.add(python)
                    seen.update(SYSTEMS[name] for name in on)
                elif not summary.startswith("not run"):
                    failed[python] = summary
    for python in sorted(pythons & failed.keys(), key=Version):
        yield f"Python {python} is among the classifiers, and tests fail there: {failed[python]}"
    for python in sorted(pythons - passed - failed.keys(), key=Version):
        yield (
            f"Python {python} is among the classifiers, and tests/full_results.md has no run of "
            "this code there: run .ci/full, commit its results, or remove the classifier"
        )
    for python in sorted(passed - pythons, key=Version):
        yield f"Python {python} was tested, and is not among the classifiers"
    for system in sorted(systems - seen):
        yield f"{system} is among the classifiers, and tests/full_results.md has no run there"


class Links(HTMLParser):
    """Gathers what a page links to."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, _tag, attrs):
        self.found += [text for name, text in attrs if name in {"href", "src"} and text]


def links_of(page):
    """The links of a Markdown page as a package index shows it, or None where it cannot."""
    shown = markdown.render(page)
    if shown is None:
        return None
    links = Links()
    links.feed(shown)
    return links.found


def about_page(page, address, root):
    """The page of the package works away from the repository."""
    links = links_of(page)
    if links is None:
        yield "the README cannot be rendered as a package index does it"
        return
    for link in links:
        parts = urlsplit(link)
        if link.startswith("#") or parts.scheme == "mailto":
            continue
        if parts.scheme != "https":
            yield f"a link on the package page leads nowhere: {link}"
        elif link.startswith(f"{address}/"):
            # address/blob/v1.2.3/path or address/raw/v1.2.3/path
            path = "/".join(parts.path.removeprefix(urlsplit(address).path).split("/")[3:])
            if not (root / path).exists():
                yield f"a link on the package page leads to a file that there is not: {link}"


def about_contents(names, kind):
    """A distribution has what it should, and nothing else."""
    for name in names:
        bad = NOT_SHIPPED.intersection(name.split("/")) or name.endswith(
            (".pyc", ".so", ".nbi", ".nbc")
        )
        if bad:
            yield f"the {kind} contains {name}"
    if kind == "wheel":
        wanted, tops = ("fwdad/py.typed", "fwdad/__init__.py"), {n.partition("/")[0] for n in names}
        for top in sorted(tops):
            if top != "fwdad" and not top.endswith(".dist-info"):
                yield f"the wheel installs {top} beside fwdad"
    else:
        wanted = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "CHANGELOG.md")
        for folder in IN_SDIST:
            if not any(name.startswith(f"{folder}/") for name in names):
                yield f"the sdist has no {folder}/"
    for name in wanted:
        if name not in names:
            yield f"the {kind} has no {name}"


def about_distributions(folder, root):
    """The sdist and the wheel in a folder are this version's, and complete."""
    version = settings(root)["project"]["version"]
    address = settings(root)["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    found = sorted(path.name for path in folder.iterdir() if path.name != ".gitignore")
    wheel, sdist = f"fwdad-{version}-py3-none-any.whl", f"fwdad-{version}.tar.gz"
    if found != sorted((wheel, sdist)):
        yield f"{folder} should hold {wheel} and {sdist}; it holds {', '.join(found) or 'nothing'}"
        return
    with zipfile.ZipFile(folder / wheel) as archive:
        names = archive.namelist()
        metadata = email.message_from_bytes(archive.read(f"fwdad-{version}.dist-info/METADATA"))
    yield from about_contents(names, "wheel")
    yield from about_page(metadata.get_payload(decode=True).decode(), address, root)
    urls = metadata.get_all("Project-URL") or []
    if not urls:
        yield "the wheel has no URLs"
    yield from (
        f"a URL of the wheel is not the repository's: {u}" for u in urls if address not in u
    )
    with tarfile.open(folder / sdist) as archive:
        names = [m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()]
    yield from about_contents(names, "sdist")


CHECKS = (about_address, about_version, about_fragments, about_tree, about_classifiers)


def complaints(root=ROOT, folder=None):
    """All that stands between a checkout and its release, as sentences."""
    found = [text for check in CHECKS for text in check(root)]
    return found + list(about_distributions(folder, root)) if folder is not None else found


def main():
    """Print what has to be done."""
    parser = argparse.ArgumentParser(prog="python -m tests.release_check", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the sdist and the wheel are")
    found = complaints(folder=parser.parse_args().folder)
    for text in found:
        print(f"- {text}")
    print("not ready to be released" if found else "ready to be released")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
