"""Threads and pools, whose functions run as a part of the derivative call that starts them."""

from __future__ import annotations

import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fwdad.eager import hooks
from fwdad.eager.calls.dispatch import call, handler
from fwdad.eager.run import STATE
from fwdad.errors import FwdadError


def _in_run(run: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a function in another thread as a part of this thread's derivative call."""
    found = STATE.run, STATE.hidden  # a pool's thread goes on with other calls when this one ends
    try:
        try:
            STATE.run = run
            return call(f, *args, **kwargs)
        except FwdadError as error:
            if run is not None:
                run.errors.append(error)
            raise
        finally:
            STATE.run, STATE.hidden = found
    finally:  # also where an interrupt came before
        STATE.run, STATE.hidden = found


@handler(threading.Thread)
def _thread(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    target = kwargs.get("target", args[1] if len(args) > 1 else None)
    if STATE.run is None or target is None:
        return threading.Thread(*args, **kwargs)
    wrapped = functools.partial(_in_run, STATE.run, target)
    if len(args) > 1:
        return threading.Thread(args[0], wrapped, *args[2:], **kwargs)
    return threading.Thread(*args, **{**kwargs, "target": wrapped})


@handler(ThreadPoolExecutor.submit)
def _submit(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    pool, f, *rest = args
    return ThreadPoolExecutor.submit(pool, _in_run, STATE.run, f, *rest, **kwargs)


@handler(ThreadPoolExecutor.map)
def _pool_map(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    pool, f, *rest = args
    wrapped = functools.partial(_in_run, STATE.run, f)
    return ThreadPoolExecutor.map(pool, wrapped, *map(hooks.iterate, rest), **kwargs)
