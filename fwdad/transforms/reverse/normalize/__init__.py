"""The normal form for reverse mode, in which it is known which array a name stands for.

In comes a program whose loops and branches exchange arrays and views; out comes the same program in
which each name is one array, or an array and an index that is a number.
"""
