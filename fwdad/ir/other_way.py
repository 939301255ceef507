"""What a program raises that holds one way of a branch only."""


class OtherWayError(Exception):
    """The program takes another way than in the example that its tape was made of.

    It never leaves the library, so it looks for no place in the user's code.
    """
