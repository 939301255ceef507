"""What the body of a rule may not contain, read from the source (``fwdad/README.md`` says why)."""

import ast
from pathlib import Path

import pytest

import fwdad

RULES = Path(fwdad.__file__).parent / "rules"
# These carry rules out or hold them; a body stands in none of them.
MACHINERY = {"__init__", "adjoints", "binding", "by_name", "define", "partials", "recording"}
MACHINERY |= {"by_position", "contract", "registry"}

# What may be asked of a tangent: whether it is there, how it is nested, its shape and dtype.
KINDS_OF_TANGENTS = {"Zero", "Undefined", "Chunk", "Space", "list", "tuple"}
STATIC = {"shape", "ndim", "size", "dtype", "n"}
ASKED_BY = {"isinstance", "type", "hasattr", "len", "np.shape", "np.ndim", "np.size"}
ASKED_BY |= {"_has_plain_lanes", "is_known"}  # whether it is a value or a symbol
NUMBERS = {"float", "int", "bool", "complex"}
WRITING_METHODS = {"fill", "sort", "partition", "put", "resize", "setfield", "setflags", "itemset"}
WRITING_FUNCTIONS = {"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "at"}

# file, function, what: why it is right there
LAW = "the law of a function that is registered by name, which has a transpose"
IN_PLACE = "works in place, as it says, in what its callers have copied"
ADJOINT = "a transpose, whose chunks have plain lanes or duals; symbols are refused before"
PLAIN_ONLY = "only for plain lanes; every other tangent goes through the closed list"
ALLOWED = {
    ("numpy_lapack", "numpy_lapack", "try"): "looks for symbols in a library, touches no primal",
    ("cosine", "_lanes_law", "reads .lanes"): LAW,
    ("cosine", "_many_axes_law", "reads .lanes"): LAW,
    ("fft", "_one_axis_law", "reads .lanes"): LAW,
    ("fft", "_many_axes_law", "reads .lanes"): LAW,
    ("scipy_ndimage", "_one_axis_law", "reads .lanes"): LAW,
    ("scipy_ndimage", "_many_axes_law", "reads .lanes"): LAW,
    ("scipy_ndimage", "_mean_law", "reads .lanes"): LAW,
    ("scipy_ndimage", "_input_adjoint", "reads .lanes"): ADJOINT,
    ("scipy_ndimage", "_kernel_adjoint", "reads .lanes"): ADJOINT,
    ("scipy_ndimage", "_folded", "writes into an input"): "it has made that array itself, a copy",
    ("scipy_image_splines", "_filter_law", "reads .lanes"): LAW,
    ("scipy_image_splines", "_all_axes_law", "reads .lanes"): LAW,
    ("scipy_image_splines", "law_of", "reads .lanes"): LAW,
    ("scipy_image_splines", "spline_filter1d_transpose", "reads .lanes"): ADJOINT,
    ("scipy_image_splines", "spline_filter_transpose", "reads .lanes"): ADJOINT,
    ("scipy_signal", "law_of", "reads .lanes"): LAW,
    ("scipy_signal", "_upfirdn_law", "reads .lanes"): LAW,
    ("scipy_signal", "_convolve2d_law", "reads .lanes"): LAW,
    ("scipy_signal", "_backwards", "reads .lanes"): ADJOINT,
    ("scipy_signal", "_whole", "reads .lanes"): ADJOINT,
    ("scipy_signal", "upfirdn_transpose_h", "reads .lanes"): ADJOINT,
    ("scipy_signal", "upfirdn_transpose_x", "reads .lanes"): ADJOINT,
    ("scipy_signal", "convolve2d_transpose_image", "writes into an input"): "its own new array",
    ("lapack", "_has_plain_lanes", "reads .lanes"): "asks what the lanes are, not for values",
    ("lapack", "_as_rows", "reads .lanes"): PLAIN_ONLY,
    ("lapack", "cholesky_tangent", "reads .lanes"): PLAIN_ONLY,
    ("products", "_matmul_body", "reads .lanes"): PLAIN_ONLY,
    ("scipy_lapack", "getrs", "writes into an input"): IN_PLACE,
    ("scipy_lapack", "trtrs", "writes into an input"): IN_PLACE,
    ("scipy_lapack", "add_outer", "writes into an input"): IN_PLACE,
    ("scipy_lapack", "add_product", "writes into an input"): IN_PLACE,
}


def is_tangent(name):
    return name.endswith(("_dot", "_bar"))


def tangents_in(node):
    """The tangents whose values an expression looks at: not their shape, dtype, or kind."""
    if isinstance(node, ast.Attribute) and node.attr in STATIC:
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ASKED_BY:
        return
    if isinstance(node, ast.Compare) and all(isinstance(o, (ast.Is, ast.IsNot)) for o in node.ops):
        return
    if isinstance(node, ast.Name) and is_tangent(node.id):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from tangents_in(child)


def kinds_in(node):
    """The names in the second argument of ``isinstance``."""
    return {ast.unparse(e) for e in (node.elts if isinstance(node, ast.Tuple) else [node])}


def is_mask(node, masks):
    if isinstance(node, ast.Name):
        return node.id in masks
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Not, ast.Invert))
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name.endswith((".astype", ".reshape")):
            return is_mask(node.func.value, masks)
        return name.startswith(("np.is", "np.logical_"))
    return isinstance(node, ast.Compare)


def inputs_of(function):
    """The names of what came in: parameters without a default, primals, tangents."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    positional = positional[: len(positional) - len(arguments.defaults)]
    numbers = {"int", "str"}
    names = {
        a.arg for a in positional if not a.annotation or ast.unparse(a.annotation) not in numbers
    }
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and {"primals", "tangents"} & {
            n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)
        }:
            if isinstance(node.value, (ast.Name, ast.Tuple)):  # an unpacking, not a computation
                unpacked = (n for t in node.targets for n in ast.walk(t))
                names |= {n.id for n in unpacked if isinstance(n, ast.Name)}
    return names


def rebound_in(function):
    """The names that a plain assignment gives another value: they are the function's own then."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and not (isinstance(node.value, ast.Name) and node.value.id in {"primals", "tangents"})
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def written_in(node):
    """The names of arrays that one statement or call writes into."""
    targets = []
    if isinstance(node, ast.Assign):
        targets = [t for t in node.targets if isinstance(t, ast.Subscript)]
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call):
        targets = [k.value for k in node.keywords if k.arg == "out"]
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in WRITING_METHODS:
                targets.append(node.func.value)
            if node.func.attr in WRITING_FUNCTIONS and node.args:
                targets.append(node.args[0])
    for target in targets:
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def look_at(function, node, inputs, masks):
    """What one node of a function's tree does against the contract."""
    if isinstance(node, ast.Attribute) and node.attr == "lanes":
        yield "reads .lanes"
    if isinstance(node, ast.Try):
        yield "try"
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) and any(tangents_in(node.test)):
        yield "branches on a tangent"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if is_mask(one, masks) and any(tangents_in(other)):
                yield "multiplies a tangent by a mask"
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name == "map_lanes":
            yield "maps over lanes"
        if name in NUMBERS and any(any(tangents_in(a)) for a in node.args):
            yield "makes a number of a tangent"
        if name == "isinstance" and is_tangent(ast.unparse(node.args[0])):
            if not kinds_in(node.args[1]) <= KINDS_OF_TANGENTS:
                yield "asks a tangent for its class"
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):
        if ast.unparse(node.left.func) == "type" and is_tangent(ast.unparse(node.left.args[0])):
            if not {ast.unparse(c) for c in node.comparators} <= KINDS_OF_TANGENTS:
                yield "asks a tangent for its class"
    if any(name in inputs or is_tangent(name) for name in written_in(node)):
        yield "writes into an input"


def nodes_of(function):
    """The nodes of a function, but not those of functions inside it."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.Lambda)):
            yield from nodes_of(child)


def find_breaches(source, stem):
    """(file, function, what) for each construct that a body may not contain."""
    found = set()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, (ast.FunctionDef, ast.Lambda)):
            continue
        inputs = inputs_of(function) - rebound_in(function)
        nodes = list(nodes_of(function))
        masks = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and is_mask(node.value, set())
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        name = getattr(function, "name", "lambda")
        for node in nodes:
            found |= {(stem, name, what) for what in look_at(function, node, inputs, masks)}
    return found


def test_bodies_hold_to_the_contract():
    found = set()
    for path in sorted(RULES.rglob("*.py")):
        if path.stem not in MACHINERY:
            found |= find_breaches(path.read_text(encoding="utf-8"), path.stem)
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "allowed, and not there: strike it"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("y_dot = Chunk(np.sort(x_dot.lanes))", "reads .lanes"),
        ("y_dot = map_lanes(lambda t: 2 * t, x_dot)", "maps over lanes"),
        ("try:\n        y = 1 / x\n    except ZeroDivisionError:\n        y = 0", "try"),
        ("if np.any(x_dot): y = 0", "branches on a tangent"),
        ("y_dot = x_dot if x_dot[0] > 0 else ZERO", "branches on a tangent"),
        ("assert not np.all(x_dot == 0)", "branches on a tangent"),
        ("while x_dot: pass", "branches on a tangent"),
        ("y_dot = (x > 0) * x_dot", "multiplies a tangent by a mask"),
        ("y_dot = x_dot * np.isnan(x)", "multiplies a tangent by a mask"),
        ("bad = x == 0\n    y_dot = 2 * x_dot * ~bad", "multiplies a tangent by a mask"),
        ("bad = x == 0\n    y_dot = bad * x_dot", "multiplies a tangent by a mask"),
        ("y_dot = (x > 0).astype(float) * x_dot", "multiplies a tangent by a mask"),
        ("y_dot = float(x_dot)", "makes a number of a tangent"),
        ("if isinstance(x_dot, np.ndarray): y = 0", "asks a tangent for its class"),
        ("if isinstance(x_dot, (Zero, float)): y = 0", "asks a tangent for its class"),
        ("if type(x_dot) is np.ndarray: y = 0", "asks a tangent for its class"),
        ("x[0] = 1", "writes into an input"),
        ("x += 1", "writes into an input"),
        ("x.T[0] *= 2", "writes into an input"),
        ("x_dot *= 2", "writes into an input"),
        ("x.sort()", "writes into an input"),
        ("np.exp(x, out=x)", "writes into an input"),
        ("np.copyto(x, 0)", "writes into an input"),
        ("np.add.at(x, 0, 1)", "writes into an input"),
    ],
)
@pytest.mark.parametrize(
    "head",
    [
        "def rule(primals, tangents):\n    (x,), (x_dot,) = primals, tangents",
        "def rule(primals, tangents):\n    x, = primals\n    x_dot, = tangents",
        "def helper(x, x_dot):\n    pass",
    ],
)
def test_a_breach_is_found(head, line, what):
    source = f"{head}\n    {line}\n    return y, y_dot\n"
    assert what in {found for _file, _function, found in find_breaches(source, "planted")}


@pytest.mark.parametrize(
    "line",
    [
        "y_dot = 2 * x * x_dot",
        "if isinstance(x_dot, Zero): return y, ZERO",
        "if isinstance(x_dot, (Zero, Chunk)): y = 0",
        "if x_dot is ZERO: y = 0",
        "if x_dot.ndim > 1 and x_dot.shape[0]: y = 0",
        "y_dot = np.where(x > 0, x_dot, 0)",
        "x = np.copy(x)\n    x[0] = 1",
        "y = np.zeros(3)\n    y[0] = x[0]\n    y += 1\n    y.sort()",
        "y_dot = (x * 2) * x_dot",
    ],
)
def test_what_a_body_may_contain(line):
    head = "def rule(primals, tangents):\n    (x,), (x_dot,) = primals, tangents"
    assert find_breaches(f"{head}\n    {line}\n", "planted") == set()
