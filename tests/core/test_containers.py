"""Tuples and lists that are made anew."""

import time

from fwdad.core.containers import of_class


class Doubled(tuple):
    __slots__ = ()

    def __new__(cls, x, y):
        return super().__new__(cls, (2 * x, y))


def test_of_class():
    """No ``__new__`` of Python's is asked, but that of C's classes is."""
    assert of_class(Doubled, [1, 2]) == (1, 2)
    assert type(of_class(Doubled, [1, 2])) is Doubled
    assert of_class(list, (1, 2)) == [1, 2]
    assert type(of_class(tuple, [])) is tuple
    made = of_class(time.struct_time, range(9))
    assert type(made) is time.struct_time
    assert made.tm_sec == 5
