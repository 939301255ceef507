"""The tables of cases of the rules, and each case as a program that is pushed forward."""

import ast
import importlib
import itertools
import linecache
import warnings
from pathlib import Path

import numpy as np

from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.trace import trace_flat
from fwdad.ir.ops import Value
from fwdad.ir.types import number_type
from fwdad.rules.core.containers import walk
from fwdad.rules.core.registry import find_rule, function_name, import_pending
from fwdad.testing.structure import is_leaf
from fwdad.testing.trial import make_trial
from fwdad.transforms.forward import push_forward
from fwdad.transforms.forward.opaque_call import PushWhole

RULES = Path(__file__).parents[2] / "rules"
_count = itertools.count()


def all_cases():
    """Every row of the CASES tables of tests/rules, with the file that it stands in."""
    import_pending()
    for path in sorted(RULES.glob("test_*.py")):
        if path.stem != "test_registry":
            module = importlib.import_module(f"tests.rules.{path.stem}")
            for case in getattr(module, "CASES", ()):
                yield path.stem.removeprefix("test_"), case


class OnTape:
    """A case's call as a traced program of its arrays and floating-point numbers.

    What is no array and holds no float is written into the program's source, as users write it.
    """

    def __init__(self, case, widths=(1, 2, 3)):
        self.function = case.function
        rng = np.random.default_rng(0)
        self.trial = make_trial(
            case.function, case.args, dict(case.options), widths, rng, case.check.get("argnums")
        )
        rule = find_rule(case.function)
        binder = rule.binder if rule is not None and rule.kind != "constant" else None
        self.names = binder.primals if binder is not None else ()
        met = {}
        named = {key: _apart(x, met) for key, x in case.options.items() if key in self.names}
        given = {self._primal(binder, k) for k in range(len(case.args))}
        for k, *_ in self.trial.paths:  # parameters that have numbers for defaults
            if k not in given and binder is not None and k < len(self.names):
                named.setdefault(self.names[k], self.trial.primals[k])
        self.order = [k for k, x in enumerate(case.args) if not _is_static(x)]
        program = _written(case, self.order, named)
        given = tuple(_apart(case.args[k], met) for k in self.order)
        self.flat = Flattened((given, named), {})
        self.where = {}
        for k, path in enumerate(_leaf_paths((given, named))):
            place = self._primal(binder, self.order[path[1]]) if path[0] == 0 else None
            head = self.names.index(path[1]) if path[0] else place
            self.where[(head, *path[2:])] = k
        self.tape = trace_flat(program, self.flat)

    def _primal(self, binder, position):
        """The primal that a positional argument of the call is."""
        if binder is None:
            return position
        if position >= len(binder.positional):
            return len(self.names) + position - len(binder.positional)
        name = binder.positional[position]
        return self.names.index(name) if name in self.names else None

    def push(self, pattern, n):
        """The program that pushes n lanes of some leaves, and the constants that it takes."""
        seeds = [False] * len(self.tape.program.block.params)
        for path in pattern:
            seeds[self.where[path]] = True
        return push_forward(self.tape.program, n, seeds)

    def call(self, pattern, n):
        """The program that pushes n lanes of some leaves, and what it is called with."""
        program, constants = self.push(pattern, n)
        lanes = {path: self.trial.seeds[path][:n].copy() for path in pattern}
        order = sorted(pattern, key=self.where.__getitem__)
        leaves = self.tape.leaves(list(self.flat.leaves))
        answers = program.block.results
        for k, y in enumerate(self.tape.program.block.results):
            if isinstance(y, Value) and y.type.dtype.kind not in "fc":
                answers[k - len(answers) // 2] = 0.0  # nobody asks for the lanes of ints
        return program, [*leaves, *[lanes[path] for path in order], *constants]

    def places(self):
        """Which result of the program each leaf of what the function returns is."""
        count = len(self.tape.program.block.results)
        answer = self.tape.rebuild([_Place(k) for k in range(count)], self.flat.containers)
        return {path: x.k for path, x in walk(answer) if isinstance(x, _Place)}

    def check(self, pattern, n):
        """Compare values and lanes with the rule's; return whether a rule ran as one operation."""
        program, args = self.call(pattern, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the primal's own, which its tests look at
            self.compare(compiled(numpy_source(program))(*args), pattern, n)
        return any(isinstance(getattr(op, "function", None), PushWhole) for op in program.walk())

    def compare(self, found, pattern, n, atol=0.0, single=1e-12):
        """Compare what the program has returned, values and lanes, with the rule's.

        ``single`` is how far values of single precision may be apart.
        """
        trial = self.trial
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trial.restore()
            want = trial.run_at(pattern, 0, n)
        count = len(self.tape.program.block.results)
        places = self.places()
        where = f"N = {n}, active {trial.names(pattern)}"
        for path, y in walk(trial.y):
            if path in places:
                _compare_value(found[places[path]], y, where, self.function, single)
            else:
                assert not is_leaf(y), f"{where}: result{path} is no result of the program"
        got = {path: np.asarray(found[count + places[path]]) for path in want}
        rtol = 1e-5 if trial.single else 1e-12
        trial.compare("on the tape", got, want, rtol, where, "", atol)


class _Place:
    """Stands for one result of a program."""

    def __init__(self, k):
        self.k = k


# Real or complex by the rank of the matrix; on a tape complex, if the matrix is.
WIDENED = {"scipy.linalg.lstsq"}


def _compare_value(got, y, where, function, single):
    widened = function_name(function) in WIDENED and isinstance(y, np.generic)
    assert type(got) is (np.complex128 if widened and got.dtype.kind == "c" else type(y)), where
    assert np.shape(got) == np.shape(y), where
    if isinstance(y, (np.ndarray, np.generic)):
        wide = np.result_type(y, np.complex64) if function_name(function) in WIDENED else y.dtype
        assert got.dtype in (y.dtype, wide), where
    if not isinstance(y, (str, type(None))):
        narrow = getattr(y, "dtype", None) in (np.float32, np.complex64)
        rtol = single if narrow else 1e-12
        np.testing.assert_allclose(got, y, rtol=rtol, atol=1e-300, err_msg=where)


def _apart(x, met):
    """A value without an array that has been met before, which would be one leaf of the tape."""
    if type(x) is np.ndarray:
        again = id(x) in met
        met[id(x)] = x
        return x.copy() if again else x
    return type(x)([_apart(item, met) for item in x]) if type(x) in (list, tuple) else x


def _is_static(x):
    return not any(is_leaf(v) or isinstance(v, np.ndarray) for _, v in walk(x))


def _leaf_paths(x, path=()):
    """Where the leaves of a traced program's arguments stand, in their order."""
    if number_type(x) is not None or isinstance(x, np.ndarray):
        yield path
    elif isinstance(x, (tuple, list, dict)):
        items = x.items() if isinstance(x, dict) else enumerate(x)
        for key, item in items:
            yield from _leaf_paths(item, (*path, key))


def _written(case, order, named):
    """``def program(args, named): return f(args[0], 2, axis=1, **named)``, with a source."""
    held = {"f": case.function}

    def literal(x):
        try:
            text = repr(x).replace("Ellipsis", "...")
            known = ast.literal_eval(text)
            if type(known) is type(x) and known == x:
                return text
        except (ValueError, SyntaxError):
            pass
        name = x.__name__ if isinstance(x, type) else f"given_{len(held)}"
        held[name] = x
        return name

    parts = [
        f"args[{order.index(k)}]" if k in order else literal(x) for k, x in enumerate(case.args)
    ]
    parts += [f"{key}={literal(x)}" for key, x in case.options.items() if key not in named]
    text = f"def program(args, named):\n    return f({', '.join([*parts, '**named'])})\n"
    filename = f"<case {next(_count)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), held)
    return held["program"]
