"""The numbers and arrays that carry tangents.

In come values with their tangents and the tag of a call; out come objects that behave as the values
do, under NumPy's protocols and Python's operators.
"""
