"""Colourings of sparsity patterns: which columns or rows are differentiated together.

It knows nothing of derivatives: patterns come in, and seeds and the way back go out.
"""

from fwdad.colouring.colouring import Colouring
from fwdad.colouring.orders import ORDERS
from fwdad.colouring.search import colour

__all__ = ["ORDERS", "Colouring", "colour"]
