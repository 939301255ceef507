"""Forward mode: any Python function, run once on duals.

In come a function, its arguments and their tangents; out come values and tangents, and the world
as one plain call would leave it. ``lifting`` rewrites source, ``hooks`` are what it then calls,
``calls`` says where each call goes, ``duals`` carry tangents and ``memory`` writes them.
"""
