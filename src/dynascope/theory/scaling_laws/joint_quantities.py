"""What follows from a joint law, with its derivatives by the five numbers of the law: E, ln A, ln B, a and b.

Losses and resources are in units of their geometric means.
"""

from __future__ import annotations

import numpy as np

from dynascope.theory.scaling_laws.joint_profile import Quantity
from dynascope.theory.scaling_laws.joint_search import joint_residuals

__all__ = ["best_exponent", "best_loss", "best_size", "law_parameter", "loss_at", "prefactor"]


def law_parameter(which: int) -> Quantity:
    """One of the numbers itself."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return laws[:, which], np.tile(np.eye(5)[which], (len(laws), 1))

    return quantity


def prefactor(which: int, centre: float) -> Quantity:
    """Ln A or ln B of the resource itself, whose logarithm has this centre."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = np.zeros((len(laws), 5))
        gradient[:, which], gradient[:, which + 2] = 1, centre
        return laws[:, which] + centre * laws[:, which + 2], gradient

    return quantity


def loss_at(place: tuple[float, float]) -> Quantity:
    """Ln L at a place."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slopes = joint_residuals(laws, np.array([place[0]]), np.array([place[1]]), 0.0)
        return value[:, 0], slopes[:, 0]

    return quantity


def best_size(total: float) -> Quantity:
    """Ln N* where ln N + ln D is given: N* = (a A/b B)^(1/(a+b)) e^(b total/(a+b))."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, level_n, level_d, a, b = laws.T
        a, b = np.maximum(a, 1e-12), np.maximum(b, 1e-12)
        size = (np.log(a / b) + level_n - level_d + b * total) / (a + b)
        one = np.ones_like(size)
        slopes = [0 * one, one, -one, 1 / a - size, -1 / b + total - size]
        return size, np.stack(slopes, axis=-1) / (a + b)[:, None]

    return quantity


def best_loss(total: float) -> Quantity:
    """Ln L there; that N* moves with the law makes no difference at the least loss."""
    sizes = best_size(total)

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = sizes(laws)[0]
        value, slopes = joint_residuals(laws, size[:, None], total - size[:, None], 0.0)
        return value[:, 0], slopes[:, 0]

    return quantity


def best_exponent(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """b/(a + b)."""
    a, b = np.maximum(laws[:, 3:].T, 1e-12)
    gradient = np.zeros((len(laws), 5))
    gradient[:, 3], gradient[:, 4] = -b / (a + b) ** 2, a / (a + b) ** 2
    return b / (a + b), gradient
