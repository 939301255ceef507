import numpy as np

from benchmarks.same_program.data import INPUTS, LABELS


def loss(weights):
    hidden, outputs = weights[:600].reshape(20, 30), weights[600:].reshape(30, 5)
    scores = np.tanh(INPUTS @ hidden) @ outputs
    highest = np.max(scores, axis=1, keepdims=True)
    logs = scores - highest - np.log(np.sum(np.exp(scores - highest), axis=1, keepdims=True))
    return -np.mean(logs[np.arange(64), LABELS])
