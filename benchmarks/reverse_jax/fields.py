"""Array programs of images, signals, meshes, particles and self-energies, for JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax.lax import fori_loop


def corners(image):
    dx = 0.5 * (image[1:-1, 2:] - image[1:-1, :-2])
    dy = 0.5 * (image[2:, 1:-1] - image[:-2, 1:-1])

    def blurred(product):
        rows = product[:-2] + 2.0 * product[1:-1] + product[2:]
        return (rows[:, :-2] + 2.0 * rows[:, 1:-1] + rows[:, 2:]) / 16.0

    xx, xy, yy = blurred(dx * dx), blurred(dx * dy), blurred(dy * dy)
    return jnp.sum(xx * yy - xy * xy - 0.05 * (xx + yy) ** 2)


def bilateral(image, radius):
    padded = jnp.pad(image, radius, mode="edge")
    rows, columns = image.shape
    above, below = jnp.zeros_like(image), jnp.zeros_like(image)
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            other = padded[i : i + rows, j : j + columns]
            distance = (i - radius) ** 2 + (j - radius) ** 2
            weight = jnp.exp(-0.5 * distance / radius**2 - 8.0 * (other - image) ** 2)
            above += weight * other
            below += weight
    return jnp.sum((above / below) ** 2)


def denoising(image, steps):
    def step(_, u):
        dx = jnp.diff(u, axis=1, append=u[:, -1:])
        dy = jnp.diff(u, axis=0, append=u[-1:])
        length = jnp.sqrt(dx * dx + dy * dy + 1e-3)
        px, py = dx / length, dy / length
        u = u + 0.02 * (px - jnp.roll(px, 1, axis=1) + py - jnp.roll(py, 1, axis=0))
        return u - 0.04 * (u - image)

    u = fori_loop(0, steps, step, image)
    return jnp.sum(u * u)


def spectrogram(signal, weights, hop):
    """All windows at once."""
    frames, width = weights.shape[0], 2 * (weights.shape[1] - 1)
    window = 0.5 - 0.5 * jnp.cos(2.0 * jnp.pi * jnp.arange(width) / width)
    parts = signal[jnp.arange(frames)[:, None] * hop + jnp.arange(width)]
    power = jnp.abs(jnp.fft.rfft(window * parts)) ** 2
    return jnp.sum(weights * jnp.log1p(power))


def equaliser(signal, taps):
    y = signal
    for k in range(len(taps)):
        y = jnp.tanh(jnp.convolve(y, taps[k], mode="same"))
    return jnp.sum(y * y)


def surface(vertices, faces):
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    normals = jnp.cross(b - a, c - a)
    area = 0.5 * jnp.sum(jnp.linalg.norm(normals, axis=1))
    volume = jnp.sum(a * normals) / 6.0
    return area**1.5 / jnp.sqrt(1.0 + volume**2)


def smoothing(vertices, edges, steps):
    i, j = edges[:, 0], edges[:, 1]
    degree = jnp.bincount(edges.ravel(), length=len(vertices))[:, None]

    def step(_, x):
        pull = jnp.zeros_like(x).at[i].add(x[j] - x[i]).at[j].add(x[i] - x[j])
        return x + 0.3 * pull / jnp.maximum(degree, 1)

    return jnp.sum((fori_loop(0, steps, step, vertices) - vertices) ** 2)


def lennard_jones(x, cutoff):
    d = x[:, None] - x
    d -= jnp.round(d)
    i, j = jnp.triu_indices(len(x), 1)
    r2 = jnp.sum(d * d, axis=-1)[i, j] + 1e-2
    sixth = (0.01 / r2) ** 3
    return jnp.sum(jnp.where(r2 < cutoff * cutoff, 4.0 * (sixth * sixth - sixth), 0.0))


def deposit(x, charges, cells):
    at = x * cells
    left = jnp.floor(at).astype(int)
    part = at - left
    density = jnp.zeros(cells)
    density = density.at[left % cells].add(charges * (1.0 - part))
    density = density.at[(left + 1) % cells].add(charges * part)
    density -= jnp.mean(density)
    field = jnp.cumsum(density) / cells
    field -= jnp.mean(field)
    return 0.5 * jnp.sum(field * field)


def self_energies(green, phonons, coupling):
    """Products over momenta, atoms and directions at once, for each step of the energies."""
    left = jnp.einsum("keamn,ainp->keaimp", green, coupling)
    sigma = jnp.zeros_like(green)
    for q in range(phonons.shape[0]):
        for w in range(phonons.shape[1]):
            right = jnp.einsum("ajmn,aij->aimn", coupling, phonons[q, w])
            moved = jnp.roll(left, q, axis=0)[:, : green.shape[1] - w]
            sigma = sigma.at[:, w:].add(jnp.einsum("keaimp,aipn->keamn", moved, right))
    return jnp.sum(sigma * sigma)


def self_energy_loops(green, phonons, coupling):
    """As above: its loops one after the other would be too many operations for XLA."""
    return self_energies(green, phonons, coupling)
