"""Every rule backwards on a tape: the cases of tests/rules, against the rule pushed forward.

For cotangents y_bar and directions x_dot, <y_bar, J x_dot> = <x_bar, x_dot> under Re<., .>.
"""

import warnings

import numpy as np
import pytest

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.check import check_program
from fwdad.ir.ops import Program, Value
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import ArrayType
from fwdad.rules.core.containers import walk
from fwdad.testing.structure import is_leaf
from fwdad.transforms.forward import push_forward
from fwdad.transforms.reverse.pull import pull_block
from tests.tiers import every
from tests.transforms.forward.rule_cases import OnTape, _Place
from tests.transforms.forward.test_rules import ROWS, is_refused


def pulled(held, pattern, bars):
    """A program of the cotangents of some leaves, and the arrays that it takes."""
    recorder = Recorder()
    constants = []

    def capture(a):
        value = Value(ArrayType(a.dtype, a.shape))
        constants.append((value, a))
        return Symbol(value, recorder)

    recorder.capture = capture
    block = held.tape.program.block
    given = [Symbol(Value(p.type, p.name), recorder) for p in block.params]
    for symbol in given:
        recorder.lengths.measure(symbol.value)
    places = {held.where[path] for path in pattern}
    active = [k in places for k in range(len(given))]
    marks = []

    def seeds(leaves):
        made = [None if b is None else capture(b) for b in bars]
        marks.extend(made)
        return [
            None if m is None else (m if y.is_array else recorder.load(m, ()))
            for m, y in zip(made, map(recorder.as_symbol, leaves), strict=True)
        ]

    _, found = pull_block(recorder, block, given, active, seeds)
    program = Program("pulled", recorder.block)
    kept = [held.where[path] for path in pattern]
    recorder.block.results = [0.0 if found[k] is None else recorder.operand(found[k]) for k in kept]
    recorder.block.params = [*(s.value for s in given), *(v for v, _ in constants)]
    program.quiet = True
    program.written = []
    check_program(program)
    return program, [a for _, a in constants]


def check(held, pattern):
    trial = held.trial
    rng = np.random.default_rng(1)
    n = 2
    want = trial.run_at(pattern, 0, n)
    count = len(held.tape.program.block.results)
    places = {
        path: x.k
        for path, x in walk(
            held.tape.rebuild([_Place(k) for k in range(count)], held.flat.containers)
        )
        if isinstance(x, _Place)
    }
    bars = [None] * count
    for path, lanes in want.items():
        y = np.asarray(lanes)[0]
        bar = rng.uniform(-1, 1, y.shape)
        if y.dtype.kind == "c":
            bar = bar + 1j * rng.uniform(-1, 1, y.shape)
        bars[places[path]] = np.array(bar, dtype=y.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program, constants = pulled(held, pattern, bars)
        leaves = held.tape.leaves(list(held.flat.leaves))
        pull = compiled(numpy_source(program))
        found = pull(*leaves, *constants)
        is_bar = [any(a is b for b in bars) for a in constants]
        check_many(program, pull, (leaves, constants, is_bar), 1e-4 if trial.single else 1e-12)
    trial.restore()
    for lane in range(n):
        left = size = right = 0.0
        for path, lanes in want.items():
            product = np.conj(bars[places[path]]) * np.asarray(lanes)[lane]
            left += np.sum(product.real)
            size += np.sum(np.abs(product))
        for path, x_bar in zip(pattern, found, strict=True):
            x = held.flat.leaves[held.where[path]]
            assert np.ndim(x_bar) == 0 or np.shape(x_bar) == np.shape(x), trial.names(pattern)
            if np.asarray(x).dtype.kind != "c":
                assert np.asarray(x_bar).dtype.kind != "c", trial.names(pattern)
            product = np.conj(x_bar) * trial.seeds[path][lane]
            right += np.sum(product.real)
            size += np.sum(np.abs(product))
        rtol = 1e-4 if trial.single else 1e-10
        np.testing.assert_allclose(
            right, left, rtol=0, atol=rtol * max(size, 1e-300), err_msg=f"{trial.names(pattern)}"
        )


def check_many(program, pull, given, rtol):
    """Several cotangents at once, pushed through the reverse pass as lanes, and one by one."""
    leaves, constants, is_bar = given
    rng = np.random.default_rng(2)
    lanes = [
        np.stack([b, b * rng.uniform(0.5, 1), b * 0])
        for b, wanted in zip(constants, is_bar, strict=True)
        if wanted
    ]
    pushed, more = push_forward(program, 3, [False] * len(leaves) + is_bar)
    made = compiled(numpy_source(pushed))(*leaves, *constants, *lanes, *more)
    made = made[len(made) // 2 :]
    for k in range(3):
        own = iter(lanes)
        bars = [next(own)[k] if w else a for a, w in zip(constants, is_bar, strict=True)]
        for x_bar, of_lanes in zip(pull(*leaves, *bars), made, strict=True):
            scale = max(np.max(np.abs(x_bar), initial=0), 1e-300)
            np.testing.assert_allclose(of_lanes[k], x_bar, rtol=0, atol=rtol * scale)


@pytest.mark.parametrize("case", every(3, ROWS))
def test_a_rule_backwards_agrees_with_the_rule(case):
    if is_refused(case):
        pytest.skip("cannot be traced")
    held = OnTape(case)
    for pattern in held.trial.patterns():
        if not any(is_leaf(y) for _, y in walk(held.trial.y)):
            continue
        check(held, pattern)
