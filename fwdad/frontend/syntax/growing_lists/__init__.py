"""Lists that grow in a loop of a traced program, whose lengths are known only at run time.

In come the empty lists that the interpreter meets before such a loop; they become arrays with
room to spare and a count. Out go symbols for their items, and a refusal of what an array cannot do.
"""
