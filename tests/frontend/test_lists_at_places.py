"""Lists, and lists of lists, that are read and changed at places that are computed."""

import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.frontend.syntax.growing_lists import changing
from tests.differences import central_differences
from tests.frontend.random_tables import Writer
from tests.written_programs import defined

X = np.array([0.523, 1.257, 0.311, 0.919, 0.737, 1.131, 0.229, 0.853, 0.413, 1.019])
Y = np.random.default_rng(5).uniform(0.1, 1.4, 13)


def taken_over(x):
    """A copy is changed in a loop, and takes the place of the list."""
    u = list(x)
    for _ in range(20):
        v = u[:]
        for i in range(1, len(x) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = v
    return sum(u[: len(x) // 2])


def exchanged(x):
    """Two lists change places."""
    u, v = list(x), [0.0] * len(x)
    for _ in range(15):
        for i in range(1, len(x) - 1):
            v[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u, v = v, u
    return sum(u) - v[2]


def put_together(x):
    u = [float(t) for t in x]
    for _ in range(15):
        inner = [u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1]) for i in range(1, len(u) - 1)]
        u = [u[0], *inner, u[-1]] if len(u) < 3 else [u[0]] + inner + [u[-1]]
    return sum(u[: len(u) // 2])


def edit_distance(x):
    previous = [float(j) for j in range(len(x) + 1)]
    for i in range(len(x)):
        current = [i + 1.0]
        for j in range(len(x)):
            change = previous[j] + abs(x[i] - x[j] * 0.5)
            current.append(min(previous[j + 1] + 0.61, current[j] + 0.53, change))
        previous = current
    return previous[-1]


def polynomial(x):
    """Coefficients from roots: each list is longer than the one before."""
    p = [1.0]
    for r in x:
        q = [0.0] * (len(p) + 1)
        for k, c in enumerate(p):
            q[k] += c * r
            q[k + 1] += c
        p = q
    return sum(c * c for c in p)


def warped(x):
    """Dynamic time warping, on a table of lists."""
    n, m = len(x), len(x) - 2
    D = [[float("inf")] * (m + 1) for _ in range(n + 1)]
    D[0][0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = abs(x[i - 1] - 1.1 * x[j])
            D[i][j] = cost + min(D[i - 1][j], D[i][j - 1], D[i - 1][j - 1])
    return D[n][m]


def plate(x):
    n = len(x)
    u = [[0.0] * n for _ in range(n)]
    for i in range(n):
        u[i][0] = x[i]
    for _ in range(5):
        v = copy.deepcopy(u)
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                v[i][j] += 0.1 * (
                    u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1] - 4 * u[i][j]
                )
        u = v
    return sum(map(sum, u))


def eliminated(x):
    """Rows change places, by values."""
    n = len(x)
    A = [[x[(i * 3 + j) % n] + (2.0 + i if i == j else 0.0) for j in range(n)] for i in range(n)]
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(A[i][k]) > abs(A[p][k]):
                p = i
        if p != k:
            A[k], A[p] = A[p], A[k]
        for i in range(k + 1, n):
            m = A[i][k] / A[k][k]
            for j in range(k, n):
                A[i][j] -= m * A[k][j]
    total = 0.0
    for i in range(n):
        total += np.log(abs(A[i][i]))
    return total


def shortest_paths(x):
    n = len(x)
    d = [[float("inf")] * n for _ in range(n)]
    for i in range(n):
        d[i][i] = 0.0
        d[i][(i + 1) % n] = x[i]
        d[i][(i * 2 + 2) % n] = x[i] * 1.3 + 0.2
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i][j] = min(d[i][j], d[i][k] + d[k][j])
    return sum(map(sum, d))


def neighbours(x):
    """Lists of whole numbers, of different lengths."""
    n = len(x)
    graph = [[] for _ in range(n)]
    for i in range(n):
        graph[i].append((i * 3 + 1) % n)
        graph[(i * 7 + 2) % n].append(i)
    total = 0.0
    for i in range(n):
        for j in graph[i]:
            total += x[i] * x[j] * (i - j)
    return total


def binned(x):
    """Values decide on which list a number goes."""
    bins = [[] for _ in range(len(x))]
    for i in range(len(x)):
        bins[0 if x[i] < 0.5 else i // 2].append(x[i])
    total = 0.0
    for i, held in enumerate(bins):
        for v in held:
            total += v * v * (i + 1)
        if held:
            total += held[-1]
    return total


def triangle(x):
    """Each list is made from the one before, longer by one, and stays under its name."""
    rows = []
    for i in range(len(x) + 2):
        row = []
        for j in range(i + 1):
            if j in (0, i):
                row.append(1.0 * x[0])
            else:
                row.append(rows[i - 1][j - 1] + rows[i - 1][j] * x[1])
        rows.append(row)
        row[0] += 0.1 * x[2]
    return sum(rows[-1]) + rows[3][0]


def replaced(x):
    n = len(x)
    T = [[0.0] * n for _ in range(n)]
    for i in range(n):
        T[i] = [x[j] * (i + 1) + (T[i - 1][j] if i else 0.0) for j in range(n)]
    return T[-1][-1] + T[2][3]


def by_name(x):
    """A list under a name of its own is the one on the table."""
    n = len(x)
    T = [[0.0] * n for _ in range(n)]
    for i in range(n):
        row = T[i]
        for j in range(n):
            row[j] = x[i] * x[j]
            if j:
                row[j] += T[i][j - 1]
    total = 0.0
    for row in T:
        total += row[-1] + sum(row[:3])
    return total


def one_for_all(x):
    """All items are one list."""
    T = [[0.0] * 3] * len(x)
    for i in range(len(x)):
        T[i][i % 3] += x[i]
    return T[0][0] + 2 * T[1][1]


def shallow(x):
    """A copy of the list has the same lists on it."""
    T = [[0.0] * 3 for _ in range(len(x))]
    U = T[:]
    for i in range(len(x)):
        U[i][i % 3] = x[i]
    T[3][1] = 7.0 * x[0]
    return T[0][0] + 2 * T[1][1] + U[3][1]


def of_one_list(x):
    T = [[0.0] * 3 for _ in range(len(x))]
    for i in range(1, len(x)):
        T[i] = T[0]
        T[i][i % 3] += x[i]
    return T[0][0] + 2 * T[1][1]


def appended_again(x):
    T, row = [], [0.0] * 3
    for i in range(len(x)):
        row[i % 3] += x[i]
        T.append(row)
    return T[0][0] + 2 * T[4][1]


def taken_off(x):
    T, total = [[v, v * 2] for v in x], 0.0
    while len(T) > 2 and total < 4:
        row = T.pop()
        row.append(total)
        total += sum(row)
        T[0].append(total)
    return total + sum(T[0])


def cube(x):
    n = 8
    c = [[[0.0] * n for _ in range(n)] for _ in range(n)]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i][j][k] = x[i] * x[j] + x[k] * (c[i - 1][j][k] if i else 1.0)
    return c[-1][-1][-1] + c[3][2][1]


def as_array(x):
    n = len(x)
    T = [[float(i == j) for j in range(n)] for i in range(n)]
    for i in range(n):
        T[i][i] += x[i]
    a = np.array(T)
    return np.sum(a @ a)


PROGRAMS = [
    taken_over, exchanged, put_together, edit_distance, polynomial, warped, plate, eliminated,
    shortest_paths, neighbours, binned, triangle, replaced, by_name, one_for_all, shallow,
    of_one_list, appended_again, taken_off, cube, as_array,
]  # fmt: skip
UNROLLED = {one_for_all, appended_again}  # which one list has two names there


@pytest.mark.every(2)
@pytest.mark.parametrize("f", PROGRAMS)
def test_all_modes(f):
    fast, reverse, forward = (
        fwdad.jit(g, backend="numpy") for g in (f, fwdad.value_and_grad(f), fwdad.jacfwd(f))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if f in UNROLLED else "error")
        for x in (X, Y, X[::-1].copy()):
            y, J = f(x), fwdad.jacobian(f, x, mode="forward")
            assert_allclose(J, central_differences(f, x, least=0.1), rtol=1e-5, atol=1e-6)
            found = fast(x)
            assert type(found) is type(y)
            assert_allclose(found, y, rtol=1e-12)
            found, gradient = reverse(x)
            assert_allclose(found, y, rtol=1e-12)
            assert_allclose(gradient, J, rtol=1e-10, atol=1e-12)
            assert_allclose(forward(x), J, rtol=1e-10, atol=1e-12)
            for n in (1, 2, 3) if x is X else ():
                v = np.cos(np.arange(n * x.size)).reshape(n, -1)
                assert_allclose(fwdad.jvp(fast, x, v)[1], v @ J, rtol=1e-10, atol=1e-12)
            assert_allclose(fwdad.vjp(fast, x)[1](2.0), 2 * J, rtol=1e-10, atol=1e-12)


@pytest.mark.every(4)
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    pytest.importorskip("numba")
    fast = fwdad.jit(fwdad.value_and_grad(f))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (X, Y):
            y, gradient = fast(x)
            assert_allclose(y, f(x), rtol=1e-12)
            assert_allclose(gradient, fwdad.jacobian(f, x, mode="forward"), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [exchanged, warped, triangle])
def test_second_derivatives(f):
    found = fwdad.jit(fwdad.hessian(f), backend="numpy")(X)
    assert_allclose(found, central_differences(fwdad.grad(f), X), rtol=1e-5, atol=1e-6)


def test_many_at_once():
    batch = np.stack([X, X[::-1], X * 0.9])
    for f in (exchanged, warped, by_name):
        assert_allclose(fwdad.vmap(f)(batch), [f(x) for x in batch], rtol=1e-12)


def chosen(x):
    """Values choose the list that is changed; who has it sees that."""
    a, b = [x[0]] * 9, [2.0] * 9
    c = a if x[1] > 1 else b
    for k in range(9):
        c[k] = x[2] * k
    return a, b


def kept_before(x):
    s = list(x)
    first = s
    for k in range(len(x)):
        s[k] = 0.0
        s = [s[0] + 1, s[1], *s[2:]]
    first[1] = 9.0 * x[0]
    return s[0], first


def table(x):
    T = [[0.0] * 3 for _ in range(len(x))]
    for k in range(len(x)):
        T[k][k % 3] = x[k]
    return T, T[2]


def numpy_table(x):
    T = [[x[i] * x[j] for j in range(9)] for i in range(9)]
    for k in range(9):
        T[k][k] = x[k]
    return T


def ragged(x):
    T = [[] for _ in range(9)]
    for k in range(len(x)):
        T[(k * 2) % 5].append(float(x[k]))
    T.append([1.0])
    return T, T[2]


def ragged_numbers(x):
    T = []
    for k in range(len(x)):
        row = [x[k]]
        for j in range(k % 3):
            row.append(x[j])
        T.append(row)
    return T


def same(a, b):
    """Whether two results are equal; a constant may have the type of the numbers beside it."""
    if isinstance(b, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) in (type(b), np.float64) and a == b


@pytest.mark.parametrize(
    "f", [chosen, kept_before, table, numpy_table, ragged, ragged_numbers], ids=lambda f: f.__name__
)
def test_results(f):
    fast = fwdad.jit(f, backend="numpy")
    for x in (X, X[::-1].copy()):
        assert same(fast(x), f(x)), (fast(x), f(x))


def test_one_tape_for_all_values():
    fast = fwdad.jit(binned, backend="numpy")
    for seed in range(6):
        x = np.random.default_rng(seed).random(20)
        assert_allclose(fast(x), binned(x), rtol=1e-13)
    assert len(fast.specialisations()) == 1


def test_more_numbers_than_there_is_room(monkeypatch):
    def f(x):
        T = [[] for _ in range(9)]
        for k in range(len(x)):
            T[k % 2].append(x[k])
        for k in range(len(x) // 4):
            T.append([x[k]])
        return sum(T[1]) * len(T) + T[-1][0]

    monkeypatch.setattr(changing, "rooms", {})
    fast, slope = fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.grad(f), backend="numpy")
    for n in (12, 600, 20, 5000):
        x = np.linspace(0.1, 1.0, n)
        assert_allclose(fast(x), f(x), rtol=1e-12)
        assert_allclose(slope(x), fwdad.grad(f)(x), rtol=1e-11)


def test_arguments_stay_as_they_are():
    x = X.copy()
    fwdad.jit(fwdad.grad(taken_over))(x)
    assert_array_equal(x, X)


def test_an_unrolled_loop_is_told_once():
    def f(x):
        held = {}
        for i in range(3):
            for j in range(3):
                held[i * 3 + j] = x[i] * x[j]
        return sum(held.values())

    with pytest.warns(fwdad.TraceWarning) as told:
        fwdad.jit(f, backend="numpy")(X)
    assert len({str(w.message) for w in told}) == len(told)


def test_equal_lists():
    def f(x):
        a, b = [0.0] * 9, [1.0] * 9
        for k in range(9):
            a[k] = x[k] if x[0] > 0.4 else 1.0
        c = a[:]
        return a == b, a != b, a == c, [1.0] == a, a[:3] == [1.0, 1.0, 1.0], c != a

    fast = fwdad.jit(f, backend="numpy")
    for x in (X, X * 0.5):
        assert fast(x) == f(x)


def test_out_of_range_is_raised():
    def f(x):
        T = [[0.0] * 4 for _ in range(len(x))]
        for k in range(len(x)):
            T[k][k // 2] = x[k]
        return T[0][0]

    with pytest.raises(IndexError, match="assignment index out of range"):
        fwdad.jit(f, backend="numpy")(X)


def agrees(seed, rows, tmp_path, backend):
    source = Writer(seed, rows).source()
    f = defined(source, tmp_path)
    fast, reverse = (fwdad.jit(g, backend=backend) for g in (f, fwdad.value_and_grad(f)))
    x = X[:5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (9, 11):
            try:
                y = f(x, n)
            except (IndexError, TypeError) as error:
                with pytest.raises((type(error), fwdad.errors.UntraceableError)):
                    fast(x, n)
                continue
            try:
                assert_allclose(fast(x, n), y, rtol=1e-11, err_msg=source)
                found, gradient = reverse(x, n)
            except fwdad.errors.UntraceableError:
                continue  # some are refused: values choose between lists that grow
            J = fwdad.jacobian(f, x, args=(n,), mode="forward")
            assert_allclose(found, y, rtol=1e-11, err_msg=source)
            assert_allclose(gradient, J, rtol=1e-9, atol=1e-10, err_msg=source)


SEEDS = [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(2000, 2150))]


@pytest.mark.every(2)
@pytest.mark.parametrize("rows", [None, "fixed", "ragged", "arrays", "none"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed, rows, tmp_path):
    agrees(seed, rows, tmp_path, "numpy")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [None, "fixed", "ragged", "arrays", "none"])
@pytest.mark.parametrize("seed", range(3000, 3012))
def test_random_programs_compiled(seed, rows, tmp_path):
    pytest.importorskip("numba")
    agrees(seed, rows, tmp_path, "auto")


def copies_of_copies(x):
    """Copies of a list have the same lists on them, unless these are copied, too."""
    T = [[v] for v in x]
    T[0].append(x[1])
    U, V = T[1:], copy.deepcopy(T)
    for k in range(len(x) - 1):
        U[k].append(x[k] * 2)
        V[k][0] = 0.5 * x[0]
        T[(k * 3) % 4][0] += x[2]
    U.append([x[0]])
    return sum(map(sum, T)) + 2 * sum(map(sum, U)) + 3 * sum(map(sum, V)) + len(T) + len(U)


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_copies():
    for g in (copies_of_copies, fwdad.grad(copies_of_copies)):
        fast = fwdad.jit(g, backend="numpy")
        for x in (X, Y):
            assert_allclose(fast(x), g(x), rtol=1e-11)


def test_a_loop_over_a_list_that_it_changes():
    """Python would see the new items."""

    def f(x):
        T = [[v] for v in x]
        T[2].append(1.0)
        U, total = T[:], 0.0
        for k in range(len(x)):
            for v in T[k]:
                total += v
                if len(U[k]) < 3:
                    U[k].append(v * 0.5)
        return total

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = fwdad.jit(f, backend="numpy")(X)
        except fwdad.errors.UntraceableError:
            return
    assert_allclose(found, f(X))


def put_by_choice(x):
    """What is put on a list is one of two lists with names, which values choose."""
    a, b, T = [0.0] * 9, [1.0] * 9, [[0.0] * 9 for _ in range(9)]
    for k in range(9):
        T[k][k] = x[k % 3]
        a[k] = x[1] * k
        b[k] += x[2]
    T.append(a if x[0] > 0.5 else b)
    for k in range(9):
        T[9][k] += 1.0
        a[k] *= 2.0
    return sum(a) + 2 * sum(b) + 3 * sum(T[9])


def put_under_two_names(x):
    a, T = [0.0] * 9, [[0.0] * 9 for _ in range(9)]
    b = a
    for k in range(9):
        T[k][k] = x[k % 3]
        a[k] = x[1] * k
    for k in range(9):
        b = a if x[k % 3] > 0.3 else b
    T[3] = b
    for k in range(9):
        T[3][k] += 1.0
        a[k] *= 2.0
    return sum(a) + 2 * sum(b) + 3 * sum(T[3])


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
@pytest.mark.parametrize("f", [put_by_choice, put_under_two_names])
def test_a_list_that_has_a_name(f):
    fast = fwdad.jit(f, backend="numpy")
    for x in (X, X * 0.5):
        try:
            found = fast(x)
        except fwdad.errors.UntraceableError:
            continue
        assert_allclose(found, f(x), rtol=1e-12)


def one_or_two(x):
    a, b = [0.0] * 12, [1.0] * 12
    for k in range(12):
        a[k] = x[k % 3]
        if x[0] > 0.5:
            b = a
    return 1.0 * (a is b) + a[0], 2.0 * (b is not a)


def which_row(x):
    T = [[0.0] * 12 for _ in range(12)]
    r, n = T[3], 0
    for k in range(12):
        T[k][k] = x[k % 3]
    for row in T:
        if row is r:
            n += 1
    return n + 0.0 * x[0], r in T


def which_row_apart(x):
    T = [[v] for v in x]
    T.append([x[0]])
    r, n = T[3], 0
    for k in range(len(T)):
        T[k].append(x[k % 3])
        if T[k] is r:
            n += 1
    return n + x[1] * 0.0


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_whether_two_lists_are_one():
    for f in (one_or_two, which_row, which_row_apart):
        fast = fwdad.jit(f, backend="numpy")
        for x in (X, X * 0.5):
            assert fast(x) == f(x)
