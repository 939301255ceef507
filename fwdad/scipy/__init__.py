"""SciPy's solvers with their derivatives filled in, under SciPy's names and with its results.

Each function is SciPy's own of that name, called with exact Jacobians, gradients and Hessians where
its method takes them and the caller gives none. ``verbose=1`` says which they are, and why.
"""

from fwdad.frontend.calls.tables import builtin
from fwdad.scipy.equations import fsolve, root, root_scalar
from fwdad.scipy.filling import refuse_in_trace
from fwdad.scipy.fits import curve_fit, least_squares
from fwdad.scipy.global_search import basinhopping, differential_evolution, dual_annealing
from fwdad.scipy.integration import solve_bvp, solve_ivp
from fwdad.scipy.minimisation import minimize

__all__ = [
    "basinhopping",
    "curve_fit",
    "differential_evolution",
    "dual_annealing",
    "fsolve",
    "least_squares",
    "minimize",
    "root",
    "root_scalar",
    "solve_bvp",
    "solve_ivp",
]

builtin(basinhopping, curve_fit, differential_evolution, dual_annealing, fsolve)(refuse_in_trace)
builtin(least_squares, minimize, root, root_scalar, solve_bvp, solve_ivp)(refuse_in_trace)
