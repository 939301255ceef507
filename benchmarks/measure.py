"""Time and memory of calls that are compared with one another."""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Call = Callable[[], Any]


@dataclass
class Timing:
    """Seconds for one call: the first, and the mean of each round."""

    first: float
    number: int = 1
    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)


def time_interleaved(
    calls: dict[str, Call], rounds: int, round_seconds: float
) -> dict[str, Timing]:
    """Time several calls in turns, so that all meet the same load of the machine.

    Parameters
    ----------
    calls : dict of callables
        What to time. Each is called up to seven times before (tracing, compilation, caches,
        shortcuts), fewer if it takes long.
    rounds : int
        How many turns each gets.
    round_seconds : float
        How long one turn is to last; a slow call is made once.
    """
    timings = {}
    for name, call in calls.items():
        first = _seconds(call, 1)
        before = [_seconds(call, 1) if first < 2.0 else first]
        while len(before) < 6 and sum(before) < 5 * round_seconds:
            before.append(_seconds(call, 1))
        timings[name] = Timing(first, max(1, int(round_seconds / max(min(before), 1e-7))))
    for _ in range(rounds):
        for name, call in calls.items():
            timing = timings[name]
            timing.rounds.append(_seconds(call, timing.number))
    return timings


def paired_ratio(rounds: list[float], of: list[float]) -> float:
    """The median over the rounds of one call's time over another's in the same round.

    Both met the same load then, which a ratio of two medians does not promise.
    """
    return statistics.median(a / b for a, b in zip(rounds, of, strict=True))


def _seconds(call: Call, number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def peak_traced(call: Call) -> int:
    """Bytes above the start that a call held at its peak, its result included.

    By ``tracemalloc``, which sees what Python and NumPy allocate, to the byte. It does not see
    what LAPACK wrappers or other C++ libraries allocate for themselves.
    """
    call()
    gc.collect()
    tracemalloc.start()
    try:
        start, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        result = call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    del result
    return peak - start


CAN_RESET_RSS = sys.platform == "linux"
RESIDENT_RESOLUTION = 200_000  # pages, stacks and caches of the process come and go by so much


def peak_resident(call: Call) -> int:
    """Bytes by which a call raised the process's resident memory at its peak (Linux).

    For libraries that ``tracemalloc`` cannot see. The process should be
    started with ``MALLOC_ENVIRONMENT``, or freed memory that the allocator kept hides the peak.
    """
    call()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again here
    start = _status("VmRSS")
    result = call()
    peak = _status("VmHWM")
    del result
    return max(0, peak - start)


# glibc gives freed blocks back to the system at once: slow, so never where time is measured
MALLOC_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"}


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(key + ":"):
            return 1024 * int(line.split()[1])
    message = f"no {key} in /proc/self/status"
    raise OSError(message)
