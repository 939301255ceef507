"""Programs as pictures.

In comes a program; out come Graphviz text, or a matplotlib figure with a layout of its own.
"""
