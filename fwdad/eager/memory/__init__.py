"""Writes of a run: shadow memory, and the log from which the outside world is restored.

In come stores of duals into arrays, containers and objects; out come tangents that are read back,
plain values in their place when the call ends, and errors where a later call would lose them.
"""
