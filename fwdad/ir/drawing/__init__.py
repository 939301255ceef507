"""Drawings of programs: Graphviz source, or a matplotlib figure.

In comes a program; out come Graphviz text, or a figure with a layout computed here.
"""
