"""Colourings of sparsity patterns: which columns or rows are differentiated together.

It knows nothing of derivatives: from a pattern it computes seeds, and decompresses the products.
"""

from fwdad.colouring.colouring import Colouring
from fwdad.colouring.orders import ORDERS
from fwdad.colouring.search import colour

__all__ = ["ORDERS", "Colouring", "colour"]
