"""A cluster of Dask: real processes, one of which is killed; the bits of one machine."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import ExecutorError
from tests.drivers.parallel import programs

distributed = pytest.importorskip("distributed")

# its sockets and its event loop are closed after the test that they belong to
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
X = np.linspace(0.1, 2.0, 80)
ASKED = {"chunk": 10, "mode": "forward"}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
    ) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as made:
        yield made


@pytest.mark.parametrize("chunk", [7, "auto", None])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("f", [programs.waves, programs.few, programs.matrix_product])
def test_bits_of_one_machine(client, f, mode, chunk):
    asked = {"chunk": chunk, "mode": mode}
    found, expected = fwdad.jacobian(f, X, **asked, executor=client), fwdad.jacobian(f, X, **asked)
    assert_array_equal(found, expected)
    assert found.strides == expected.strides


def test_functions_of_a_notebook_and_large_constants(client):
    table = np.random.default_rng(0).random(500_000)

    def local(x):
        return np.sin(x) * table[: x.size]

    expected = fwdad.jacobian(local, X, **ASKED)
    assert_array_equal(fwdad.jacobian(local, X, **ASKED, executor=client), expected)
    table.flags.writeable = False
    assert_array_equal(fwdad.jacobian(local, X, **ASKED, executor=client), expected)


@pytest.mark.parametrize("f", [programs.writes_array, programs.appends, programs.counts])
def test_threads_of_a_worker_take_turns_where_f_writes_what_they_share(client, f):
    for mode in ("forward", "reverse"):
        found = fwdad.jacobian(f, X, chunk=3, mode=mode, executor=client)
        assert_array_equal(found, np.diag(2 * X * (2 if f is programs.writes_array else 1)))


def test_exceptions_have_their_class_and_line(client):
    with pytest.raises(programs.Refused, match="is refused") as caught:
        fwdad.jacobian(programs.refuse, X, **ASKED, executor=client)
    assert any("programs.py" in note for note in caught.value.__notes__)


def kill(pids, runs, at):
    """Kill processes once f has run so often."""

    def wait():
        while runs() < at:
            time.sleep(0.005)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("how_many", [1, 2])
@pytest.mark.parametrize("kept", [False, True])
def test_workers_are_killed_in_the_middle(client, tmp_path, how_many, kept):
    f = programs.Slow(tmp_path / "runs", 0.2)
    client.wait_for_workers(2, timeout=60)
    pids = [*client.run(os.getpid).values()][:how_many]
    thread = kill(pids, f.runs, 4)
    to = {"checkpoint_to": tmp_path / "J"} if kept else {}
    found = fwdad.jacobian(f, X, chunk=5, mode="forward", executor=client, **to)
    thread.join()
    assert_array_equal(found, fwdad.jacobian(programs.waves, X, chunk=5, mode="forward"))
    # no more than what was under way is done again
    assert f.runs() <= 16 + 2 * 4 + 2


def test_a_client_that_is_closed(cluster, tmp_path):
    with distributed.Client(cluster) as client:
        pass
    with pytest.raises(ExecutorError, match="client is closed"):
        fwdad.jacobian(programs.waves, X, executor=client, checkpoint_to=tmp_path / "J")
    assert not (tmp_path / "J").exists()


def test_a_resumed_run_may_have_other_workers(client, tmp_path):
    f = programs.Slow(tmp_path / "runs")
    asked = {**ASKED, "checkpoint_to": tmp_path / "J"}
    expected = fwdad.jacobian(programs.waves, X, **ASKED)
    assert_array_equal(fwdad.jacobian(f, X, **asked, executor=client), expected)
    for path in sorted((tmp_path / "J").glob("*.block"))[2:5]:
        path.unlink()
    assert_array_equal(fwdad.jacobian(f, X, **asked), expected)
    # and in each worker of several threads once to see what it writes
    assert f.runs() in range(8 + 3 + 1, 8 + 3 + 3)


def test_sums_over_data(client):
    rng = np.random.default_rng(0)
    parts = [rng.random(50) for _ in range(13)]
    wanted = fwdad.value_and_grad(programs.square_loss, over=parts)(2.0)
    f = fwdad.value_and_grad(programs.square_loss, over=parts, executor=client)
    assert f(2.0) == wanted
    client.restart()  # the workers that had the parts are gone
    assert f(2.0) == wanted
    dask_array = pytest.importorskip("dask.array")
    array = dask_array.from_array(np.concatenate(parts), chunks=50)
    for over in (array, array.persist()):
        f = fwdad.value_and_grad(programs.square_loss, over=over, executor=client)
        assert f(2.0) == wanted
    with pytest.raises(programs.Refused):
        fwdad.value_and_grad(programs.refuse_part, over=parts, executor=client)(2.0)


def test_a_sum_whose_workers_are_killed(client, tmp_path):
    f = programs.SlowLoss(tmp_path / "runs", 0.2)
    parts = [np.full(3, float(k)) for k in range(12)]
    client.wait_for_workers(2, timeout=60)
    pids = [*client.run(os.getpid).values()]
    thread = kill(pids, f.runs, 4)
    found = fwdad.value_and_grad(f, over=parts, executor=client)(2.0)
    thread.join()
    assert found == fwdad.value_and_grad(programs.square_loss, over=parts)(2.0)


def test_points(client):
    points = np.random.default_rng(0).random((23, 4))
    f = fwdad.grad(programs.number)
    assert_array_equal(fwdad.vmap(f, executor=client)(points), fwdad.vmap(f)(points))
