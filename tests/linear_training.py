"""Gradient flow of small two-layer linear networks with one output, in their parameters."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

__all__ = ["FIRST", "SECOND", "B", "trained"]

B = np.array([0.9, -0.6, 0.3])
FIRST = np.sin(1.3 * np.arange(1, 13)).reshape(4, 3)
SECOND = np.sin(2.1 * np.arange(1, 5))


def trained(scale, times, covariance=None, first=FIRST, second=SECOND, b=B):
    """The layers of the full flow, at scale one, and the maps."""
    h, d = first.shape
    moment = np.eye(d) if covariance is None else covariance

    def velocity(_, state):
        w, a = state[: h * d].reshape(h, d), state[h * d :]
        missing = b - moment @ (w.T @ a)
        return np.concatenate([np.outer(a, missing).ravel(), w @ missing])

    state = scale * np.append(first, second)
    path = solve_ivp(velocity, (0, times[-1]), state, "DOP853", t_eval=times, rtol=1e-11, atol=1e-13 * scale).y.T
    w, a = path[:, : h * d].reshape(-1, h, d), path[:, h * d :]
    return w, a, np.einsum("thd,th->td", w, a)
