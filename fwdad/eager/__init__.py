"""Forward mode for any Python function, which is run once on duals.

In come a function, its arguments and their tangents; out come values and tangents, and the world as
a plain call would leave it. ``lifting`` rewrites source, ``hooks`` are what the rewritten code
calls, ``calls`` directs each call, ``duals`` carry tangents and ``memory`` writes them.
"""
