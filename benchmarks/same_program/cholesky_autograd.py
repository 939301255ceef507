import autograd.numpy as np

N = 40


def factor(a):
    n = len(a)
    rows = []
    for i in range(n):
        row = []
        for j in range(i):
            known = sum(row[k] * rows[j][k] for k in range(j))
            row.append((a[i, j] - known) / rows[j][j])
        row.append(np.sqrt(a[i, i] - sum(e**2 for e in row)))
        rows.append(row)
    return np.array([row + [0.0] * (n - len(row)) for row in rows])


def loss(x):
    points = np.reshape(x, (N, 2))
    apart = points[:, None, :] - points[None, :, :]
    kernel = np.exp(-0.5 * np.sum(apart**2, axis=-1)) + 0.1 * np.eye(N)
    return np.sum(np.log(np.diag(factor(kernel))))
