"""Derivatives of the solutions that SciPy's ``solve_ivp`` and ``odeint`` find.

The solver runs on plain numbers; the steps that it has accepted are then differentiated, with their
sizes as constants. Begin with ``solver.py``.
"""

from fwdad.drivers.initial_values import odeint as odeint  # install themselves
from fwdad.drivers.initial_values import solver as solver
