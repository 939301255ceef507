"""Which of many cases are in the short tier: the others are marked slow."""

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
