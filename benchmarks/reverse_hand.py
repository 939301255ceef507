"""Adjoint code by hand, for Numba: what a gradient can cost.

Each returns ``(value, gradient with respect to the first argument)`` of the program of its name.
Sums may be reordered in those that are ``quick``, so that LLVM makes vectors of them.
"""

import math

import numpy as np
from numba import njit

quick = njit(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
part = njit(inline="always")  # of a quick one: LLVM sees then that its arrays share no memory


def recurrence(a):
    n = len(a)
    y = np.ones_like(a)
    for i in range(1, n):
        y[i] = a[i] * y[i - 1] + math.sin(y[i - 1])
    total = np.sum(y)
    a_bar = np.zeros_like(a)
    y_bar = 1.0
    for i in range(n - 1, 0, -1):
        a_bar[i] = y_bar * y[i - 1]
        y_bar = 1.0 + y_bar * (a[i] + math.cos(y[i - 1]))
    return total, a_bar


def lorenz(u, steps):
    kept = np.empty((steps, 3))
    x, y, z = u[0], u[1], u[2]
    for t in range(steps):
        kept[t, 0], kept[t, 1], kept[t, 2] = x, y, z
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x = x + 1e-4 * dx
        y = y + 1e-4 * dy
        z = z + 1e-4 * dz
    x_bar = y_bar = z_bar = 1.0
    for t in range(steps - 1, -1, -1):
        a, b, c = kept[t, 0], kept[t, 1], kept[t, 2]
        dx, dy, dz = 1e-4 * x_bar, 1e-4 * y_bar, 1e-4 * z_bar
        x_bar += dy * (28.0 - c) + dz * b - 10.0 * dx
        y_bar += 10.0 * dx - dy + dz * a
        z_bar -= dy * a + 8.0 / 3.0 * dz
    return x + y + z, np.array([x_bar, y_bar, z_bar])


def lu(a):  # noqa: C901  (loops, as they are)
    n = a.shape[0]
    f = a.copy()
    for i in range(n):
        for j in range(i):
            for k in range(j):
                f[i, j] -= f[i, k] * f[k, j]
            f[i, j] /= f[j, j]
        for k in range(i):
            for j in range(i, n):
                f[i, j] -= f[i, k] * f[k, j]
    bar = np.ones((n, n))
    for i in range(n - 1, -1, -1):
        for k in range(i - 1, -1, -1):
            s = 0.0
            for j in range(i, n):
                s += bar[i, j] * f[k, j]
                bar[k, j] -= bar[i, j] * f[i, k]
            bar[i, k] -= s
        for j in range(i - 1, -1, -1):
            bar[i, j] /= f[j, j]
            bar[j, j] -= bar[i, j] * f[i, j]
            for k in range(j):
                bar[i, k] -= bar[i, j] * f[k, j]
                bar[k, j] -= bar[i, j] * f[i, k]
    return np.sum(f), bar


def gemm(a, b, c, alpha, beta):
    y = alpha * a @ b + c * beta
    return np.sum(y), np.ascontiguousarray((alpha * np.ones_like(y)) @ b.T)


@quick
def dot(a, b):
    s = 0.0
    for i in range(len(a)):
        s += a[i] * b[i]
    return s


@quick
def transpose_into(a, b):
    """Write the transpose of ``a`` into ``b``."""
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] = a[j, i]


@quick
def trisolv(l, b):
    """The transposed system has the adjoint of b; each row of L's is written once."""
    n = len(b)
    x = np.empty(n)
    for i in range(n):
        x[i] = (b[i] - dot(l[i, :i], x[:i])) / l[i, i]
    l_bar = np.empty((n, n))
    x_bar = np.ones(n)
    for i in range(n - 1, -1, -1):
        s = -x_bar[i] / l[i, i]
        row, row_bar = l[i], l_bar[i]
        for j in range(i):
            x_bar[j] += s * row[j]
            row_bar[j] = s * x[j]
        row_bar[i] = s * x[i]
        row_bar[i + 1 :] = 0.0
    return np.sum(x), l_bar


@quick
def durbin(r):
    """Levinson's step has an inverse, as alpha² < 1: only the alphas and betas are kept."""
    n = len(r)
    backwards = r[::-1].copy()  # r[k - 1 - i] is backwards[n - k + i]
    y, other = np.empty(n), np.empty(n)
    alpha, beta = np.empty(n), np.empty(n)
    y[0] = alpha[0] = -r[0]
    beta[0] = 1.0
    for k in range(1, n):
        beta[k] = beta[k - 1] * (1.0 - alpha[k - 1] * alpha[k - 1])
        alpha[k] = s = -(r[k] + dot(backwards[n - k :], y[:k])) / beta[k]
        old, new = y[:k], other[:k]
        for i in range(k):
            new[i] = old[i] + s * old[np.uint64(k - 1 - i)]  # unsigned: not from the end
        y, other = other, y
        y[k] = s
    total = np.sum(y)
    r_bar = np.zeros(n)  # backwards, too
    y_bar, other_bar = np.ones(n), np.empty(n)
    alpha_bar = beta_bar = 0.0
    for k in range(n - 1, 0, -1):
        alpha_bar += y_bar[k]
        s, factor = alpha[k], 1.0 / (1.0 - alpha[k] * alpha[k])
        new, old, new_bar, old_bar = y[:k], other[:k], y_bar[:k], other_bar[:k]
        for i in range(k):
            opposite = np.uint64(k - 1 - i)
            u, v = new_bar[opposite], (new[i] - s * new[opposite]) * factor
            alpha_bar += u * v
            old[i] = v
            old_bar[i] = new_bar[i] + s * u
        y, other = other, y
        y_bar, other_bar = other_bar, y_bar
        t = -alpha_bar / beta[k]
        r_bar[n - 1 - k] += t
        r_part, r_part_bar = backwards[n - k :], r_bar[n - k :]
        for i in range(k):
            old_bar[i] += t * r_part[i]
            r_part_bar[i] += t * old[i]
        beta_bar += t * s
        alpha_bar = -2.0 * alpha[k - 1] * beta[k - 1] * beta_bar
        beta_bar *= 1.0 - alpha[k - 1] * alpha[k - 1]
    r_bar[n - 1] -= alpha_bar + y_bar[0]
    return total, r_bar[::-1].copy()


@quick
def gramschmidt(a):
    """Columns as rows; what each step took from a column is given back, so none of them is kept."""
    m, n = a.shape
    w = np.empty((n, m))  # the columns, then q
    transpose_into(a, w)
    r = np.zeros((n, n))
    for k in range(n):
        q = w[k]
        r[k, k] = math.sqrt(dot(q, q))
        s = 1.0 / r[k, k]
        for i in range(m):
            q[i] *= s
        for j in range(k + 1, n):
            column = w[j]
            r[k, j] = s = dot(q, column)
            for i in range(m):
                column[i] -= s * q[i]
    total = np.sum(w) + np.sum(r)
    w_bar = np.empty((n, m))
    q_bar = np.empty(m)
    for k in range(n - 1, -1, -1):
        q = w[k]
        q_bar[:] = 1.0
        for j in range(k + 1, n):
            column, bar = w[j], w_bar[j]
            s = r[k, j]
            t = 1.0 - dot(q, bar)
            for i in range(m):
                before = column[i] + s * q[i]
                column[i] = before
                q_bar[i] += t * before - s * bar[i]
                bar[i] += t * q[i]
        s = 1.0 / r[k, k]
        t = 1.0 - dot(q, q_bar) * s
        bar = w_bar[k]
        for i in range(m):
            bar[i] = q_bar[i] * s + t * q[i]
            q[i] *= r[k, k]
    a_bar = np.empty((m, n))
    transpose_into(w_bar, a_bar)
    return total, a_bar


@quick
def _adi_factors(n, side, diagonal):
    """What elimination makes of the constant tridiagonal matrix: p, and one over its pivots."""
    p, w = np.zeros(n), np.zeros(n)
    for j in range(1, n - 1):
        w[j] = 1.0 / (side * p[j - 1] + diagonal)
        p[j] = -side * w[j]
    return p, w


@quick
def _adi_half(u, v, p, w, side, across):
    """Half a step, whose stencil is along the rows: every column of v solves the same system."""
    n = u.shape[0]
    m = n - 2
    v[0] = 1.0
    v[n - 1] = 1.0
    for j in range(1, n - 1):
        before, q = v[j - 1, 1 : n - 1], v[j, 1 : n - 1]
        left, middle, right = u[j, :m], u[j, 1 : n - 1], u[j, 2:]
        s, t, centre = side * w[j], across * w[j], (1.0 + 2.0 * across) * w[j]
        for i in range(m):
            q[i] = centre * middle[i] - t * (left[i] + right[i]) - s * before[i]
    for j in range(n - 2, 0, -1):
        s, after, q = p[j], v[j + 1, 1 : n - 1], v[j, 1 : n - 1]
        for i in range(m):
            q[i] += s * after[i]


@quick
def _adi_half_bar(v_bar, u_bar, p, w, side, across):
    """Transposed: ``v_bar`` is used up, the inner rows of ``u_bar`` are written."""
    n = v_bar.shape[0]
    m = n - 2
    for j in range(1, n - 2):
        s, bar, after = p[j], v_bar[j, 1 : n - 1], v_bar[j + 1, 1 : n - 1]
        for i in range(m):
            after[i] += s * bar[i]
    v_bar[n - 1] = 0.0
    for j in range(n - 2, 0, -1):
        row, after = v_bar[j], v_bar[j + 1, 1 : n - 1]
        row[0] = row[n - 1] = 0.0
        left, middle, right, bar = row[:m], row[1 : n - 1], row[2:], u_bar[j, 1 : n - 1]
        for i in range(m):
            middle[i] = w[j] * (middle[i] - side * after[i])
        u_bar[j, 0], u_bar[j, n - 1] = -across * row[1], -across * row[n - 2]
        for i in range(m):
            bar[i] = (1.0 + 2.0 * across) * middle[i] - across * (left[i] + right[i])


@quick
def adi(u, steps):
    """Linear in u: nothing is kept, p is one for all steps; the halves differ by a transpose."""
    n = u.shape[0]
    a = -n * n / steps
    d = -0.5 * n * n / steps
    p, w = _adi_factors(n, a, 1.0 - 2.0 * a)
    p2, w2 = _adi_factors(n, d, 1.0 - 2.0 * d)
    x, y = u.copy(), np.empty((n, n))
    for _ in range(steps):
        _adi_half(x, y, p, w, a, d)
        transpose_into(y, x)
        _adi_half(x, y, p2, w2, d, a)
        transpose_into(y, x)
    total = np.sum(u[0]) + np.sum(u[n - 1]) + np.sum(x[1 : n - 1])
    x[:] = 1.0
    for _ in range(steps):
        transpose_into(x, y)
        _adi_half_bar(y, x, p2, w2, d, a)
        transpose_into(x, y)
        _adi_half_bar(y, x, p, w, a, d)
    x[0] = 1.0
    x[n - 1] = 1.0
    return total, x


@part
def _advection_eliminate(h, slope, x, c, pivot, dtr):
    """Row k of a system is -h[k - 1], dtr + h[k - 1] - h[k], h[k]; x is part of its right side."""
    nk, nj = x.shape
    for j in range(nj):
        pivot[0, j] = s = 1.0 / (dtr - h[0, j])
        c[0, j] = h[0, j] * s
        x[0, j] = (x[0, j] - h[0, j] * slope[0, j]) * s
    for k in range(1, nk - 1):
        for j in range(nj):
            g, f = h[k - 1, j], h[k, j]
            pivot[k, j] = s = 1.0 / (dtr + g - f + c[k - 1, j] * g)
            c[k, j] = f * s
            right = x[k, j] - g * slope[k - 1, j] - f * slope[k, j]
            x[k, j] = (right + x[k - 1, j] * g) * s
    k = nk - 1
    for j in range(nj):
        g = h[k - 1, j]
        pivot[k, j] = s = 1.0 / (dtr + g + c[k - 1, j] * g)
        x[k, j] = (x[k, j] - g * slope[k - 1, j] + x[k - 1, j] * g) * s


@part
def _advection_solve_both(h, slope, x, c, pivot, z, dtr):
    """Solve the systems and the transposed ones; ``h`` is replaced by its adjoint."""
    nk, nj = x.shape
    z[0] = dtr
    for k in range(1, nk):
        for j in range(nj):
            z[k, j] = dtr - c[k - 1, j] * z[k - 1, j]
    total = 0.0
    for j in range(nj):
        total += x[nk - 1, j]
        z[nk - 1, j] *= pivot[nk - 1, j]
    for k in range(nk - 2, -1, -1):
        for j in range(nj):
            after = z[k + 1, j]
            x[k, j] = y = x[k, j] - c[k, j] * x[k + 1, j]
            total += y
            z[k, j] = s = (z[k, j] + h[k, j] * after) * pivot[k, j]
            h[k, j] = -(s + after) * (x[k + 1, j] - y + slope[k, j])
    return total


@quick
def vertical_advection(wcon, u_stage, u_pos, utens, utens_stage, dtr):
    """The adjoint of a solution solves the transposed system; columns lie side by side."""
    ni, nj, nk = u_stage.shape
    wcon_bar = np.zeros(wcon.shape)
    h, slope, x = np.empty((nk, nj)), np.empty((nk, nj)), np.empty((nk, nj))
    c, pivot, z = np.empty((nk, nj)), np.empty((nk, nj)), np.empty((nk, nj))
    total = 0.0
    for i in range(ni):
        for j in range(nj):
            lower, upper = wcon[i, j, 1:], wcon[i + 1, j, 1:]
            stage, pos, tens, own = u_stage[i, j], u_pos[i, j], utens[i, j], utens_stage[i, j]
            for k in range(nk):
                x[k, j] = dtr * pos[k] + tens[k] + own[k]
            for k in range(nk):
                total -= pos[k]
            for k in range(nk - 1):
                h[k, j] = 0.125 * (lower[k] + upper[k])
                slope[k, j] = stage[k + 1] - stage[k]
        _advection_eliminate(h, slope, x, c, pivot, dtr)
        total += _advection_solve_both(h, slope, x, c, pivot, z, dtr)
        for j in range(nj):
            lower, upper = wcon_bar[i, j, 1:], wcon_bar[i + 1, j, 1:]
            for k in range(nk - 1):
                upper[k] = t = 0.125 * h[k, j]
                lower[k] += t
    return dtr * total, wcon_bar


HAND = {
    f.__name__: f
    for f in (
        recurrence,
        lorenz,
        lu,
        gemm,
        trisolv,
        durbin,
        gramschmidt,
        adi,
        vertical_advection,
    )
}
