"""Jobs as bytes: by plain pickle where that can, else by cloudpickle; large arrays apart."""

from __future__ import annotations

import importlib
import mmap
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from fwdad.eager.lifting.reached import sources_of
from fwdad.errors import DualLeakError, UnpicklableFunctionError

_NAMES = ("cloudpickle", "joblib.externals.cloudpickle")
_ALIGNMENT = 64  # of arrays in a file: a cache line, and what vector instructions want


def cloudpickle() -> ModuleType | None:
    """The module, or the copy that joblib has; None if neither is installed."""
    for name in _NAMES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


class Content(NamedTuple):
    """A pickled object, and the memory of the arrays in it, which is not copied into the pickle."""

    pickled: bytes
    arrays: tuple[Any, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes it has."""
        return len(self.pickled) + sum(memoryview(a).nbytes for a in self.arrays)

    def in_own_memory(self) -> Content:
        """The same, with copies of the arrays: whoever has them may change them meanwhile."""
        return Content(self.pickled, tuple(bytes(a) for a in self.arrays))

    def load(self) -> Any:
        """The object. Arrays in memory that cannot be written are copied: f may write into them."""
        arrays = [bytearray(a) if memoryview(a).readonly else a for a in self.arrays]
        return pickle.loads(self.pickled, buffers=arrays)  # noqa: S301  (from who asks for it)

    def write(self, path: Path) -> tuple[tuple[int, int], ...]:
        """Write it into a file; returns where each part begins and how many bytes it has."""
        places = []
        with path.open("wb") as file:
            for part in (self.pickled, *self.arrays):
                file.write(b"\0" * (-file.tell() % _ALIGNMENT))
                places.append((file.tell(), memoryview(part).nbytes))
                file.write(part)
        return tuple(places)


def read(path: str, places: tuple[tuple[int, int], ...]) -> Any:
    """The object in a file, of which all processes share the pages that they do not write."""
    with Path(path).open("rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    pickled, *arrays = [whole[start : start + count] for start, count in places]
    return pickle.loads(pickled, buffers=arrays)  # noqa: S301  (written by who asks for it)


def pickled(job: Any, f: Any) -> Content:
    """A job that works on f as bytes.

    What is defined in ``__main__``, in a notebook or inside a function is pickled by value, which
    needs cloudpickle; a script's functions can be found by name there, too.
    """
    by_value = cloudpickle()
    order: list[Any] = [pickle] if by_value is None else [pickle, by_value]
    if sources_of(f):
        order.reverse()
    raised: Exception | None = None
    for how in order:
        arrays: list[pickle.PickleBuffer] = []
        try:
            made = how.dumps(job, protocol=5, buffer_callback=arrays.append)
        except DualLeakError:
            raise
        except Exception as error:  # noqa: BLE001  (whatever a class of the user's raises)
            raised = raised or error
        else:
            return Content(made, tuple(_bytes(a) for a in arrays))
    hint = "leave out what it names, or let f make it where it runs"
    if by_value is None:
        hint = "pip install cloudpickle, or define it at the top level of a module"
    raise UnpicklableFunctionError(
        f"the function and its arguments are sent to other processes, and cannot be pickled: "
        f"{raised}; {hint}. Threads need no pickle: ThreadPoolExecutor"
    ) from raised


def _bytes(array: pickle.PickleBuffer) -> Any:
    return array.raw()
