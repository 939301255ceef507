"""The hooks that lifted code calls in place of Python's syntax; importing this installs them."""

from fwdad.eager.calls.dispatch import call
from fwdad.eager.hooks.attributes import attr, del_attr, set_attr
from fwdad.eager.hooks.iteration import iterate, iterate_deep, mapping
from fwdad.eager.hooks.matching import constantly, matches
from fwdad.eager.hooks.method_calls import method, method_of_one
from fwdad.eager.hooks.operators import (
    OPERATORS,
    compare_then,
    contains,
)
from fwdad.eager.hooks.statements import (
    check_eval,
    decorate,
    enter,
    own_names,
    stop,
    write_cells,
    write_global,
)
from fwdad.eager.hooks.subscripts import aug_setitem, delitem, getitem, setitem
from fwdad.eager.lifting.lift import install_hooks
from fwdad.eager.memory.stale import revive

__all__ = [
    "OPERATORS",
    "attr",
    "contains",
    "del_attr",
    "delitem",
    "getitem",
    "iterate",
    "method",
    "set_attr",
    "setitem",
]

install_hooks(
    {
        "slice": slice,
        "call": call,
        "method": method,
        "method_of_one": method_of_one,
        "attr": attr,
        "getitem": getitem,
        "setitem": setitem,
        "delitem": delitem,
        "set_attr": set_attr,
        "del_attr": del_attr,
        "contains": contains,
        "compare_then": compare_then,
        "mapping": mapping,
        "iterate_deep": iterate_deep,
        "check_eval": check_eval,
        "own_names": own_names,
        "stop": stop,
        "iterate": iterate,
        "found": revive,
        "enter": enter,
        "decorate": decorate,
        "write_cells": write_cells,
        "write_global": write_global,
        "aug_setitem": aug_setitem,
        "matches": matches,
        "constantly": constantly,
        **{f.__name__: hook for f, hook in OPERATORS.items()},
    }
)
