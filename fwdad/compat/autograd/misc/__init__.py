"""``autograd.misc``: what users take from there is ``flatten``."""

from fwdad.compat.autograd.misc.flatten import flatten

__all__ = ["flatten"]
