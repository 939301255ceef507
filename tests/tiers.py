"""Which of many cases are in the short tier: the others are marked slow."""

from collections import defaultdict

import pytest

_MARKED = type(pytest.param())


def every(step, cases):
    """Every so many-th case in the short tier; a tuple is several arguments of a test."""
    found = []
    for k, case in enumerate(cases):
        if not isinstance(case, _MARKED):
            case = pytest.param(*case) if isinstance(case, tuple) else pytest.param(case)
        slow = () if k % step == 0 else (pytest.mark.slow,)
        found.append(pytest.param(*case.values, marks=(*case.marks, *slow), id=case.id))
    return found


def mark_slow(items):
    """Mark what `pytest.mark.every` and `pytest.mark.slow_cases` leave to the slow tier.

    They choose among all cases of a test, products of its lists; `every` above thins one list.
    """
    functions = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not item.get_closest_marker("slow"):
            functions[item.nodeid.removesuffix(f"[{item.callspec.id}]")].append(item)
    for cases in functions.values():
        for mark in cases[0].iter_markers("slow_cases"):
            for item in cases:
                if not {item.callspec.id, *item.callspec.id.split("-")}.isdisjoint(mark.args):
                    item.add_marker(pytest.mark.slow)
        for mark in cases[0].iter_markers("every"):
            left = [item for item in cases if not item.get_closest_marker("slow")]
            _thin(left, *mark.args, **mark.kwargs)


def _thin(cases, step, of=None, first=0):
    thinned = [item for item in cases if of is None or of in item.callspec.id.split("-")]
    for k, item in enumerate(thinned):
        if k % step != first and len(thinned) > 1:  # one case that is asked for by its name runs
            item.add_marker(pytest.mark.slow)
