"""``autograd.builtins``: Python's own, since no value is in a box while a function runs."""

from builtins import dict, isinstance, list, tuple, type  # noqa: A004, UP029  (the names are autograd's)

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
