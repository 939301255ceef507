"""Forward mode as users call it: ``jvp(f, x, v)``, ``derivative(f, x)``, Jacobians by columns.

In come a function, a point and options, which are checked here for every evaluator; ``eager`` runs
the function along a chunk of directions at a time. Out go values, tangents and Jacobians in the
structures of y and x.
"""
