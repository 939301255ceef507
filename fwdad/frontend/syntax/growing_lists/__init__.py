"""Lists of a traced program that are arrays.

In come the lists that the interpreter meets whose lengths are known only at run time, or whose
items are read and changed at places that are, and the comprehensions, maps and generators whose
items one loop makes. They become stacks (``growing``), arrays (``filled``), or arrays in memory
(``changing``; ``tables`` and ``lists_apart`` of lists, ``stored_arrays`` of arrays). Out go symbols
for their items, and a refusal of what an array cannot do.
"""
