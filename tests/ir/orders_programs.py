"""Programs whose results depend on how arrays lie: what makes an array, and what looks at it."""

import numpy as np

MAKERS, LOOKERS = {}, {}


def maker(f):
    MAKERS[f.__name__] = f
    return f


def looker(f):
    LOOKERS[f.__name__] = f
    return f


# -- what makes an array, of an argument of two or three dimensions


@maker
def itself(x):
    return x


@maker
def doubled(x):
    return x * 2


@maker
def turned(x):
    return x.T * 2


@maker
def copied_by_rows(x):
    return x.T.copy()


@maker
def copied_as_it_lies(x):
    return np.copy(x.T)


@maker
def copied_between(x):
    return (x.T * 3).copy() * 2


@maker
def added_in_two_orders(x):
    return x.T.copy() + x.T


@maker
def alike(x):
    v = np.zeros_like(x.T)
    v[...] = x.T
    return v


@maker
def filled_alike(x):
    return np.full_like(x.T, 2.0) * x[0].ravel()[0]


@maker
def chosen(x):
    return np.where(x.T > 1.1, x.T, 2 * x.T)


@maker
def gathered_behind(x):
    return x[..., [0, 1]]


@maker
def summed(x):
    return np.sum((x[..., None] * np.ones(3)).T, axis=0)


@maker
def cumulated(x):
    return np.cumsum(x.T, axis=0)


@maker
def joined(x):
    return np.concatenate([x.T, x.T])


@maker
def moved(x):
    return np.moveaxis(x, 0, -1) ** 2


@maker
def spread(x):
    return np.copy(np.broadcast_to(x[..., :1], x.shape)) * x.sum()


@maker
def by_columns(x):
    return np.asfortranarray(x) * 1.0


@maker
def in_a_loop(x):
    v = x.T
    for _ in range(2):
        v = v * 1.1
    return v


@maker
def on_a_side(x):
    if x.ravel()[0] > 0:
        v = x.T * 2
    else:
        v = np.zeros(x.T.shape)
    return v


@maker
def small(x):
    return np.outer(x[0].ravel()[:2], x[-1].ravel()[:3]).T * 2


# -- what looks at it


@looker
def stored_through_reshape(v):
    v.reshape(-1)[1:] = v.reshape(-1)[0]
    return v * v


@looker
def stored_through_ravel(v):
    w = np.ravel(v)
    w[:2] *= 3
    return v * v, w * w


@looker
def updated_in_two_axes(v):
    w = v.reshape(v.shape[0], -1)
    w *= 3
    return v * v, w * w


@looker
def base_written(v):
    w = v.reshape(-1)
    v[...] = v * v
    return w * 1.0, v * w.sum()


@looker
def in_order_of_memory(v):
    return v.ravel(order="K") ** 2, v.flatten("K")


@looker
def in_either_order(v):
    return np.ravel(v, order="A") ** 2, v.flatten(order="A"), v.reshape((-1,), order="A") * 2


@looker
def stored_by_columns(v):
    w = v.reshape((-1,), order="F")
    w[1] = 4 * w[0]
    return v * v, w * w


@looker
def stored_flat(v):
    v.flat[1] = 3 * v.flat[0]
    return v * v


@looker
def stored_into_copies(v):
    w, u = np.copy(v), v.copy()
    w.reshape(-1)[0] = 5 * w.reshape(-1)[1]
    u.reshape(-1)[0] = 5 * u.reshape(-1)[1]
    return w * w, u * u


@looker
def stored_turned(v):
    v.T.reshape(-1)[0] = 5 * v.reshape(-1)[1]
    return v * v


@looker
def converted(v):
    w = v.astype(float, copy=False)
    w[0] = 2 * w[1]
    return v * v, w * w


@looker
def stored_in_a_loop(v):
    w = v.reshape(-1)
    for i in range(1, w.shape[0]):
        w[i] = w[i] + w[i - 1] * 0.5
    return v * v


@looker
def stored_through_a_part(v):
    w = v[:, 1:].reshape(-1)
    w[0] = 3 * w[1]
    return v * v, w


@looker
def stored_into_zeros(v):
    z = np.zeros_like(v)
    z.reshape(-1)[0] = v.sum()
    return z * 1.0


@looker
def made_row_by_row(v):
    w = np.ascontiguousarray(v)
    w[0] = 2 * w[1]
    return v * v, w * w


@looker
def made_column_by_column(v):
    w = np.asfortranarray(v)
    w.reshape(-1)[0] = 2 * w[0].reshape(-1)[1]
    return v * v, w * w


# -- arguments


def arguments():
    """Arrays of two and three dimensions that lie in every way, by name."""
    a = 1.0 + np.sin(np.arange(1.0, 13.0)).reshape(3, 4)
    spread_out = np.zeros((6, 8))
    spread_out[::2, ::2] = a
    b = 1.0 + np.sin(np.arange(1.0, 13.0)).reshape(2, 3, 2)
    return {
        "rows": a.copy(),
        "columns": np.asfortranarray(a),
        "gaps": spread_out[::2, ::2],
        "backwards": a[::-1, ::-1].copy()[::-1, ::-1],
        "rows of three": b.copy(),
        "permuted": np.ascontiguousarray(b.transpose(2, 0, 1)).transpose(1, 2, 0),
        "columns of three": np.asfortranarray(b),
    }
