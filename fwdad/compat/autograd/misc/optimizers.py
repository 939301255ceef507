"""``autograd.misc.optimizers``: refused, since SciPy has optimizers, and a step is one line."""

from fwdad.compat.conventions import refused

_INSTEAD = (
    "Write scipy.optimize.minimize(fwdad.value_and_grad(loss), x0, jac=True), with fwdad.ravel for "
    "a structure, or the step itself: fwdad.tree_map(lambda p, g: p - 0.01 * g, params, slope)"
)
adam = refused("autograd.misc.optimizers.adam", _INSTEAD)
rmsprop = refused("autograd.misc.optimizers.rmsprop", _INSTEAD)
sgd = refused("autograd.misc.optimizers.sgd", _INSTEAD)
