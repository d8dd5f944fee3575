"""Trainings of two-layer linear networks as a user writes them, and what theory says of them."""

from __future__ import annotations

import numpy as np

from dynascope import predict
from dynascope.networks import TwoLayer
from dynascope.tasks import Task

RATE = 0.02
SCALE = 1e-5
# In place of the ½ mean over samples of the sum over outputs, for n samples and c outputs.
FACTORS = {
    "squared": lambda n, c: 1,
    "squared_norm": lambda n, c: 2,
    "mse": lambda n, c: 2 / c,
    "half_mse": lambda n, c: 1 / c,
    "sum": lambda n, c: 2 * n,
}


def data(outputs=3):
    """Two modes, well apart."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(40, 4))
    return x, x @ np.diag([3.0, 1.0, 0, 0])[:, :outputs] + 0.1 * draw.normal(size=(40, outputs))


def start(outputs=3):
    draw = np.random.default_rng(1)
    return draw.normal(size=(4, 20)) / 20**0.5, draw.normal(size=(20, outputs)) / 20**0.5


def losses(loss="mse", *, outputs=3, rates=RATE, steps=1500, scale=SCALE, momentum=0.0):
    """The loss before each step of descent as `torch.optim.SGD` takes them, by formulas of our own."""
    x, y = data(outputs)
    w1, w2 = (scale * each for each in start(outputs))
    factor = FACTORS[loss](*y.shape)
    velocities, curve = (0.0, 0.0), []
    for rate in np.broadcast_to(rates, steps):
        error = x @ w1 @ w2 - y
        curve.append(factor * np.sum(error**2) / 2 / len(x))
        slopes = x.T @ error @ w2.T, (x @ w1).T @ error
        velocities = [momentum * v + factor * each / len(x) for v, each in zip(velocities, slopes, strict=True)]
        w1, w2 = (w - rate * v for w, v in zip((w1, w2), velocities, strict=True))
    return np.array(curve)


def predicted(outputs=3, *, scale=SCALE, curve=False):
    """By the staircase alone, unless the loss curve at that scale is asked for."""
    network = TwoLayer(4, 20, outputs).with_neurons(np.hstack([start(outputs)[0].T, start(outputs)[1]]))
    return predict(Task(*data(outputs)), network, scale=scale, curve=curve).record
