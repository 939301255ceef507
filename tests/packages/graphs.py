"""Graphs and formulas."""

import numpy as np

from tests.packages.package_function import PackageFunction

EDGES = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 0)]


def _graph(weights, kind):
    graph = kind()
    for (a, b), w in zip(EDGES, weights, strict=True):
        graph.add_edge(a, b, weight=w)
    return graph


def _shortest_path():
    import networkx as nx

    def f(w):
        return nx.shortest_path_length(_graph(w, nx.DiGraph), 0, 3, weight="weight")

    return f, np.array([1.0, 1.5, 3.0, 0.7, 0.2])


def _pagerank():
    import networkx as nx

    def f(w):
        ranks = nx.pagerank(_graph(w, nx.DiGraph), tol=1e-14, max_iter=500)
        return np.array([ranks[k] for k in range(4)])

    return f, np.array([1.0, 1.5, 3.0, 0.7, 0.2])


def _flow():
    import networkx as nx

    def f(w):
        graph = nx.DiGraph()
        for (a, b), c in zip(EDGES, w, strict=True):
            graph.add_edge(a, b, capacity=c)
        return nx.maximum_flow_value(graph, 0, 3)

    return f, np.array([1.0, 1.5, 3.0, 5.7, 0.2])


def _laplacian():
    import networkx as nx

    def f(w):
        adjacency = nx.to_numpy_array(_graph(w, nx.Graph), nodelist=range(4))
        return np.linalg.eigvalsh(np.diag(adjacency.sum(0)) - adjacency)[1]

    return f, np.array([1.0, 1.5, 3.0, 0.7, 0.2])


def _lambdify():
    import sympy

    a, b = sympy.symbols("a b")
    g = sympy.lambdify((a, b), sympy.exp(-a) * sympy.sin(b) + sympy.besselj(0, a), "scipy")
    return lambda p: g(p[0], p[1]), np.array([0.4, 1.3])


def _subs():
    import sympy

    a = sympy.symbols("a")
    e = sympy.exp(-a) * sympy.sin(a)
    return lambda p: float(e.subs(a, p[0])), np.array([0.4])


def _units():
    import pint

    ureg = pint.UnitRegistry()

    def f(p):
        speed = p[0] * ureg.meter / (p[1] * ureg.second)
        return speed.to(ureg.kilometer / ureg.hour).magnitude

    return f, np.array([3.0, 2.0])


def _units_of_arrays():
    import pint

    ureg = pint.UnitRegistry()

    def f(x):
        q = ureg.Quantity(x, "degC").to("kelvin")
        return np.sqrt((q**2).sum()).magnitude

    return f, np.array([3.0, 2.0, 20.0])


def _forget_parses():
    """Turn pyparsing's memory of all parses off, as it is unless Matplotlib has been imported.

    Each parse writes there, so under `jit` it is refused.
    """
    import pyparsing

    pyparsing.ParserElement.disable_memoization()


def _formula():
    import periodictable

    _forget_parses()

    def f(p):
        return periodictable.neutron_sld("SiO2", density=p[0], wavelength=p[1])[0]

    return f, np.array([2.2, 6.0])


def _xray():
    import periodictable

    _forget_parses()

    def f(p):
        return periodictable.xray_sld("SiO2", density=p[0], energy=8.0)[0]

    return f, np.array([2.2])


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction("networkx", "shortest_path_length, by weights", _shortest_path),
    PackageFunction(
        "networkx",
        "pagerank, by weights",
        _pagerank,
        refused={"*": "DualLeakError", "jit": "UntraceableError"},
        why="made by exec from a text that is kept nowhere",
    ),
    PackageFunction(
        "networkx",
        "maximum_flow_value, by capacities",
        _flow,
        refused=UNTRACED,
        why="made by exec from a text that is kept nowhere",
    ),
    PackageFunction(
        "networkx",
        "a Laplacian's second eigenvalue",
        _laplacian,
        refused={"*": "DualLeakError", "jit": "UntraceableError"},
        why="made by exec from a text that is kept nowhere",
    ),
    PackageFunction("sympy", "lambdify", _lambdify),
    PackageFunction(
        "sympy",
        "subs, evaluated",
        _subs,
        refused={"*": "DualLeakError", "jit": "UntraceableError"},
        why="SymPy takes the number's fraction: lambdify instead",
    ),
    PackageFunction("Pint", "a speed in other units", _units),
    PackageFunction(
        "Pint",
        "an array of temperatures",
        _units_of_arrays,
    ),
    PackageFunction(
        "periodictable",
        "neutron_sld, by density and wavelength",
        _formula,
    ),
    PackageFunction(
        "periodictable",
        "xray_sld, by density",
        _xray,
    ),
]
