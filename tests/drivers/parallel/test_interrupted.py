"""Checkpoints: runs that are stopped in every way go on; other work is refused."""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.drivers.parallel import checkpoints
from fwdad.errors import CheckpointError, ExecutorError, NondeterministicFunctionError
from tests.drivers.parallel import programs

ROOT = Path(__file__).parents[3]
X = np.linspace(0.1, 2.0, 80)
BLOCKS = 8  # of 10 columns
ASKED = {"chunk": 10, "mode": "forward"}
J = fwdad.jacobian(programs.waves, X, **ASKED)


def blocks_in(folder):
    return sorted(p.name for p in Path(folder).glob("*.block"))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("f", [programs.waves, programs.complex_valued, programs.branching])
def test_a_finished_run_is_read(tmp_path, f, mode):
    asked = {"chunk": 10, "mode": mode, "checkpoint_to": tmp_path / "J"}
    expected = fwdad.value_and_jacobian(f, X, chunk=10, mode=mode)
    for _ in range(2):
        for found, wanted in zip(fwdad.value_and_jacobian(f, X, **asked), expected, strict=True):
            assert_array_equal(found, wanted)
    assert not list((tmp_path / "J").glob("*.tmp"))


def test_composites_aux_and_widths_that_are_chosen(tmp_path):
    p = {"u": np.arange(1.0, 6.0), "v": np.arange(3.0)}
    for k in range(2):
        found = fwdad.jacobian(programs.tree, p, chunk=2, checkpoint_to=tmp_path / "tree")
        expected = fwdad.jacobian(programs.tree, p, chunk=2)
        assert repr(found) == repr(expected), k
        asked = {"has_aux": True, "checkpoint_to": tmp_path / "aux"}
        value, J, aux = fwdad.value_and_jacobian(programs.with_aux, X, **asked)
        assert_array_equal(J, np.diag(2 * X))
        assert_array_equal(value, X * X)
        assert aux == {"n": 80}


def test_f_does_not_run_for_what_is_finished(tmp_path):
    f = programs.Slow(tmp_path / "runs")
    for _ in range(2):
        assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J"), J)
        assert f.runs() == BLOCKS
    (tmp_path / "J" / blocks_in(tmp_path / "J")[3]).unlink()
    assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J"), J)
    assert f.runs() == BLOCKS + 1


def test_a_damaged_block_is_made_again(tmp_path):
    f = programs.Slow(tmp_path / "runs")
    folder = tmp_path / "J"
    fwdad.jacobian(f, X, **ASKED, checkpoint_to=folder)
    for k, damage in enumerate((lambda d: d[:-7], lambda d: b"", lambda d: d[:90] + b"?" + d[91:])):
        path = folder / blocks_in(folder)[k]
        path.write_bytes(damage(path.read_bytes()))
    assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=folder), J)
    assert f.runs() == BLOCKS + 3


# -- what stops a run


class Stop(Exception):  # noqa: N818
    pass


def test_f_raises_in_the_middle(tmp_path):
    class Failing(programs.Slow):
        def __call__(self, x):
            if self.runs() == 5 and not (tmp_path / "mended").exists():
                raise Stop
            return super().__call__(x)

    f = Failing(tmp_path / "runs")
    with pytest.raises(Stop):
        fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J")
    assert len(blocks_in(tmp_path / "J")) == 5
    (tmp_path / "mended").touch()
    assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J"), J)
    assert f.runs() == BLOCKS


SCRIPT = """
import signal, sys
import numpy as np, fwdad
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from tests.drivers.parallel.programs import Slow

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    runs, folder, how = sys.argv[1:]
    X = np.linspace(0.1, 2.0, 80)
    f = Slow(runs, 0.1)
    asked = {"chunk": 10, "mode": "forward", "checkpoint_to": folder}
    if how == "alone":
        fwdad.jacobian(f, X, **asked)
    else:
        made = ThreadPoolExecutor(2) if how == "threads" else ProcessPoolExecutor(2)
        with made as executor:
            fwdad.jacobian(f, X, **asked, executor=executor)
"""


def started(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(tmp_path / "runs"), str(tmp_path / "J"), how]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, start_new_session=True, cwd=ROOT
    )


def wait_for(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.mark.every(2)
@pytest.mark.parametrize("how", ["alone", "threads", "processes"])
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_killed_or_interrupted_and_resumed(tmp_path, how, by):
    f = programs.Slow(tmp_path / "runs", 0.1)
    with started(tmp_path, how) as process:
        wait_for(lambda: len(blocks_in(tmp_path / "J")) >= 3)
        os.killpg(process.pid, by)
        _, told = process.communicate(timeout=60)
    assert process.returncode != 0
    if by is signal.SIGINT:
        assert b"KeyboardInterrupt" in told
    finished, ran = len(blocks_in(tmp_path / "J")), f.runs()
    assert 3 <= finished < BLOCKS
    assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J"), J)
    assert f.runs() - ran == BLOCKS - finished


def test_an_interrupt_keeps_what_is_finished(tmp_path, monkeypatch):
    f = programs.Slow(tmp_path / "runs", 0.05)
    keep = checkpoints.Checkpoint.keep

    def interrupted(self, block):
        keep(self, block)
        if self.kept == 2:
            time.sleep(0.3)  # others are finished meanwhile
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints.Checkpoint, "keep", interrupted)
    with ThreadPoolExecutor(2) as executor, pytest.raises(KeyboardInterrupt):
        fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J", executor=executor)
    monkeypatch.undo()
    finished = len(blocks_in(tmp_path / "J"))
    assert finished >= 4
    before = f.runs()
    assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J"), J)
    assert f.runs() - before == BLOCKS - finished


def test_a_worker_is_killed_and_another_pool_goes_on(tmp_path):
    f = programs.Slow(tmp_path / "runs", kill_at=5)
    context = multiprocessing.get_context("fork")
    with (
        ProcessPoolExecutor(2, mp_context=context) as made,
        pytest.raises(ExecutorError, match="goes on"),
    ):
        fwdad.jacobian(f, X, **ASKED, executor=made, checkpoint_to=tmp_path / "J")
    finished, ran = len(blocks_in(tmp_path / "J")), f.runs()
    assert finished >= 1
    with ProcessPoolExecutor(2, mp_context=context) as made:
        found = fwdad.jacobian(f, X, **ASKED, executor=made, checkpoint_to=tmp_path / "J")
    assert_array_equal(found, J)
    assert f.runs() - ran == BLOCKS - finished


def limited(size):
    """Run in a child: files may have so many bytes, as on a disk that is nearly full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk(tmp_path):
    script = textwrap.dedent(
        """
        import sys, numpy as np, fwdad
        from tests.drivers.parallel import programs
        try:
            fwdad.jacobian(programs.waves, np.linspace(0.1, 2.0, 80), chunk=10, mode="forward",
                           checkpoint_to=sys.argv[1])
        except fwdad.errors.CheckpointError as error:
            print(error.msg)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "J")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=lambda: limited(2000),
    )
    assert "cannot be written: File too large" in done.stdout
    assert "0 finished blocks" in done.stdout
    assert not list((tmp_path / "J").glob("*.tmp"))
    found = fwdad.jacobian(programs.waves, X, **ASKED, checkpoint_to=tmp_path / "J")
    assert_array_equal(found, J)


def test_no_room_for_a_later_block(tmp_path, monkeypatch):
    real, calls = os.fsync, []

    def full(descriptor):
        calls.append(1)
        if len(calls) == 13:
            raise OSError(28, "No space left on device")
        real(descriptor)

    f = programs.Slow(tmp_path / "runs")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"No space left.* 4 finished blocks are kept"):
        fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J")
    monkeypatch.undo()
    finished, before = len(blocks_in(tmp_path / "J")), f.runs()
    assert_array_equal(fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J"), J)
    assert f.runs() - before == BLOCKS - finished


# -- what is refused


def refused(match, f, x, folder, **asked):
    before = {p.name: p.read_bytes() for p in Path(folder).iterdir()}
    with pytest.raises(CheckpointError, match=match):
        fwdad.jacobian(f, x, **{**ASKED, **asked}, checkpoint_to=folder)
    assert {p.name: p.read_bytes() for p in Path(folder).iterdir()} == before


def test_other_work_is_refused(tmp_path):
    folder = tmp_path / "J"
    fwdad.jacobian(programs.waves, X, **ASKED, checkpoint_to=folder)
    refused("blocks of another function", programs.few, X, folder)
    refused("blocks of other arguments", programs.waves, X + 1e-16 * X.max() + 1e-15, folder)
    refused(r"other options: chunk=10 there, 11 here", programs.waves, X, folder, chunk=11)
    refused(r"by='columns' there, 'rows' here", programs.waves, X, folder, mode="reverse")
    header = json.loads((folder / "fwdad-checkpoint.json").read_text())
    header["versions"]["numpy"] = "1.0"
    (folder / "fwdad-checkpoint.json").write_text(json.dumps(header))
    refused("other versions: numpy=1.0 there", programs.waves, X, folder)
    (folder / "fwdad-checkpoint.json").write_text("{")
    refused("cannot be read", programs.waves, X, folder)


def test_folders_that_are_none(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    refused("has other files in it", programs.waves, X, tmp_path)
    with pytest.raises(CheckpointError, match="is a file"):
        fwdad.jacobian(programs.waves, X, checkpoint_to=tmp_path / "thesis.tex")
    with pytest.raises(CheckpointError, match="cannot be written: Not a directory"):
        fwdad.jacobian(programs.waves, X, checkpoint_to=tmp_path / "thesis.tex" / "J")


def test_a_folder_is_of_one_process_at_a_time(tmp_path):
    with started(tmp_path, "alone") as process:
        wait_for(lambda: blocks_in(tmp_path / "J"))
        f = programs.Slow(tmp_path / "runs", 0.1)
        with pytest.raises(CheckpointError, match="in use by another process"):
            fwdad.jacobian(f, X, **ASKED, checkpoint_to=tmp_path / "J")
        process.kill()


def test_what_a_checkpoint_cannot_keep(tmp_path):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    with pytest.raises(CheckpointError, match="f's value holds a Pair"):
        fwdad.jacobian(lambda x: Pair(x, x * x), X, checkpoint_to=tmp_path / "J")


def test_blocks_of_another_value_are_not_mixed(tmp_path):
    """A file that f reads is not seen by the digest, but the value is compared."""
    data = tmp_path / "data"
    data.write_text("2.0")

    def f(x):
        return x * float(data.read_text())

    folder = tmp_path / "J"
    fwdad.jacobian(f, X, **ASKED, checkpoint_to=folder)
    (folder / blocks_in(folder)[3]).unlink()
    data.write_text("3.0")
    with pytest.raises(NondeterministicFunctionError, match="two blocks"):
        fwdad.jacobian(f, X, **ASKED, checkpoint_to=folder)


def test_a_folder_that_was_copied(tmp_path):
    fwdad.jacobian(programs.waves, X, **ASKED, checkpoint_to=tmp_path / "J")
    shutil.copytree(tmp_path / "J", tmp_path / "copy")
    found = fwdad.jacobian(programs.waves, X, **ASKED, checkpoint_to=tmp_path / "copy")
    assert_array_equal(found, J)
