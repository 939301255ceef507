"""Derivatives by many workers: blocks of Jacobians, points, and the parts of a data set."""
