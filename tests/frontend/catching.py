"""Programs in which a value decides whether an exception is raised that a ``try`` catches."""

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.125, -4.0, 1.0])
U = np.array([-2.0, 0.5, 0.25, 6.0])
ONES = ((0.5,), (-0.5,), (2.0,), (-3.0,), (7.0,))


class StepError(Exception):
    def __init__(self, message, step):
        super().__init__(message)
        self.step = step


class WorseError(StepError):
    pass


def positive(x):
    if x < 0:
        raise ValueError("neg", x * 2)
    return x * 3


def staged(x):
    """Raises inside of branches, one or the other."""
    if x < 0:
        y = x * x
        if x < -2:
            message = "far"
            raise WorseError(message, y)
        raise StepError("near", y)
    if x > 1:
        z = x + 1
        if x > 5:
            raise ValueError(z)
        return z * x
    return x


def searched(a, t):
    for k, v in enumerate(a):
        if v > t:
            raise StepError("found", v * k)
        if v < -3:
            break
    return a[0]


@program(*ONES)
def in_line(x):
    y = 1.0
    try:
        y = 2.0 * x
        if x < 0:
            raise ValueError("neg")
        y = y * y
    except ValueError as e:
        y += len(e.args)
    return y


@program(*ONES)
def in_a_call(x):
    try:
        y = positive(x) + positive(x - 1)
    except ValueError as e:
        y = e.args[1] * 5
    return y


@program(*ONES)
def else_and_finally(x):
    steps = [0.0, 0.0, 0.0]
    try:
        steps[0] = x
        y = staged(x)
        steps[0] = 2 * x
    except WorseError as e:
        y = e.step + 1
    except StepError as e:
        y = e.step
        steps[1] = y
    except ValueError:
        y = 9.0
    else:
        steps[2] = y
    finally:
        steps[1] += 10.0
    return y, steps


@program((V, 1.0), (V, 5.0), (W, -1.0), (U, 0.4), (W, 1.5))
def in_a_loop(a, t):
    try:
        y = searched(a, t)
    except StepError as e:
        y = e.step * 2
    return y


@program((V, 1.0), (V, 5.0), (W, -1.0), (U, 0.4), (W, 1.5))
def stores_stay(a, t):
    n = 0
    try:
        for k in range(len(a)):
            a[k] *= 2
            if a[k] > t:
                raise StepError("large", a[k])
            n += 1
            a[k] += 1
    except StepError as e:
        a[0] = e.step - n
    return a, n


@program((V,), (W,), (U,))
def around_each(a):
    total, bad = 0.0, 0
    for v in a:
        try:
            total += staged(v)
        except StepError as e:
            total -= e.step
            bad += 1
            continue
        except ValueError:
            break
    return total, bad


@program(*ONES)
def nested(x):
    y = 0.0
    try:
        try:
            y = staged(x)
        except WorseError as e:
            y = e.step
            if x < -2.5:
                raise
        finally:
            y += 1.0
        y *= 2
    except StepError as e:
        y += e.step * 10
    return y


@program(*ONES)
def replaced(x):
    try:
        try:
            return positive(x)
        except ValueError as e:
            raise StepError("replaced", e.args[1]) from e
    except StepError as e:
        return e.step + 1


@program(*ONES)
def not_all_are_caught(x):
    try:
        return staged(x) + 1
    except WorseError as e:
        return e.step


@program(*ONES)
def caught_by_all(x):
    try:
        y = staged(x)
        z = y * 2
    except Exception:
        return -1.0
    return y + z


@program(*ONES)
def tuples_and_bases(x):
    try:
        assert x < 5
        y = staged(x)
    except (AssertionError, StepError) as e:
        y = 3.0 if isinstance(e, AssertionError) else e.step
    return y


@program((1.0, 4), (-1.0, 2), (0.01, 50), (30.0, 9))
def until_it_works(x, n):
    step, tries = x, 0
    while True:
        try:
            if step > 0.3:
                raise StepError("too long", step / 2)
            break
        except StepError as e:
            step = e.step
            tries += 1
            if tries > n:
                return -step
    return step


@program(*ONES)
def in_an_expression(x):
    try:
        return (positive(x) if x < 3 else positive(-x)) + [positive(1 + x), 2.0][0]
    except ValueError as e:
        return e.args[1]


@program(*ONES)
def state_at_the_raise(x):
    class_of_state = {"k": 0.0, "l": x}
    try:
        class_of_state["k"] = 1.0
        y = 5.0
        if x < 0:
            class_of_state["l"] = 2 * x
            raise KeyError
        class_of_state["k"] = x
        y = positive(x - 1)
        class_of_state["l"] = 3.0
    except (KeyError, ValueError):
        y += 1
    return y, class_of_state


@program(*ONES)
def unbound_where_it_was_raised(x):
    try:
        if x < 0:
            raise ValueError
        y = x
    except ValueError:
        pass
    return y


@program(*ONES)
def recovered_by_a_closure(x):
    def attempt(f, default):
        try:
            return f()
        except (ValueError, StepError):
            return default

    return attempt(lambda: positive(x), 4.0) + attempt(lambda: staged(x + 1), x)


@program(*ONES)
def through_a_finally(x):
    trail = [0.0, 0.0]

    def inner():
        try:
            return staged(x)
        finally:
            trail[0] = x * x

    try:
        trail[1] = inner()
    except StepError as e:
        trail[1] = e.step + trail[0]
    return trail


@program(*ONES)
def else_after_a_jump(x):
    try:
        if x > 1:
            return x
    except KeyError:
        return 1.0
    else:
        x = x * 2
    return x


@program(*ONES)
def returned_or_raised(x):
    for k in range(4):
        try:
            if x + k > 3:
                return x * k
            if x + k < -1:
                raise StepError("low", x + k)
        except StepError as e:
            x = x - e.step / 2
        else:
            x = x + 0.5
    return x


MADE = []


class CountedError(Exception):
    def __init__(self, step, *, scale=1.0):
        super().__init__(f"a step of {step}")
        MADE.append(1)
        self.step = step if step > 0.3 else step + 1
        self.scale = scale


class ScaledError(CountedError):
    def __init__(self, step):
        super().__init__(step * 2, scale=3.0)
        self.weight = self.scale + step

    @property
    def total(self):
        return self.step * self.weight


def advanced(x):
    if x > 3:
        raise ScaledError(x)
    if x < 0:
        raise CountedError(-x / 2)
    return x * x


@program(*ONES)
def made_by_a_class_of_the_users(x):
    try:
        return advanced(x)
    except ScaledError as e:
        return e.total
    except CountedError as e:
        return e.step * x * e.scale


@program(*ONES)
def retried(x):
    tries = 0
    for _ in range(6):
        try:
            x = advanced(x)
            tries += 1
        except CountedError as e:
            x = e.step
    return x, tries


@program(*ONES)
def made_with_keywords(x):
    try:
        if x > 1:
            raise StepError("low", step=x * x)
    except StepError as e:
        return e.step * len(e.args)
    return x
