"""Tangents that enter by a public door, and those that rules return: what does not fit raises."""

import numpy as np
import pytest

import fwdad
from fwdad import ZERO, Chunk
from fwdad.eager_reverse.run import run_recorded
from fwdad.evaluation.arguments import Arguments

X = np.array([1.0, 2.0])


def product(x, y):
    return x * y


@fwdad.frule(product)
def product_frule(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return x * y, y * x_dot + x * y_dot


def by_source(x, y):
    return x * y


def lanes(n, *shape, dtype=float):
    return Chunk(np.ones((n, *shape), dtype))


DOORS = {
    "build_frule of a rule": lambda p, t: fwdad.build_frule(product)(p, t),
    "build_frule of a source": lambda p, t: fwdad.build_frule(by_source)(p, t),
    "build_frule of NumPy's": lambda p, t: fwdad.build_frule(np.multiply)(p, t),
    "call_rule": lambda p, t: fwdad.call_rule(product, p, t),
}
WRONG = {
    "an array": (np.ones(2), lanes(3, 2)),
    "lanes that are no Chunk": (np.ones((3, 2)), lanes(3, 2)),
    "a number": (lanes(3, 2), 1.0),
    "None": (lanes(3, 2), None),
    "a list": (lanes(3, 2), [lanes(3, 2)]),
    "other widths": (lanes(3, 2), lanes(2, 2)),
    "a width of one": (lanes(3, 2), lanes(1, 2)),
    "one first": (lanes(1, 2), lanes(3, 2)),
    "another shape": (lanes(3, 2), lanes(3, 5)),
    "a shape that broadcasts": (lanes(3, 2), lanes(3, 1)),
    "a scalar's": (lanes(3, 2), lanes(3)),
    "a rank too much": (lanes(3, 2), lanes(3, 1, 2)),
    "one of two": (lanes(3, 2),),
    "none at all": (),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("door", DOORS)
def test_tangents_that_are_given(door, wrong):
    if door == "call_rule" and len(WRONG[wrong]) < 2:
        pytest.skip("tangents left out are ZERO there")
    with pytest.raises(fwdad.errors.ChunkMismatchError) as caught:
        DOORS[door]((X, X), WRONG[wrong])
    assert caught.value.filename == __file__


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_tangents_that_fit(door, n):
    v = np.random.default_rng(n).normal(size=(n, 2))
    y, y_dot = DOORS[door]((X, 3 * X), (Chunk(v), ZERO))
    np.testing.assert_array_equal(y, 3 * X * X)
    np.testing.assert_array_equal(y_dot.lanes, v * 3 * X)


def test_scalars_of_different_widths():
    """They were added up as terms of one sum, and the first width was taken."""
    for f in (by_source, lambda a, b: np.sin(a) * b, lambda a, b: np.array([a, b])):
        for n, m in ((3, 2), (1, 3), (3, 1)):
            with pytest.raises(fwdad.errors.ChunkMismatchError, match=f"{n} lanes, and {m}"):
                fwdad.build_frule(f)((1.0, 2.0), (lanes(n), lanes(m)))


def test_nested_tangents():
    def total(parts):
        return parts["a"] * parts["b"][0]

    rule = fwdad.build_frule(total)
    primals = ({"a": X, "b": [2 * X]},)
    _, y_dot = rule(primals, ({"a": lanes(2, 2), "b": [ZERO]},))
    np.testing.assert_array_equal(y_dot.lanes, np.ones((2, 2)) * 2 * X)
    for wrong in (
        {"a": lanes(2, 2), "b": [lanes(3, 2)]},
        {"a": lanes(2, 2), "b": [None]},
        {"a": lanes(2, 2), "b": [lanes(2, 3)]},
        {"a": lanes(2, 2), "b": []},
        {"a": lanes(2, 2), "c": [ZERO]},
        [lanes(2, 2), [ZERO]],
    ):
        with pytest.raises((fwdad.errors.ChunkMismatchError, fwdad.errors.SeedError)):
            rule(primals, (wrong,))


# -- what chunks are made of, and do


@pytest.mark.parametrize("wrong", [None, 1.0, "ab", ["a"], [[1.0], [2.0, 3.0]]])
def test_lanes_that_are_none(wrong):
    with pytest.raises(fwdad.errors.ChunkMismatchError):
        Chunk(wrong)


@pytest.mark.parametrize(
    "meet",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: 2.0 * a + b,
        lambda a, b: X * a - b,
        np.add,
        np.subtract,
        lambda a, b: np.where([True, False], a, b),
        lambda a, b: np.concatenate([a, b]),
        lambda a, b: np.stack([a, b]),
        fwdad.add_tangents,
        fwdad.inner_product,
    ],
)
@pytest.mark.parametrize("widths", [(3, 1), (1, 3), (3, 2)])
def test_widths_do_not_broadcast(meet, widths):
    n, m = widths
    with pytest.raises(fwdad.errors.ChunkMismatchError):
        meet(lanes(n, 2), lanes(m, 2))


@pytest.mark.parametrize(
    ("a", "b"),
    [(lanes(3, 1), lanes(3, 3)), (X, None), (X, np.ones(1)), (lanes(3, 2), X), (1.0, X)],
)
def test_sums_of_tangents_of_one_value(a, b):
    for p, q in ((a, b), (b, a)):
        with pytest.raises((fwdad.errors.ChunkMismatchError, fwdad.errors.SeedError)):
            fwdad.add_tangents(p, q)


@pytest.mark.parametrize("wrong", [None, 1.0, np.ones((3, 2))])
def test_map_lanes_of_no_tangent(wrong):
    with pytest.raises(fwdad.errors.ChunkMismatchError, match="takes a Chunk or ZERO"):
        fwdad.map_lanes(np.sin, wrong)
    assert fwdad.map_lanes(np.sin, ZERO) is ZERO


def test_map_lanes_of_other_shapes():
    with pytest.raises(fwdad.errors.ChunkMismatchError, match=r"\(1,\), \(2,\)"):
        fwdad.map_lanes(lambda lane: np.ones(int(lane)), Chunk(np.array([1.0, 2.0])))
    with pytest.raises(fwdad.errors.ChunkMismatchError, match="None"):
        fwdad.map_lanes(lambda lane: None, lanes(3, 2))


@pytest.mark.parametrize("method", ["matvec", "rmatvec", "matmat", "rmatmat"])
@pytest.mark.parametrize("wrong", [np.ones(3), None, 1.0, "a", np.ones((2, 1, 1)), 1j * X, ZERO])
def test_vectors_of_an_operator(method, wrong):
    _, operator = fwdad.linearize(np.sin, X)
    with pytest.raises(fwdad.errors.SeedError) as caught:
        getattr(operator, method)(wrong)
    assert caught.value.filename == __file__


# -- what rules return


def recorded(f, x):
    run = run_recorded(f, Arguments((x,), {}, (0,)))
    return run.pull([np.ones(2)])[0]


MODES = {
    "jvp": lambda f, x: fwdad.jvp(f, x, np.ones((3, 2))),
    "jacobian": lambda f, x: fwdad.jacobian(f, x, mode="forward"),
    "ragged chunks": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=1),
    "linearize": lambda f, x: fwdad.linearize(f, x)[1].matmat(np.ones((2, 3))),
    "pullback": lambda f, x: fwdad.vjp(f, x)[1](np.ones(2)),
    "recorded": recorded,
    "grad": lambda f, x: fwdad.grad(lambda x: np.sum(f(x)))(x),
    "traced jacfwd": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "traced grad": lambda f, x: fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))), backend="numpy")(x),
    "hessian": lambda f, x: fwdad.hessian(lambda x: np.sum(f(x)), x),
}
RETURNED = {
    "no pair": lambda x, t: 2 * t,
    "three": lambda x, t: (2 * x, 2 * t, None),
    "an array": lambda x, t: (2 * x, 2 * x),
    "None": lambda x, t: (2 * x, None),
    "a number": lambda x, t: (2 * x, 1.0),
    "a tuple": lambda x, t: (2 * x, (2 * t,)),
    "another shape": lambda x, t: (2 * x, 2 * t[:1]),
    "a scalar's": lambda x, t: (2 * x, 2 * t[0]),
    "a rank too much": lambda x, t: (2 * x, 2 * t[None]),
    "for an integer": lambda x, t: (np.array([1, 2]), 2 * t),
    "complex": lambda x, t: (2 * x, 2j * t),
}
WIDTHS = {"7 lanes": 7, "no lanes": 0}


@pytest.mark.parametrize("wrong", RETURNED)
@pytest.mark.parametrize("mode", MODES)
def test_tangents_that_rules_return(mode, wrong):
    def double(x):
        return 2 * x

    @fwdad.frule(double)
    def double_frule(primals, tangents):
        return RETURNED[wrong](primals[0], tangents[0])

    with pytest.raises(fwdad.errors.ChunkMismatchError) as caught:
        MODES[mode](lambda x: double(x), X)
    assert "double (" in caught.value.msg
    assert "test_contract.py:" in caught.value.msg
    assert caught.value.filename == __file__


@pytest.mark.parametrize("n", [7, 1, 0])
@pytest.mark.parametrize("mode", ["jvp", "linearize", "traced jacfwd"])
def test_another_number_of_lanes(mode, n):
    def double(x):
        return 2 * x

    @fwdad.frule(double)
    def double_frule(primals, tangents):
        return 2 * primals[0], Chunk(np.ones((n, 2)))

    if mode == "traced jacfwd":
        assert n != 2
    with pytest.raises(
        fwdad.errors.ChunkMismatchError, match=f"{n} lanes; its arguments have [23]"
    ):
        MODES[mode](lambda x: double(x), X)


def test_lengths_that_a_tape_does_not_know():
    """A tangent that is as long as another array is told from the value's when the tape runs."""

    def plus(x, y):
        return x + np.sum(y)

    @fwdad.frule(plus)
    def plus_frule(primals, tangents):
        return plus(*primals), tangents[1]

    f = fwdad.jit(fwdad.jacfwd(lambda x: plus(x, x[1:])), backend="numpy")
    with pytest.raises(fwdad.errors.ChunkMismatchError, match="returns a tangent"):
        f(X)
    with pytest.raises(fwdad.errors.ChunkMismatchError, match="returns a tangent"):
        f(np.ones(5))


def test_tangents_of_several_values():
    def parts(x):
        return {"a": 2 * x, "b": (x * x, 3)}

    answers = [
        ({"a": 2 * X, "b": (X * X, 3)}, {"a": ZERO}),
        ({"a": 2 * X, "b": (X * X, 3)}, (ZERO, ZERO)),
        ({"a": 2 * X, "b": (X * X, 3)}, {"a": ZERO, "b": (ZERO,)}),
        ({"a": 2 * X, "b": (X * X, 3)}, {"a": ZERO, "b": (ZERO, lanes(1))}),
    ]
    for answer in answers:

        @fwdad.frule(parts, override=True)
        def parts_frule(primals, tangents, answer=answer):
            return answer

        with pytest.raises(fwdad.errors.ChunkMismatchError, match="parts"):
            fwdad.jvp(parts, X, X)


# -- what transposes and pullbacks return


@pytest.mark.parametrize(
    "wrong",
    [
        lambda y_bar, a: y_bar[:1],
        lambda y_bar, a: 1j * y_bar,
        lambda y_bar, a: None,
        lambda y_bar, a: 3.0,
        lambda y_bar, a: Chunk(np.ones((5, 2))),
    ],
)
def test_cotangents_that_transposes_return(wrong):
    def double(x):
        return 2 * x

    fwdad.linear(double)
    fwdad.transpose(double)(wrong)
    for mode in ("pullback", "recorded"):
        with pytest.raises(
            fwdad.errors.ChunkMismatchError, match=r"the transpose of .*double"
        ) as caught:
            MODES[mode](lambda x: double(x), X)
        assert "test_contract.py:" in caught.value.msg


@pytest.mark.parametrize(
    "wrong",
    [
        lambda bar: bar,
        lambda bar: (bar, bar),
        lambda bar: (bar[:1],),
        lambda bar: (1j * bar,),
        lambda bar: ([1.0, 2.0],),
        lambda bar: ("ab",),
        lambda bar: (lanes(1, 2),),
        lambda bar: (lanes(3, 2),),
    ],
)
@pytest.mark.parametrize("mode", ["pullback", "recorded", "grad", "traced grad"])
def test_cotangents_that_pullbacks_return(mode, wrong):
    def double(x):
        return 2 * x

    @fwdad.rrule(double)
    def double_rrule(primals):
        return 2 * primals[0], wrong

    with pytest.raises(
        fwdad.errors.ChunkMismatchError, match=r"the pullback of the rrule of .*double"
    ):
        MODES[mode](lambda x: double(x), X)


# -- arguments that are dicts


DICT_MODES = {
    "forward": lambda f, x: fwdad.jacobian(f, x, mode="forward"),
    "grad": lambda f, x: fwdad.grad(f)(x),
    "pullback": lambda f, x: fwdad.vjp(f, x)[1](1.0),
    "traced jacfwd": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "traced grad": lambda f, x: fwdad.jit(fwdad.grad(f), backend="numpy")(x),
}


@pytest.mark.parametrize("mode", DICT_MODES)
@pytest.mark.parametrize("whole", [False, True])
def test_tangents_of_dicts(mode, whole):
    """The rule has them: a tape took them for zero, and forward mode went past the rule."""

    def weighted(parts, c):
        return np.sum(parts["w"] ** 2 * parts["rest"][0]) * c

    @fwdad.frule(weighted)
    def weighted_frule(primals, tangents):
        (parts, c), (parts_dot, c_dot) = primals, tangents
        if whole and float(c) > 100:
            raise ValueError
        w, rest = parts["w"], parts["rest"][0]
        if isinstance(parts_dot, dict):
            w_dot, rest_dot = parts_dot["w"], parts_dot["rest"][0]
        else:
            w_dot = rest_dot = ZERO
        y_dot = (
            10.0 * np.sum(2 * w * rest * w_dot + w**2 * rest_dot) * c
        )  # no derivative of its own
        return np.sum(w**2 * rest) * c, y_dot + np.sum(w**2 * rest) * c_dot

    def f(x):
        return weighted({"w": x, "rest": [x * 3.0], "name": "a"}, x[0])

    want = 10.0 * 9.0 * X**2 * X[0] + np.array([3.0 * np.sum(X**3), 0.0])
    np.testing.assert_allclose(DICT_MODES[mode](f, X), want, rtol=1e-13)
