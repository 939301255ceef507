"""``ht``: hand tracking, where the points of a hand are for 26 angles and places.

A hand is a skeleton of bones, each placed relative to its parent, and vertices that move with
several bones by weights. The model's numbers are drawn, since the published ones are no part of
this project; its sizes are those of ADBench's simple problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.adbench.problem import Arguments, Problem

BONES, FINGERS = 22, 5


@dataclass
class Model:
    """A hand at rest."""

    parents: np.ndarray  # (bones,), -1 for the first
    relatives: np.ndarray  # (bones, 4, 4): a bone's frame in that of its parent
    inverses: np.ndarray  # (bones, 4, 4): of the frames at rest
    positions: np.ndarray  # (vertices, 4): homogeneous
    weights: np.ndarray  # (bones, vertices)


def _pose(theta):
    """Rows of three angles, one for each bone after three for the whole hand."""
    pose = np.zeros((BONES + 3, 3))
    pose[0] = theta[0:3]
    pose[1] = 1.0
    pose[2] = theta[3:6]
    at, row = 6, 5
    for _ in range(FINGERS):
        for joint in range(2, 5):
            pose[row, 0] = theta[at]
            at += 1
            if joint == 2:
                pose[row, 1] = theta[at]
                at += 1
            row += 1
        row += 1
    return pose


def _by_euler(angles):
    cx, sx = np.cos(angles[0]), np.sin(angles[0])
    cy, sy = np.cos(angles[2]), np.sin(angles[2])
    cz, sz = np.cos(angles[1]), np.sin(angles[1])
    x = np.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    y = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    z = np.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    return z @ y @ x


def _by_axis(v):
    square = v @ v
    if square < 1e-8:
        return np.eye(3)
    angle = np.sqrt(square)
    x, y, z = v[0] / angle, v[1] / angle, v[2] / angle
    s, c = np.sin(angle), np.cos(angle)
    d = 1.0 - c
    return np.array([
        [x * x * d + c, x * y * d - z * s, x * z * d + y * s],
        [x * y * d + z * s, y * y * d + c, y * z * d - x * s],
        [x * z * d - y * s, z * y * d + x * s, z * z * d + c],
    ])  # fmt: skip


def arrays(theta, model, seen, points):
    pose = _pose(theta)
    frames = np.zeros((BONES, 4, 4))
    moved = np.zeros((len(model.positions), 3))
    for bone in range(BONES):
        turn = np.eye(4)
        turn[:3, :3] = _by_euler(pose[bone + 3])
        frame = model.relatives[bone] @ turn
        parent = model.parents[bone]
        if parent >= 0:
            frame = frames[parent] @ frame
        frames[bone] = frame
        full = frame @ model.inverses[bone]
        moved = moved + model.weights[bone][:, np.newaxis] * (model.positions @ full.T)[:, :3]
    placed = (moved * pose[1]) @ _by_axis(pose[0]).T + pose[2]
    return points - placed[seen]


def loops(theta, model, seen, points):
    pose = _pose(theta)
    frames = np.zeros((BONES, 4, 4))
    vertices = len(model.positions)
    moved = np.zeros((vertices, 3))
    frame, full, turn = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((4, 4))
    for bone in range(BONES):
        _store_euler(turn, pose[bone + 3])
        _store_product(frame, model.relatives[bone], turn)
        parent = model.parents[bone]
        if parent >= 0:
            _store_product(frames[bone], frames[parent], frame)
        else:
            frames[bone] = frame
        _store_product(full, frames[bone], model.inverses[bone])
        for v in range(vertices):
            for i in range(3):
                s = full[i, 3] * model.positions[v, 3]
                for j in range(3):
                    s += full[i, j] * model.positions[v, j]
                moved[v, i] += model.weights[bone, v] * s
    turned = _by_axis(pose[0])
    out = np.empty((len(seen), 3))
    for p in range(len(seen)):
        v = seen[p]
        for i in range(3):
            s = pose[2, i]
            for j in range(3):
                s += turned[i, j] * moved[v, j] * pose[1, j]
            out[p, i] = points[p, i] - s
    return out


def _store_euler(out, angles):
    out[:] = 0.0
    out[:3, :3] = _by_euler(angles)
    out[3, 3] = 1.0


def _store_product(out, a, b):
    for i in range(4):
        for j in range(4):
            s = 0.0
            for k in range(4):
                s += a[i, k] * b[k, j]
            out[i, j] = s


def for_jax(jax: Any) -> Any:
    """The residuals for JAX: all bones at once, but for the chains of frames."""
    jnp = jax.numpy

    def rows(theta):
        pose = [theta[0:3], jnp.ones(3), theta[3:6]] + [jnp.zeros(3)] * BONES
        at, row = 6, 5
        for _ in range(FINGERS):
            for joint in range(2, 5):
                second = theta[at + 1] if joint == 2 else 0.0
                pose[row] = jnp.stack([theta[at], jnp.asarray(second), jnp.asarray(0.0)])
                at += 2 if joint == 2 else 1
                row += 1
            row += 1
        return jnp.stack(pose)

    def by_euler(a):
        cx, sx, cy, sy, cz, sz = (f(a[k]) for k in (0, 2, 1) for f in (jnp.cos, jnp.sin))
        x = jnp.array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
        y = jnp.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
        z = jnp.array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
        return z @ y @ x

    def by_axis(v):
        angle = jnp.sqrt(v @ v)
        x, y, z = v / angle
        s, c = jnp.sin(angle), jnp.cos(angle)
        d = 1.0 - c
        return jnp.array([
            [x * x * d + c, x * y * d - z * s, x * z * d + y * s],
            [x * y * d + z * s, y * y * d + c, y * z * d - x * s],
            [x * z * d - y * s, z * y * d + x * s, z * z * d + c],
        ])  # fmt: skip

    def value(theta, model, seen, points):
        pose = rows(theta)
        turns = jnp.zeros((BONES, 4, 4)).at[:, 3, 3].set(1.0)
        turns = turns.at[:, :3, :3].set(jax.vmap(by_euler)(pose[3:]))
        relatives = model.relatives @ turns
        frames = []
        for bone in range(BONES):
            parent = int(model.parents[bone])
            frames.append(relatives[bone] if parent < 0 else frames[parent] @ relatives[bone])
        full = jnp.stack(frames) @ model.inverses
        moved = jnp.einsum("bv,bij,vj->vi", model.weights, full[:, :3], model.positions)
        placed = (moved * pose[1]) @ by_axis(pose[0]).T + pose[2]
        return points - placed[seen]

    return value


def for_torch(torch: Any) -> Any:
    """The residuals for PyTorch."""

    def rows(theta):
        zero, one = torch.zeros(3, dtype=theta.dtype), torch.ones(3, dtype=theta.dtype)
        pose = [theta[0:3], one, theta[3:6]] + [zero] * BONES
        at, row = 6, 5
        for _ in range(FINGERS):
            for joint in range(2, 5):
                second = theta[at + 1] if joint == 2 else zero[0]
                pose[row] = torch.stack([theta[at], second, zero[0]])
                at += 2 if joint == 2 else 1
                row += 1
            row += 1
        return torch.stack(pose)

    def matrix(*items):
        return torch.stack([torch.stack(row) for row in items])

    def by_euler(a):
        o, i = torch.zeros_like(a[0]), torch.ones_like(a[0])
        cx, sx, cy, sy, cz, sz = (f(a[k]) for k in (0, 2, 1) for f in (torch.cos, torch.sin))
        x = matrix((i, o, o), (o, cx, -sx), (o, sx, cx))
        y = matrix((cy, o, sy), (o, i, o), (-sy, o, cy))
        z = matrix((cz, -sz, o), (sz, cz, o), (o, o, i))
        return z @ y @ x

    def by_axis(v):
        angle = torch.sqrt(v @ v)
        x, y, z = v / angle
        s, c = torch.sin(angle), torch.cos(angle)
        d = 1.0 - c
        return matrix(
            (x * x * d + c, x * y * d - z * s, x * z * d + y * s),
            (x * y * d + z * s, y * y * d + c, y * z * d - x * s),
            (x * z * d - y * s, z * y * d + x * s, z * z * d + c),
        )

    def value(theta, model, seen, points):
        pose = rows(theta)
        frames = []
        for bone in range(BONES):
            top = torch.nn.functional.pad(by_euler(pose[bone + 3]), (0, 1))
            turn = torch.cat((top, torch.eye(4, dtype=theta.dtype)[3:]))
            frame = model.relatives[bone] @ turn
            parent = int(model.parents[bone])
            frames.append(frame if parent < 0 else frames[parent] @ frame)
        full = torch.stack(frames) @ model.inverses
        moved = torch.einsum("bv,bij,vj->vi", model.weights, full[:, :3], model.positions)
        placed = (moved * pose[1]) @ by_axis(pose[0]).T + pose[2]
        return points - placed[seen]

    return value


def make(vertices: int, count: int) -> Arguments:
    """A drawn hand: a root, a wrist, and five fingers of four bones."""
    rng = np.random.default_rng(3)
    parents = np.array(
        [-1, 0] + [p for f in range(FINGERS) for p in (1, *range(2 + 4 * f, 5 + 4 * f))]
    )
    relatives = np.zeros((BONES, 4, 4))
    frames = np.zeros((BONES, 4, 4))
    for bone in range(BONES):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        relatives[bone, :3, :3] = turn
        relatives[bone, :3, 3] = rng.normal(size=3)
        relatives[bone, 3, 3] = 1.0
        frame = relatives[bone]
        frames[bone] = frame if bone == 0 else frames[parents[bone]] @ frame
    positions = np.ones((vertices, 4))
    positions[:, :3] = rng.normal(size=(vertices, 3))
    weights = rng.random((BONES, vertices))
    weights /= weights.sum(axis=0)
    model = Model(parents, relatives, np.linalg.inv(frames), positions, weights)
    return (
        0.3 * rng.normal(size=26), model, rng.integers(0, vertices, count),
        rng.normal(size=(count, 3)),
    )  # fmt: skip


PROBLEM = Problem(
    "ht", arrays, loops, make, (7, 5), (544, 100), (0,), 12.0, for_jax, for_torch, jacobian=True
)
