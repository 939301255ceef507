"""Importing this module makes ``malloc`` keep the memory of dropped arrays for the next call.

A derivative makes arrays of the same sizes at each call. glibc returns free memory to the system
beyond twice the size of the largest array that it has mapped and unmapped; memory taken anew comes
page by page, each a fault and zeroed, which costs as much as the arithmetic on it. Only an array as
large as those that come and go teaches it better.

A pool of arrays of our own could not do it: NumPy takes the user's arrays, and the results of
every operator, from ``malloc``. ``mallopt`` would do, but stops glibc from adapting any further.
"""

import numpy as np

KEPT = 2**25 - 2**13
"""Bytes of the array, about the largest from which glibc learns: up to twice as much stays with the
process when it is free."""

# Nobody writes into it, so it gets no pages itself. Other mallocs than glibc's take no notice.
np.empty(KEPT, np.uint8)
