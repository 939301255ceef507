"""Compiled code that others may have written is never run; killed processes leave a whole cache."""

import hashlib
import logging
import os
import pickle
import stat
import threading
from pathlib import Path

import pytest

pytest.importorskip("numba")

from fwdad.codegen.cache import cache_key, disk_cache, private_files
from fwdad.codegen.cache.private_files import opened
from tests.codegen.cached_programs import assert_answers, call, finish, start
from tests.tiers import every

STRANGER = 54321
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
with_modes = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes")


class Planted:
    """It leaves a mark where it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path):
    return tmp_path / "mark"


@pytest.fixture
def planted(entry, mark):
    """An entry that would run code of somebody else's, though this user's key has signed it."""
    plant(entry, mark, cache_key.find_key())
    return entry


def plant(path, mark, key):
    head = disk_cache._MAGIC + bytes.fromhex(path.stem)
    payload = pickle.dumps(Planted(mark))
    path.write_bytes(head + disk_cache._signed(key, head, payload) + payload)


@pytest.fixture
def warnings(caplog):
    """The warnings of the cache so far."""
    caplog.set_level(logging.DEBUG, "fwdad.cache")
    return lambda: [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_what_is_planted_works(planted, mark):
    assert call() == 7.5
    assert mark.exists()


def linked(path):
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def replaced_by_a_pipe(path):
    path.unlink()
    os.mkfifo(path)


def linked_by_a_stranger(path):
    folder = path.parent
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(folder.with_name("moved"))
    os.lchown(folder, STRANGER, STRANGER)


FOLDERS = {
    "all may write": lambda e: e.parent.chmod(0o777),
    "the group may write": lambda e: e.parent.chmod(0o770),
    "all may write, and it is sticky": lambda e: e.parent.chmod(0o1777),
    "all may write above": lambda e: e.parent.parent.chmod(0o757),
    "the group may write above": lambda e: e.parent.parent.chmod(0o775),
    "all may write where the key is": lambda e: cache_key.place("config").chmod(0o777),
    "all may write above the key": lambda e: cache_key.place("config").parent.chmod(0o777),
}
STRANGERS = {
    "a stranger's": lambda e: os.chown(e.parent, STRANGER, STRANGER),
    "a stranger's above": lambda e: os.chown(e.parent.parent, STRANGER, STRANGER),
    "a stranger's link": linked_by_a_stranger,
    "a stranger's where the key is": lambda e: os.chown(cache_key.place("config"), STRANGER, -1),
}
FILES = {
    "all may write": lambda e: e.chmod(0o602),
    "the group may write": lambda e: e.chmod(0o660),
    "a link": linked,
    "a pipe": replaced_by_a_pipe,
}


def assert_refused(entry, mark, count, warnings):
    for _ in range(3):
        assert call() == 7.5
    assert not mark.exists()
    assert count.keys() <= {"compiled"}  # neither loaded nor saved
    assert len(warnings()) == 1
    assert str(entry.parent) in warnings()[0]


@with_modes
@pytest.mark.parametrize("change", FOLDERS)
def test_folders_that_others_may_write_are_refused(change, planted, mark, count, warnings):
    FOLDERS[change](planted)
    assert_refused(planted, mark, count, warnings)


@as_root
@pytest.mark.parametrize("change", STRANGERS)
def test_folders_of_others_are_refused(change, planted, mark, count, warnings):
    STRANGERS[change](planted)
    assert_refused(planted, mark, count, warnings)


def assert_replaced(mark, count):
    assert call() == 7.5
    assert not mark.exists()
    assert count["saved"] == 1
    assert "loaded" not in count
    count.clear()
    assert call() == 7.5
    assert count == {"loaded": 1}


@with_modes
@pytest.mark.parametrize("change", FILES)
def test_files_that_others_may_write_are_replaced(change, planted, mark, count, warnings):
    FILES[change](planted)
    assert_replaced(mark, count)
    assert len(warnings()) == 1
    assert str(planted) in warnings()[0]
    assert stat.S_IMODE(planted.lstat().st_mode) == 0o600


@as_root
def test_a_file_of_another_user_is_replaced(planted, mark, count, warnings):
    os.chown(planted, STRANGER, STRANGER)
    assert_replaced(mark, count)
    assert len(warnings()) == 1


def test_many_refused_files_are_one_warning(entry, mark, count, warnings):
    assert call(3, 1) == 8
    for path in entry.parent.iterdir():
        plant(path, mark, cache_key.find_key())
        path.chmod(0o666)
    assert call() == 7.5
    assert call(3, 1) == 8
    assert not mark.exists()
    assert len(warnings()) == 1


def test_a_link_of_ones_own_is_followed(entry, count, monkeypatch):
    way = entry.parent.with_name("way")
    way.symlink_to(entry.parent.name)
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(way))
    assert call() == 7.5
    assert count == {"loaded": 1}


# -- signatures


def test_a_checksum_is_no_signature(entry, mark, count, warnings):
    head = disk_cache._MAGIC + bytes.fromhex(entry.stem)
    payload = pickle.dumps(Planted(mark))
    entry.write_bytes(head + hashlib.sha256(head + payload).digest() + payload)
    assert_replaced(mark, count)
    assert warnings() == []


def test_another_key_is_no_signature(entry, mark, count):
    plant(entry, mark, os.urandom(32))
    assert_replaced(mark, count)


def test_an_entry_under_another_name_is_not_signed(entry, mark, count):
    other = entry.with_name(f"{'0' * 64}.fwdad")
    plant(other, mark, cache_key.find_key())
    other.rename(entry)
    assert_replaced(mark, count)


def test_the_name_is_signed_too(entry, mark, count):
    other = entry.with_name(f"{'0' * 64}.fwdad")
    plant(other, mark, cache_key.find_key())
    data = other.read_bytes()
    entry.write_bytes(data.replace(bytes(32), bytes.fromhex(entry.stem), 1))
    assert_replaced(mark, count)


# -- the key


@pytest.fixture
def key(entry):
    return cache_key.place("config") / "cache.key"


DAMAGES = {
    "removed": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "zeros": lambda path: path.write_bytes(bytes(65)),
    "no digits": lambda path: path.write_bytes(b"z" * 64 + b"\n"),
    "readable by all": lambda path: path.chmod(0o644),
    "writable by the group": lambda path: path.chmod(0o620),
    "a link": linked,
    "a pipe": replaced_by_a_pipe,
}


@with_modes
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_key_is_replaced(damage, key, mark, planted, count, warnings):
    before = cache_key.find_key()
    DAMAGES[damage](key)
    assert_replaced(mark, count)
    assert cache_key.find_key() != before
    assert stat.S_IMODE(key.lstat().st_mode) == 0o600
    assert [path.name for path in key.parent.iterdir() if path.name != "elsewhere"] == ["cache.key"]
    assert warnings() == []


@as_root
def test_a_key_of_another_user_is_replaced(key, mark, planted, count):
    os.chown(key, STRANGER, STRANGER)
    assert_replaced(mark, count)


def test_no_place_for_a_key_no_cache(folder, count, warnings, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    monkeypatch.setenv("LOCALAPPDATA", "")
    monkeypatch.setenv("HOME", "relative")
    assert call() == 7.5
    assert count == {}
    assert list(folder.iterdir()) == []


def test_a_key_that_cannot_be_kept(folder, count, warnings, tmp_path):
    (tmp_path / "config").write_text("")
    assert call() == 7.5
    assert call() == 7.5
    assert len(warnings()) == 1
    assert list(folder.iterdir()) == []


def test_modes_that_cannot_be_set(folder, count, warnings, monkeypatch):
    """A file system where all files are everybody's, whatever they are created with."""
    create = os.open

    def shared(path, flags, mode=0o777, **options):
        handle = create(path, flags, mode, **options)
        if flags & os.O_CREAT:
            os.fchmod(handle, 0o777)
        return handle

    def refused(*_, **__):
        raise PermissionError("no modes here")

    monkeypatch.setattr(os, "open", shared)
    monkeypatch.setattr(os, "chmod", refused)
    assert call() == 7.5
    assert call() == 7.5
    assert len(warnings()) == 1
    assert "saved" not in count


def test_no_handles_of_folders(folder, count, monkeypatch, mark):
    """A system without owners and modes, as far as that can be had here."""
    monkeypatch.setattr(private_files, "_BY_HANDLE", False)
    monkeypatch.setattr(private_files, "_NO_LINK", 0)
    assert call() == 7.5
    assert call() == 7.5
    assert count == {"saved": 1, "loaded": 1}
    (path,) = folder.iterdir()
    count.clear()
    plant(path, mark, os.urandom(32))
    assert_replaced(mark, count)
    plant(path, mark, cache_key.find_key())
    linked(path)
    assert call() == 7.5
    assert not mark.exists()
    assert not path.is_symlink()
    (folder.parent / "config" / "fwdad" / "cache.key").write_text("damaged")
    assert call() == 7.5
    assert cache_key.find_key() is not None


@with_modes
@pytest.mark.parametrize("umask", [0, 0o777, 0o277])
def test_what_is_created_is_its_owners_alone(umask, tmp_path, count, warnings, monkeypatch):
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path / "a" / "b" / "c"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "x" / "y"))
    before = os.umask(umask)
    try:
        assert call() == 7.5
    finally:
        os.umask(before)
    assert count == {"saved": 1}
    found = {p.relative_to(tmp_path).as_posix(): p for p in tmp_path.rglob("*")}
    folders = {"a", "a/b", "a/b/c", "x", "x/y", "x/y/fwdad"}
    assert {name for name, p in found.items() if p.is_dir()} == folders
    assert len(found) == len(folders) + 2
    for path in found.values():
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert call() == 7.5
    assert count["loaded"] == 1


# -- processes that are killed, and that race

STAGES = [
    "compiling",
    "the key, half written",
    "the key, written",
    "an entry, half written",
    "an entry, written",
]


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("stage", every(2, STAGES))
def test_a_killed_process(stage, folder, count):
    process = start(folder, call=f"stopped({stage!r})")
    assert process.stdout.readline() == "stopped\n"
    process.kill()
    process.communicate()
    assert not any(path.suffix == ".fwdad" for path in folder.glob("*"))
    if "entry" in stage:
        assert len(list(folder.iterdir())) == 1  # a draft
    assert call() == 7.5
    assert count == {"saved": 1}
    assert call() == 7.5
    assert count == {"saved": 1, "loaded": 1}


@pytest.mark.slow
def test_a_process_that_is_killed_somewhere(folder, plain):
    """Nothing in it is patched: it is killed when the first file is seen."""
    process = start(folder)
    while not (folder.is_dir() and any(folder.iterdir())):
        assert process.poll() is None
    process.kill()
    process.communicate()
    first, second = (finish(start(folder)) for _ in range(2))
    assert_answers(first["answers"], plain)
    assert first["compiled"] > 0
    assert first["answers"] == second["answers"]
    assert second["count"] == {"loaded": 8}
    assert second["compiled"] == 0


def at_once(*functions):
    """Run functions in threads that begin together; what they raise is raised."""
    barrier, raised = threading.Barrier(len(functions)), []

    def run(f):
        barrier.wait()
        try:
            f()
        except Exception as error:  # noqa: BLE001 (whatever it is, it is raised below)
            raised.append(error)

    threads = [threading.Thread(target=run, args=[f]) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_one_key_is_made_at_once(tmp_path, monkeypatch):
    for k in range(20):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / str(k)))
        found = []
        at_once(*8 * [lambda f=found: f.append(cache_key.find_or_make_key())])
        assert set(found) == {cache_key.find_key()}
        assert len(found) == 8


def test_readers_see_whole_entries_while_writers_race(folder, monkeypatch):
    name, seen = "ab" * 32, []
    payloads = [bytes([k]) * 100_000 for k in range(3)]

    def write(payload):
        for _ in range(40):
            with opened(folder, make=True) as place:
                disk_cache._write(place, name, cache_key.find_or_make_key(), payload)

    def read():
        seen.extend(disk_cache._read(folder, name) for _ in range(100))

    write(payloads[0])
    at_once(*(lambda p=p: write(p) for p in payloads), read, read)
    assert set(seen) <= set(payloads)
    assert len(seen) == 200
    assert [path.name for path in folder.iterdir()] == [f"{name}.fwdad"]
