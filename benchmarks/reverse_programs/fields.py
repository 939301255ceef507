"""Array programs of NumPy style: images, signals, meshes, particles and self-energies."""

from __future__ import annotations

import numpy as np

from benchmarks.reverse_programs.problem import Arguments, Problem, normal, random


def corners(image):
    """Harris and Stephens' response to corners, from gradients that are blurred by 1, 2, 1."""
    dx = 0.5 * (image[1:-1, 2:] - image[1:-1, :-2])
    dy = 0.5 * (image[2:, 1:-1] - image[:-2, 1:-1])
    blurred = []
    for product in (dx * dx, dx * dy, dy * dy):
        rows = product[:-2] + 2.0 * product[1:-1] + product[2:]
        blurred.append((rows[:, :-2] + 2.0 * rows[:, 1:-1] + rows[:, 2:]) / 16.0)
    xx, xy, yy = blurred
    return np.sum(xx * yy - xy * xy - 0.05 * (xx + yy) ** 2)


def bilateral(image, radius):
    """A bilateral filter: neighbours count by their distance and by their brightness."""
    padded = np.pad(image, radius, mode="edge")
    rows, columns = image.shape
    above, below = np.zeros_like(image), np.zeros_like(image)
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            other = padded[i : i + rows, j : j + columns]
            distance = (i - radius) ** 2 + (j - radius) ** 2
            weight = np.exp(-0.5 * distance / radius**2 - 8.0 * (other - image) ** 2)
            above += weight * other
            below += weight
    return np.sum((above / below) ** 2)


def denoising(image, steps):
    """Steepest descent on the smoothed total variation of an image, in place."""
    u = image.copy()
    for _ in range(steps):
        dx = np.diff(u, axis=1, append=u[:, -1:])
        dy = np.diff(u, axis=0, append=u[-1:])
        length = np.sqrt(dx * dx + dy * dy + 1e-3)
        px, py = dx / length, dy / length
        u += 0.02 * (px - np.roll(px, 1, axis=1) + py - np.roll(py, 1, axis=0))
        u -= 0.04 * (u - image)
    return np.sum(u * u)


def spectrogram(signal, weights, hop):
    """The logarithmic power of overlapping windows of a signal, weighted."""
    width = 2 * (weights.shape[1] - 1)
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(width) / width)
    total = 0.0
    for k in range(weights.shape[0]):
        power = np.abs(np.fft.rfft(window * signal[k * hop : k * hop + width])) ** 2
        total += np.sum(weights[k] * np.log1p(power))
    return total


def equaliser(signal, taps):
    """A cascade of filters with a soft limit after each."""
    y = signal
    for k in range(len(taps)):
        y = np.tanh(np.convolve(y, taps[k], mode="same"))
    return np.sum(y * y)


def surface(vertices, faces):
    """Area and volume of a triangulated surface, the one over the other as people compare them."""
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    normals = np.cross(b - a, c - a)
    area = 0.5 * np.sum(np.linalg.norm(normals, axis=1))
    volume = np.sum(a * normals) / 6.0
    return area**1.5 / np.sqrt(1.0 + volume**2)


def smoothing(vertices, edges, steps):
    """Laplacian smoothing of a mesh: each vertex moves towards its neighbours."""
    i, j = edges[:, 0], edges[:, 1]
    degree = np.bincount(edges.ravel(), minlength=len(vertices))[:, np.newaxis]
    x = vertices.copy()
    for _ in range(steps):
        pull = np.zeros_like(x)
        np.add.at(pull, i, x[j] - x[i])
        np.add.at(pull, j, x[i] - x[j])
        x += 0.3 * pull / np.maximum(degree, 1)
    return np.sum((x - vertices) ** 2)


def lennard_jones(x, cutoff):
    """The energy of particles in a periodic box of length one, all pairs as arrays."""
    d = x[:, np.newaxis] - x
    d -= np.round(d)
    squares = np.sum(d * d, axis=-1)
    i, j = np.triu_indices(len(x), 1)
    r2 = squares[i, j] + 1e-2
    inside = r2 < cutoff * cutoff
    sixth = (0.01 / r2) ** 3
    return np.sum(np.where(inside, 4.0 * (sixth * sixth - sixth), 0.0))


def deposit(x, charges, cells):
    """The energy of charges that are deposited on a periodic grid, cloud in cell."""
    at = x * cells
    left = np.floor(at).astype(np.int64)
    part = at - left
    density = np.zeros(cells)
    np.add.at(density, left % cells, charges * (1.0 - part))
    np.add.at(density, (left + 1) % cells, charges * part)
    density -= np.mean(density)
    field = np.cumsum(density) / cells
    field -= np.mean(field)
    return 0.5 * np.sum(field * field)


def self_energies(green, phonons, coupling):
    """Scattering self-energies: ``green`` (k, E, a, n, n), ``phonons`` (q, w, a, 3, 3).

    ``coupling`` is (a, 3, n, n). Products over momenta, atoms and directions at once.
    """
    left = np.einsum("keamn,ainp->keaimp", green, coupling)
    sigma = np.zeros_like(green)
    for q in range(phonons.shape[0]):
        moved = np.roll(left, q, axis=0)
        for w in range(phonons.shape[1]):
            right = np.einsum("ajmn,aij->aimn", coupling, phonons[q, w])
            sigma[:, w:] += np.einsum("keaimp,aipn->keamn", moved[:, : green.shape[1] - w], right)
    return np.sum(sigma * sigma)


def self_energy_loops(green, phonons, coupling):
    """The same with the loops of NPBench's scattering_self_energies."""
    momenta, energies, atoms = green.shape[:3]
    sigma = np.zeros_like(green)
    for k in range(momenta):
        for e in range(energies):
            for q in range(phonons.shape[0]):
                for w in range(phonons.shape[1]):
                    if e - w < 0:
                        continue
                    for a in range(atoms):
                        for i in range(3):
                            left = green[k - q, e - w, a] @ coupling[a, i]
                            for j in range(3):
                                right = coupling[a, j] * phonons[q, w, a, i, j]
                                sigma[k, e, a] += left @ right
    return np.sum(sigma * sigma)


# -- arguments


def _image(rows: int, columns: int, *rest: int) -> Arguments:
    return 0.5 + 0.2 * normal(rows, columns), *rest


def _spectrogram(frames: int, bins: int, hop: int) -> Arguments:
    return normal((frames - 1) * hop + 2 * (bins - 1)), random(frames, bins), hop


def _equaliser(length: int, filters: int, taps: int) -> Arguments:
    return normal(length), normal(filters, taps) / np.sqrt(taps)


def _mesh(side: int) -> tuple[np.ndarray, np.ndarray]:
    """The vertices of a bumpy square, and its triangles."""
    n = side + 1
    u, v = np.meshgrid(np.linspace(0.0, 1.0, n), np.linspace(0.0, 1.0, n), indexing="ij")
    vertices = np.stack([u, v, 1.0 + 0.1 * normal(n, n)], axis=-1).reshape(-1, 3)
    corner = (np.arange(side)[:, np.newaxis] * n + np.arange(side)).ravel()
    lower = np.stack([corner, corner + n, corner + 1], axis=1)
    upper = np.stack([corner + 1, corner + n, corner + n + 1], axis=1)
    return vertices, np.concatenate([lower, upper])


def _smoothing(side: int, steps: int) -> Arguments:
    vertices, faces = _mesh(side)
    pairs = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    return vertices, np.unique(np.sort(pairs, axis=1), axis=0), steps


def _self_energies(momenta: int, energies: int, atoms: int, orbitals: int) -> Arguments:
    return (
        normal(momenta, energies, atoms, orbitals, orbitals),
        normal(momenta, max(energies // 2, 1), atoms, 3, 3),
        normal(atoms, 3, orbitals, orbitals),
    )


def _lennard_jones(count: int) -> Arguments:
    return random(count, 3) - 0.5, 0.4


def _deposit(count: int, cells: int) -> Arguments:
    return random(count) - 0.5, random(2, count)[1], cells


PROBLEMS = [
    Problem(corners, _image, (7, 8), (256, 256), (1500, 1500), interpreted=True),
    Problem(bilateral, _image, (5, 6, 1), (100, 100, 2), (500, 500, 3), interpreted=True),
    Problem(denoising, _image, (5, 6, 3), (64, 64, 20), (400, 400, 50), interpreted=True),
    Problem(spectrogram, _spectrogram, (3, 5, 4), (60, 129, 128), (999, 513, 512), (0, 1), True),
    Problem(equaliser, _equaliser, (12, 2, 3), (4000, 4, 15), (100_000, 4, 63), (0, 1), True),
    Problem(surface, _mesh, (3,), (60,), (500,), interpreted=True),
    Problem(smoothing, _smoothing, (3, 2), (30, 10), (150, 30), interpreted=True),
    Problem(lennard_jones, _lennard_jones, (6,), (150,), (1000,), interpreted=True),
    Problem(deposit, _deposit, (7, 5), (20_000, 128), (1_000_000, 1024), (0, 1), True),
    *(
        Problem(f, _self_energies, (2, 3, 2, 2), (3, 6, 4, 4), (4, 12, 10, 6), (0, 1))
        for f in (self_energies, self_energy_loops)
    ),
]  # fmt: skip
