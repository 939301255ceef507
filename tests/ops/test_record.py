"""The records of functions: what they say is what NumPy does, and nobody else says it."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import fwdad
from fwdad.ops import Layout, Memory, functions_with, record_of

PACKAGE = Path(fwdad.__file__).parent
X = np.arange(24.0).reshape(2, 3, 4)
S = np.array([[2.0, 1.0], [1.0, 3.0]])

# -- no module lists functions


def names(node):
    """The functions of NumPy's that an expression names: ``np.sum``, ``np.linalg.inv``."""
    if isinstance(node, ast.Attribute):
        text = ast.unparse(node)
        f = np
        for part in text.split(".")[1:]:
            f = getattr(f, part, None)
        return (
            {text} if text.startswith("np.") and callable(f) and not isinstance(f, type) else set()
        )
    return set().union(*map(names, ast.iter_child_nodes(node)), set())


def is_fact(value):
    """Whether the value of an entry says something of a function, and is no handler of it."""
    if isinstance(value, (ast.Tuple, ast.Set, ast.List)):
        return all(map(is_fact, value.elts))
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Attribute) and names(value))


def lists_functions(value):
    """Whether an expression lists functions: a set of them, or a table of facts about them.

    A table of what a module itself does for each function is none: its values are the module's.
    """
    if isinstance(value, ast.Call) and value.args:  # frozenset({…})
        return any(lists_functions(a) for a in value.args)
    if isinstance(value, ast.BinOp):
        return lists_functions(value.left) or lists_functions(value.right)
    if isinstance(value, (ast.Set, ast.List, ast.Tuple)):
        return len(names(ast.Tuple(value.elts))) >= 3
    if isinstance(value, ast.Dict):
        plain = [
            key
            for key, v in zip(value.keys, value.values, strict=True)
            if key is not None and is_fact(v)
        ]
        return len(names(ast.Tuple(plain))) >= 3
    return False


def listing(source):
    """The lines of a module that list functions."""
    lines = []
    for node in ast.parse(source).body:
        value = None
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            value = node.value
        elif isinstance(node, ast.For):
            value = node.iter
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            value = node.value
        if value is not None and lists_functions(value):
            lines.append(node.lineno)
    return lines


def test_no_module_lists_functions():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).as_posix()
        if not room.startswith(("ops/", "rules/", "tangents/laws/")):
            lines = listing(path.read_text(encoding="utf-8"))
            if lines:
                found[room] = lines
    assert found == {}, "say it in fwdad/ops"


def test_a_list_is_found():
    """The test above can fail."""
    assert listing("A = {np.sum, np.prod, np.mean}") == [1]
    assert listing("A = frozenset((np.sum, np.prod, np.mean))") == [1]
    assert listing("A = {np.sum: 1, np.prod: 2, np.mean: 3}") == [1]
    assert listing("for f in (np.sum, np.prod, np.mean):\n    pass") == [1]
    assert listing("A = {np.sum: _sum, np.prod: _prod, np.mean: lambda x: np.mean(x)}") == []
    assert listing("A = {np.float64, np.ndarray, np.generic}") == []


# -- what the records say


def name_of(f):
    return f"{getattr(f, '__module__', '')}.{getattr(f, '__name__', f)}"


def those(holds):
    return pytest.mark.parametrize("f", sorted(functions_with(holds), key=name_of), ids=name_of)


ARGUMENTS = {
    np.expand_dims: (1,), np.swapaxes: (0, 2), np.moveaxis: (0, 2), np.rollaxis: (2,),
    np.broadcast_to: ((5, 2, 3, 4),), np.split: (2,), np.array_split: (2,), np.hsplit: (3,),
    np.vsplit: (2,), np.dsplit: (2,), np.lib.stride_tricks.sliding_window_view: ((2,), -1),
    np.reshape: ((6, 4),), np.full_like: (7.0,), np.repeat: (2,), np.roll: (1,), np.tile: (2,),
}  # fmt: skip


@those(lambda record: record.memory is Memory.VIEW or record.memory is Memory.IF_CONTIGUOUS)
def test_views(f):
    made = f(X, *ARGUMENTS.get(f, ()))
    parts = made if isinstance(made, (list, tuple)) else [made]
    assert all(np.shares_memory(part, X) for part in parts)
    record = record_of(f)
    assert record.several == isinstance(made, (list, tuple))
    if record.memory is Memory.IF_CONTIGUOUS:
        assert not np.shares_memory(f(X.T, *ARGUMENTS.get(f, ())), X)
    elif record.read_only and not record.several:
        assert not made.flags.writeable
    if record.rearranges:
        assert sorted(made.ravel()) == sorted(X.ravel())
    if record.layout is Layout.SAME:
        assert set(made.strides) == set(X.strides)


@those(lambda record: record.moves)
def test_what_moves_elements(f):
    made = f(X, *ARGUMENTS.get(f, ()))
    assert set(np.ravel(made)) <= set(X.ravel())
    assert record_of(f).may_be_view or not np.shares_memory(made, X)


@those(lambda record: (record.fill is not None or record.shape_only) and not record.own)
def test_what_is_filled(f):
    record = record_of(f)
    of = (X,) if record.shape_only else (X.shape,)
    made = f(*of, *ARGUMENTS.get(f, ()))
    assert made.shape == X.shape
    if f in (np.empty, np.empty_like):
        return
    assert np.all(made == (7.0 if record.fill is None else record.fill))


@those(lambda record: record.reduction or record.accumulation)
def test_reductions(f):
    record = record_of(f)
    if record.reduction:
        assert np.isclose(f(X[1]), record.reduction.reduce(X[1], axis=None))
        start = record.start
        assert start is None or f(np.array([start, 3.0])) == 3.0
    else:
        assert np.allclose(f(X[1], axis=1), record.accumulation.accumulate(X[1], axis=1))


@those(lambda record: isinstance(record.stands_for, np.ufunc) and not record.own)
def test_operators_stand_for_ufuncs(f):
    a, b = np.array([[5, 2], [3, 4]]), np.array([[1, 2], [2, 1]])
    args = (a, b)[: record_of(f).stands_for.nin]
    if f.__name__ == "not_":  # Python's is of one truth value
        args = (np.bool_(True),)
    assert np.all(np.equal(f(*args), record_of(f).stands_for(*args)))


@those(lambda record: record.libm)
def test_names_of_the_c_library(f):
    args = (0.4, 0.7)[: f.nin]
    name = record_of(f).libm
    by_c = getattr(math, name, {"exp2": lambda x: 2.0**x, "cbrt": lambda x: x ** (1 / 3)}.get(name))
    x = 1.4 if name == "acosh" else args[0]
    assert np.isclose(f(x, *args[1:]), by_c(x, *args[1:]), rtol=1e-14)


@those(lambda record: record.on_bools)
def test_ufuncs_of_bits_on_truth_values(f):
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert np.array_equal(f(a, b), record_of(f).on_bools(a, b))


@those(lambda record: record.square)
def test_functions_of_square_matrices(f):
    rest = {np.linalg.solve: (S,), np.linalg.matrix_power: (2,)}.get(f, ())
    f(S, *rest)
    with pytest.raises(np.linalg.LinAlgError):
        f(S[:1], *rest)


def test_unknown_functions():
    class Unhashable:
        __hash__ = None

    assert record_of(Unhashable()).memory is Memory.UNKNOWN
    assert record_of(lambda x: x).memory is Memory.UNKNOWN
