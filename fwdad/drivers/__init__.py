"""The choice of how a derivative is computed: by a tape, by a recorded run, or in forward mode.

In come a function and its arguments. Its tape is found or traced, transformed, compiled and kept
for the next call together with its assumptions; out go values, gradients and pullbacks.
"""
