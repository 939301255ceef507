"""The normal form in which programs are differentiated backwards: what does a name mean.

In comes a program whose loops and branches exchange arrays and views; out comes the same program
in which each name is one array, or an array and an index that is a number.
"""
