"""Which folders are somebody's alone, by what way they are reached, and what is made there."""

import contextlib
import os
import stat
import tempfile
from pathlib import Path

import pytest

from fwdad.codegen.cache.private_files import UntrustedError, opened

if not hasattr(os, "geteuid"):
    pytest.skip("no owners and modes", allow_module_level=True)

STRANGER = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def content(path, make=False):
    with opened(path, make=make) as folder:
        return folder.read("file")


@pytest.fixture
def home(tmp_path):
    """A folder with a file, three names below another."""
    home = tmp_path / "base" / "some" / "home"
    with opened(home, make=True) as folder:
        folder.write("file", b"text")
    return home


@pytest.fixture
def base(home):
    return home.parent.parent


def test_a_private_folder(home):
    assert content(home) == b"text"


def test_what_is_missing_is_not_made(home):
    with pytest.raises(FileNotFoundError), opened(home / "a" / "b", make=False):
        pass
    assert not (home / "a").exists()


def test_what_is_missing_is_made(home, monkeypatch):
    monkeypatch.chdir(home)
    with opened(home.relative_to(home) / "a" / ".." / "a" / "b", make=True) as folder:
        folder.write("file", b"other")
    assert content(home / "a" / "b") == b"other"


@pytest.mark.parametrize("mode", [0o711, 0o755, 0o1755, 0o1777, 0o1770])
def test_ways_that_nobody_can_change(mode, home, base):
    base.chmod(mode)
    assert content(home) == b"text"


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o2770])
def test_ways_that_others_can_change(mode, home, base):
    home.parent.chmod(mode)
    for make in (True, False):
        with pytest.raises(UntrustedError, match=f"{home.parent} can be written by users other"):
            content(home, make)
    with pytest.raises(UntrustedError), opened(home / "new", make=True):
        pass
    assert not (home / "new").exists()


@pytest.mark.parametrize("mode", [0o1777, 0o1770, 0o777, 0o720, 0o702])
def test_the_folder_itself_is_the_owners_alone(mode, home):
    home.chmod(mode)
    with pytest.raises(UntrustedError, match=f"{home} can be written by users other"):
        content(home)


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o500])
def test_others_may_read_it(mode, home):
    home.chmod(mode)
    assert content(home) == b"text"


@as_root
@pytest.mark.parametrize("name", ["base", "some", "home"])
def test_strangers_on_the_way(name, home, base):
    (theirs,) = (p for p in (base, home.parent, home) if p.name == name)
    base.parent.chmod(0o1777)
    os.chown(theirs, STRANGER, STRANGER)
    with pytest.raises(UntrustedError, match=f"{theirs} belongs to another user \\(uid {STRANGER}"):
        content(home)


@as_root
def test_a_user_who_is_not_root():
    """Root's folders may be on their way, also such as they cannot list, but not be theirs."""
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        if not all(path.stat().st_mode & stat.S_IXOTH for path in base.parents):
            pytest.skip("temporary files are kept where only root may pass")
        base.chmod(0o711)
        home = base / "home"
        with opened(home, make=True) as folder:
            folder.write("file", b"text")
        home.chmod(0o755)
        with as_stranger():
            with pytest.raises(UntrustedError, match=f"{home} belongs to another user \\(uid 0"):
                content(home)
            with pytest.raises(PermissionError) as caught, opened(base / "new", make=True):
                pass
            assert not isinstance(caught.value, UntrustedError)
        os.chown(home, STRANGER, STRANGER)
        os.chown(home / "file", STRANGER, STRANGER)
        with as_stranger():
            assert content(home) == b"text"
            (home / "file").chmod(0)
            with pytest.raises(PermissionError):
                content(home)


@contextlib.contextmanager
def as_stranger():
    os.seteuid(STRANGER)
    try:
        yield
    finally:
        os.seteuid(0)


# -- links


@pytest.fixture(params=["absolute", "relative", "up and down", "two"])
def way(request, home, base):
    """A path to the folder by a link of this user's."""
    link = base / "link"
    if request.param == "two":
        (base / "second").symlink_to("some/home")
        link.symlink_to(base / "second")
    else:
        texts = {"absolute": home, "relative": "some/home", "up and down": "some/./../some//home"}
        link.symlink_to(texts[request.param])
    return link


def test_own_links_are_followed(way):
    assert content(way) == b"text"
    with opened(way / "new", make=True) as folder:
        folder.write("file", b"other")
    assert content(way / "new") == b"other"


def test_the_way_that_a_link_leads_is_checked(way, home):
    home.parent.chmod(0o777)
    with pytest.raises(UntrustedError, match="some can be written by users other"):
        content(way)


def test_where_a_link_is_is_checked(way, base):
    base.chmod(0o777)
    with pytest.raises(UntrustedError, match=f"{base} can be written by users other"):
        content(way)


@as_root
def test_links_of_strangers(way, base):
    base.chmod(0o1777)
    os.lchown(way, STRANGER, STRANGER)
    with pytest.raises(UntrustedError, match=f"{way} belongs to"):
        content(way)


def test_links_that_go_round(base):
    (base / "one").symlink_to("two")
    (base / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links"):
        content(base / "one")


def test_a_link_to_nothing_is_nothing(base):
    (base / "link").symlink_to("nothing")
    with pytest.raises(FileNotFoundError):
        content(base / "link")


def test_a_file_is_no_folder(home):
    with pytest.raises(NotADirectoryError):
        content(home / "file")
    with pytest.raises(NotADirectoryError):
        content(home / "file" / "more", make=True)


def test_what_is_open_stays_the_same(home):
    """Whoever changes a path after it has been looked at changes nothing of what is read."""
    with opened(home, make=False) as folder:
        home.rename(home.with_name("moved"))
        home.mkdir()
        (home / "file").write_text("planted")
        assert folder.read("file") == b"text"


def open_handles():
    return len([*Path("/dev/fd").iterdir()])


def test_no_handle_stays_open(home, base):
    before = open_handles()
    for path in (home, home / "new", home / "file", base / "none" / "more"):
        for name in ("file", "no file"):
            try:
                with opened(path, make=False) as folder:
                    folder.files()
                    folder.read(name)
            except OSError:
                continue
    home.chmod(0o777)
    with pytest.raises(UntrustedError):
        content(home)
    assert open_handles() == before
