"""Builtins that work on duals by themselves, through the duals' own methods."""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import operator
import sys

import numpy as np

TRANSPARENT = {
    abs, divmod, pow, round, repr, str, format, print, len, iter, next, bool, hash, id,
    callable,
    isinstance, issubclass, tuple, list, dict, set, frozenset, range, slice, zip,
    enumerate, reversed, sorted, min, max, sum, any, all, type, object, super, ascii,
    operator.itemgetter, operator.attrgetter, operator.methodcaller, operator.index,
    math.floor, math.ceil, math.trunc, itertools.chain, itertools.product, itertools.repeat,
    itertools.islice, itertools.zip_longest, itertools.count, itertools.cycle, itertools.tee,
    itertools.combinations, itertools.permutations, sys.getsizeof, sys.getrefcount,
    bisect.bisect, bisect.bisect_left, bisect.bisect_right, heapq.nlargest, heapq.nsmallest,
    np.ndim, np.shape, operator.truth, operator.not_, operator.is_, operator.is_not,
}  # fmt: skip
