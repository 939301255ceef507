"""Programs that are refused for their objects, and for what they return."""

import collections
import copy
import dataclasses
import queue

import fwdad
from tests.frontend.refused.table import Refused, V

PROGRAMS = refuses = Refused()


# -- objects


class OwnList(list):
    def __init__(self, *items):
        super().__init__(items)


_OF_C = (
    "objects of classes that C code makes (`Counter`, subclasses of `list`) with an `__init__` in "
    "Python, made inside"
)


@refuses(_OF_C, 1.0, part="__new__")
def counter(x):
    return collections.Counter("aab")["a"] * x  # here


@refuses(_OF_C, 1.0, part="__new__")
def own_list(x):
    return OwnList(x, x)[0]  # here


_UNSEEN = "objects of classes whose `__init__` has no source, or makes a lock (`queue.Queue`), made inside"
_MADE = {}
exec("class Unread:\n    def __init__(self, x):\n        self.x = x", _MADE)


@refuses(_UNSEEN, 1.0, part="no source")
def unread(x):
    return _MADE["Unread"](x).x  # here


@refuses(_UNSEEN, 1.0, part="allocate_lock")
def queued(x):
    return queue.Queue(3).maxsize * x  # here


@dataclasses.dataclass
class WithInitVar:
    x: float
    k: dataclasses.InitVar[float] = 2.0

    def __post_init__(self, k):
        self.x *= k


@refuses("dataclasses with `InitVar`, made inside", 1.0, part="InitVar")
def init_var(x):
    return WithInitVar(x).x  # here


class Reading:
    def __init__(self, x):
        self.x = x

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


@refuses("a class with its own `__getattribute__`", 1.0, part="__getattribute__")
def getattribute(x):
    return Reading(x).x  # here


class Deleting:
    def __delattr__(self, name):
        object.__delattr__(self, name)


@refuses("`del` of an attribute that the class defines", 1.0, part="`del` of `x`")
def delattr_of_its_own(x):
    o = Deleting()
    o.x = x
    del o.x  # here
    return x


class Reduced:
    def __init__(self, x):
        self.x = x

    def __reduce__(self):
        return Reduced, (self.x,)


@refuses(
    "copies of objects with their own `__reduce__` or `__getstate__`",
    1.0,
    part="defines __reduce__",
)
def copied(x):
    return copy.copy(Reduced(x)).x  # here


# -- returns


@refuses("a result that is a `deque`, `defaultdict` or set of values", V, part="a deque that holds")
def answers_a_deque(a):
    return collections.deque([a[0]])  # here


@refuses(
    "a result that is a `deque`, `defaultdict` or set of values",
    V,
    part="a defaultdict that holds",
)
def answers_a_defaultdict(a):
    found = collections.defaultdict(list)
    found["a"].append(a[0])
    return found  # here


@refuses("a result that is an iterator, or a function defined inside", V, part="cannot be returned")
def answers_an_iterator(a):
    return (x for x in a)  # here


@refuses("a result that is an iterator, or a function defined inside", V, part="cannot be returned")
def answers_a_function(a):
    return lambda: a  # here


def into_both(x, y):
    y[:] = x
    x *= 2


@refuses(
    '`outputs="mutated"` or `"both"` of a derivative, of a function that also writes into an '
    "argument that is not differentiated",
    V,
    part="argument",
)
def mutated_beside(a):
    return fwdad.jacfwd(into_both, outputs="mutated")(a * 1, a * 1)  # here


_FITTED = "tuples with attributes beside their items (what `scipy.stats.linregress` returns)"


class Fitted(collections.namedtuple("Fitted", "slope")):  # noqa: SLOT002 - has attributes
    """Made as SciPy makes its own: what those return under a trace differs with its version."""


FITTED = Fitted(2.0)
FITTED.error = 0.1


@refuses(_FITTED, V, part="Fitted is a tuple with attributes")
def result_of_statistics(a):
    fitted = None
    if a[0] > 0.0:
        fitted = FITTED  # here
    return a * fitted.slope


class Registered:
    def __init__(self, a):
        self.a = a


fwdad.register_tangent_type(
    Registered, flatten=lambda r: ((r.a,), None), unflatten=lambda _, parts: Registered(*parts)
)


@dataclasses.dataclass
class Finalised:
    a: float

    def __del__(self):
        pass


_BY_FIELDS = (
    "derivatives, under `jit`, by or of objects of a class with `register_tangent_type`, or of a "
    "dataclass with `__del__`"
)


@refuses(_BY_FIELDS, 2.0, part="a Registered holds traced values, and is no composite")
def derivative_by_a_registered_object(x):
    return fwdad.grad(lambda r: r.a**2)(Registered(x)).a  # here


@refuses(_BY_FIELDS, 2.0, part="a Finalised holds traced values, and is no composite")
def derivative_of_a_finalised_object(x):
    return fwdad.jvp(lambda x: [Finalised(x), x], x, 1.0)[1][1]  # here
