"""The closed list: what each linear NumPy function does to a chunk.

A law takes the arguments of its NumPy function, with a ``Chunk`` where an array could be, and does
the axis arithmetic that the hidden lane axis requires. Nothing else may be done to a chunk.
The transposes of these functions are next to their rules in ``fwdad/rules``. Importing this
package enters them all.
"""

from fwdad.tangents.laws import joining as joining
from fwdad.tangents.laws import linalg as linalg
from fwdad.tangents.laws import parts as parts
from fwdad.tangents.laws import products as products
from fwdad.tangents.laws import reductions as reductions
from fwdad.tangents.laws import selection as selection
from fwdad.tangents.laws import shaping as shaping
from fwdad.tangents.laws import transforms as transforms
