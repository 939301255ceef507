"""The words of the language that are not Python's: they mean something inside a reversible body.

The functions here are what these words refer to. They are never run: a body is read, not executed.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, NoReturn


def _outside(word: str, *_given: Any) -> NoReturn:
    message = f"{word} of fwdad.reversible has a meaning only inside a function under @reversible"
    raise RuntimeError(message)


def ancilla(value: Any) -> Any:
    """Begin a local variable: ``t = ancilla(0.0)``.

    Parameters
    ----------
    value : number, array, Stack or Dict
        What it is at first. An array is copied. If the value depends on a parameter, so does the
        cotangent: what the program does with the variable counts for the parameter.

    Returns
    -------
    like value
        The variable.

    Notes
    -----
    It must end in the same block, by :func:`free` or by being undone with a ``compute`` block.
    """
    _outside("ancilla", value)


def free(variable: Any, value: Any) -> None:
    """End a local variable: ``free(t, 0.0)``.

    Parameters
    ----------
    variable : name
        An ancilla of this block.
    value : number or array
        What it must be by then: the inverse begins with it.

    Raises
    ------
    InvertibilityError
        When the program runs, if the variable is something else: floats and complex numbers by more
        than the function's ``tolerance`` times ``max(1, |value|)``, everything else at all.
    """
    _outside("free", variable, value)


def cond(pre: Any, post: Any) -> Any:
    """Give a branch or a loop its second condition: ``if cond(x > 0, y > 0):``.

    Parameters
    ----------
    pre : bool
        Decides when the program runs.
    post : bool
        Decides when it runs backwards. After a branch it must be what ``pre`` was before it. It
        must be false before a loop and true after each turn.

    Returns
    -------
    bool
        The one of the two that decides.

    Raises
    ------
    InvertibilityError
        When the program runs, if ``post`` is something else than it must be.
    """
    _outside("cond", pre, post)


def compute() -> AbstractContextManager[None]:
    """Open a block that is undone when it ends; what shall stay is done in :func:`copy_out`.

    Returns
    -------
    context manager
        For ``with``, without a name.

    Notes
    -----
    Its statements run twice: forwards, and backwards when it ends.

    Examples
    --------
    ::

        with compute():
            t = ancilla(0.0)
            for i in range(len(x)):
                t += x[i] * x[i]
            with copy_out():
                y += np.sqrt(t)
    """
    _outside("compute")


def copy_out() -> AbstractContextManager[None]:
    """Open the last block inside :func:`compute`: what it does is not undone.

    Returns
    -------
    context manager
        For ``with``, without a name.
    """
    _outside("copy_out")


def push(stack: Any, variable: Any) -> None:
    """Move a number onto a :class:`Stack`: ``push(s, v)`` leaves zero in v.

    Parameters
    ----------
    stack : Stack
        A parameter, an ancilla or a field.
    variable : number
        A place that can be updated.

    Raises
    ------
    CapacityError
        When the program runs, if the stack is full and does not grow.
    """
    _outside("push", stack, variable)


def pop(stack: Any, variable: Any) -> None:
    """Move the latest number of a :class:`Stack` to a place that is zero.

    Parameters
    ----------
    stack, variable
        See :func:`push`.

    Raises
    ------
    InvertibilityError
        When the program runs, if the place is not zero, or the stack is empty.
    """
    _outside("pop", stack, variable)


def contains(dictionary: Any, key: int) -> Any:
    """Whether a :class:`Dict` has a key, in any expression: ``if contains(d, k):``.

    Parameters
    ----------
    dictionary : Dict
        A parameter, an ancilla or a field.
    key : int
        The key.

    Returns
    -------
    bool
    """
    _outside("contains", dictionary, key)


def unchecked() -> AbstractContextManager[None]:
    """Open a block whose run-time checks are off: values of ancillas, conditions, bounds of loops.

    A program that breaks its promises there has an inverse that is silently wrong.

    Returns
    -------
    context manager
        For ``with``, without a name.
    """
    _outside("unchecked")
