"""The evaluators: functions that are given ``(f, x)`` and return a derivative at x.

In come the user's arguments, directions and number of lanes, which are checked here. They are run
by ``eager``, in forward mode; out go values and Jacobians in the structures of x and y. The tracer
knows these functions as operations, which is why they stand below it.
"""
