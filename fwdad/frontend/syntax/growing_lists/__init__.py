"""Lists of a traced program that are arrays.

In come the empty lists that the interpreter meets before a loop that appends to them, whose lengths
are known only at run time, and the comprehensions, maps and generators whose items one loop makes.
They become stacks, or arrays. Out go symbols for their items, and a refusal of what an array cannot
do.
"""
