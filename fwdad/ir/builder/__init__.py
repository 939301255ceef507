"""The builder: appends operations with inferred types to the block that is open.

In come calls on symbols; out come operations with typed results, and what is known of lengths,
views and changes of containers while a program is written.
"""
