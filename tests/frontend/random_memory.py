"""Random programs on arrays without axes, on arrays of other memory orders, and on views of views.

Reshapes and ravels that are views or copies, ``out=`` and ``where=``, flat iterators, stores at no
axes. ``f`` takes four numbers in an array.
"""

PROLOGUE = """\
import numpy as np


def half(y, out=None):
    return np.multiply(y, 0.5, out=out)


def f(x):
    z = np.array(x[0])
    w = x[1:2].reshape(())
    m = np.outer(x[:2], x[1:]) * 0.5
    t = m.T
    p = np.asfortranarray(m) + 0.1
    v = x * 1.0
    c = x[:2] + 1j * x[2:]
    s = x[3] * 0.5

"""
EPILOGUE = "    return s + z + w * 0.3 + m.sum() * 0.2 + (t[0] * 0.3).sum() + p[:, 0].sum() * 0.1 + (p * p).sum() + v @ v + (c * c.conj()).real.sum() * 0.2 + c.imag[1]\n"
CALLS = [
    "z[()]",
    "z.item()",
    "float(z)",
    "z * {n}",
    "(z + w)[()]",
    "np.asarray({n})[()]",
    "np.sum(z)",
    "z.reshape(1)[0]",
    "z[None][0]",
    "z.copy()",
    "{m}[{j}, {k}]",
    "{m}.ravel()[{i}]",
    '{m}.ravel("K")[{i}]',
    '{m}.reshape(-1, order="F")[{i}]',
    "{m}.flat[{i}]",
    "{m}.T.sum(axis=0)[{j}]",
    "{m}.reshape(3, 2)[{k}, {j}]",
    "np.transpose({m})[{k}, {j}]",
    "np.add({m}, {n}, where={m} > 0.2, out={m}.copy())[{j}, {k}]",
    "np.einsum('ij,ij->', {m}, p)",
    "({m} @ {m}.T)[{j}, {j}]",
    "np.linalg.norm({m})",
    "np.swapaxes({m}, 0, 1)[{k}][{j}]",
    "np.cumsum({m})[{i}]",
    "np.diagonal({m})[{j}]",
    "half({n})",
    "{m}.max()",
    "{m}.mean(axis=1)[{j}]",
    "np.concatenate([{m}, p])[{j}, {k}]",
    "np.sort({m}, axis=None)[{i}]",
    "abs(c[{j}])",
    "c.real[{j}]",
    "(c[0] * c[1]).imag",
    "np.dot({v}, {v})",
    "v.reshape(2, 2).T[{j}, 0]",
    "sum({m}.flat)",
    "sum(y.sum() for y in {m})",
    "np.trace({m}[:, :2])",
    "np.interp({n}, [0.0, 1.0, 2.0], {m}[0])",
    "np.vectorize(lambda y: y * 0.5)({m})[{j}, {k}]",
    "np.prod({m} + 1.0)",
    "{m}[:, ::-1][{j}, {k}]",
    "{m}[..., {k}].sum()",
    "{m}[[1, 0], [{k}, {k}]].sum()",
    "np.where({m} > {n}, {m}, z).sum()",
    "np.broadcast_to(z, (2,)).sum()",
]
NUMBERS = [
    "s",
    "z",
    "w",
    "z[()]",
    "v[{i}]",
    "m[{j}, {k}]",
    "p[{j}, {k}]",
    "x[{i}]",
    "np.sin(s)",
    "np.cos(z)",
    "0.3",
    "c[0].real",
    "v[1, ...]",
]
STATE = [
    "z[()] = {n}",
    "z[...] = {n}",
    "z += {n} * 0.1",
    "z *= 0.5",
    "z[()] *= {n}",
    "z = np.array({n})",
    "z = np.asarray({n})[()] * np.ones(())",
    "z = v[{i}, ...]",
    "z = m[{j}, {k}, ...]",
    "z = z.copy()",
    "w = z",
    "w = z[...]",
    "w = z[()] * 1.0",
    "w = {n} * 0.5",
    "s = z[()]",
    "np.sin(z, out=z)",
    "np.add(z, {n}, out=z)",
    "np.copyto(z, {n})",
    "z.fill({n})",
    "z.flat[0] = {n}",
    "half(z, z)",
    "m[{j}, {k}] = {n}",
    "m[{j}] = {m}[{j}] * 0.5",
    "m[:, {k}] += {n}",
    "m *= 0.5",
    "m += p",
    "m.flat[{i}] = {n}",
    "m.T[{k}] = {n}",
    "t[{k}, {j}] = {n}",
    "t[1:] = t[:2].copy()",
    "t = p.T",
    "t = m.T.copy()",
    "t = np.swapaxes(m, 0, 1)",
    "m = {m} * 1.0",
    "m = {m}.copy()",
    'm = {m}.copy("K")',
    'm = {m}.copy("F")',
    "m = np.ascontiguousarray({m})",
    "m = {m}",
    "p = {m} + 0.1",
    "p = np.asfortranarray({m})",
    "p = np.empty_like({m}); p[...] = m",
    'p = np.zeros((2, 3), order="F"); p += m',
    "p = np.sin({m}.T).T",
    "p = t.T",
    "v = p.reshape(-1)[:4]; v[0] = {n}",
    "v = p.ravel()[1:5]; v *= 0.5",
    'v = p.ravel("K")[1:5]; v[{i}] = {n}',
    'v = p.ravel("F")[:4]; v += {n}',
    "v = t.reshape(-1)[2:]; v[{i}] = {n}",
    "v = {m}.flatten()[:4]; v[1] = {n}",
    "v = m.reshape(-1)[::2].repeat(2)[:4]",
    "v = {m}.reshape(3, 2)[:2].reshape(-1); v -= 0.1",
    "v = np.diagonal({m}).repeat(2)",
    "v[{i}] = {n}",
    "v.reshape(2, 2).T[0] = {n}",
    "v.reshape(2, 2)[:, 1] *= {n}",
    "v[::-1][:2] += {n}",
    "v[1:] += v[:-1]",
    "np.multiply(v, {n}, out=v, where=v > 0.3)",
    "np.sin(m, out=p)",
    "np.sin(m, out=m.T.T)",
    "np.add.at(v, [0, 1, 0], {n})",
    "np.put(v, [0, 2], {n})",
    "np.put(p, [0, 3], {n})",
    "np.copyto(m, {m} * 0.5, where=m > 0.2)",
    "np.putmask(p, p > 1.0, {n})",
    "m[m > 1.0] = {n}",
    "p[[0, 1], [{k}, 0]] += {n}",
    "c[{j}] = {n}",
    "c.real[{j}] = {n}",
    "c.imag = v[:2]",
    "c.real *= 0.5",
    "c *= 0.5 + 0.5j",
    "c = c * c.conj()",
    "c = m[:, 0] + 1j * p[:, 1]",
    "np.add(m, 0.1, order='F', out=m)",
    "p = np.add(m, 0.1, order='F')",
    "s = {n}",
]
WORDS = {
    "call": CALLS,
    "n": NUMBERS,
    "m": ["m", "p", "t.T", "m[::-1]", "p[:, ::-1]", "(m + p)", "m.copy()", "np.sin(p)", "(v[:3] * np.ones((2, 1)))"],
    "v": ["v", "v[::-1]", "x", "m.ravel()[:4]", "np.cos(v)"],
    "i": ["0", "1", "2", "3"],
    "j": ["0", "1"],
    "k": ["0", "1", "2"],
}  # fmt: skip
SETS = [
    "s = {call} * 0.3",
    "s = s * 0.5 + {call} * 0.1",
    "z[()] = {call} * 0.3",
    "z = np.array({call}) * 0.2",
    "m[{j}, {k}] = {call} * 0.3",
    "p[{j}, {k}] += {call} * 0.1",
    "v[{i}] = np.tanh({call})",
    "w = {call} * 0.2 + {call} * 0.1",
]
TESTS = ["s > 0.5", "z > w", "x[0] > 0.9", "m[0, 0] > p[1, 1]", "v.sum() > 1.0"]
LOOPS = [
    "for i in range(3):",
    "for y in m:",
    "for y in p.flat:",
    "for y in t:",
    "for i, y in enumerate(v):",
    "for y, q in zip(m.T, p.T):",
]
LEAVES = ["if s > 3.0:", "    return s * m.sum()"]
NESTED = "({call} * 0.2)"
