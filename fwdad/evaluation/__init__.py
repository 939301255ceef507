"""The evaluators: functions that take ``(f, x)`` and return a derivative at x.

They check the user's arguments, directions and number of lanes, let ``eager`` run f in forward
mode, and return values and Jacobians in the structures of x and y. The tracer treats these
functions as operations, which is why they belong to a layer below it.
"""
