"""A product of two weights that learns noisy labels: noise lowers what it learns, down to nothing."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require, require_broadcast
from dynascope.validation.bounded import (
    FiniteFloat,
    FiniteNumbers,
    NonNegativeNumbers,
    PositiveFloat,
)

__all__ = [
    "NoisyStudentPath",
    "noisy_imbalance",
    "noisy_student_path",
    "noisy_student_strength",
]

_covers = functools.partial(
    covers, network="linear, two layers, one mode", data="labels with noise", reference="arXiv:2306.04251"
)


class NoisyStudentPath(NamedTuple):
    """Both weights before the first step and after each, shape (steps + 1, ...).

    Attributes:
        first: u.
        second: v.
        errors: z = s − uv + ε of every step, shape (steps, ...).
    """

    first: Float[np.ndarray, "steps ..."]
    second: Float[np.ndarray, "steps ..."]
    errors: Float[np.ndarray, "steps ..."]

    __repr__ = short_repr


@_covers(start="any but zero", gives="what is learned of noisy labels: a soft threshold", exact=False)
def noisy_student_strength(
    strength: FiniteNumbers, noise_variance: NonNegativeNumbers, *, learning_rate: PositiveFloat
) -> Float[np.ndarray, "*shape"]:
    """E[uv] = max(s − ης²/2, 0) of a student uv that descends on ½(s + ε − uv)², Var ε = ς², from balanced weights.

    In continuous time u = v follow the double well of `quartic_stationary_law` with μ = s and ζ² = ης². The modes of a
    diagonal network each follow this law. The exact growth of u + v near zero is
    `gaussian_collapse_exponent(−s, ς)` of Gaussian noise, which is zero at s = ης²/2 to leading order in η.

    Args:
        strength: s of the teacher, of any shape.
        noise_variance: ς² ≥ 0 of the label of a batch, over the batch size of that of a sample of unit input; of the
            same shape or one number.
        learning_rate: η > 0.

    Returns:
        E[uv], of the broadcast shape.

    Raises:
        InputError: A number out of range, or shapes that do not fit.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> print(noisy_student_strength([0.2, 0.5, 1.0], 30.0, learning_rate=0.02).round(6))
        [0.  0.2 0.7]
    """
    s, variance = np.asarray(strength), np.asarray(noise_variance)
    require_broadcast(strength=s.shape, noise_variance=variance.shape)
    with np.errstate(all="ignore"):
        return np.asarray(np.maximum(s - learning_rate * variance / 2, 0.0))


@_covers(start="any", gives="both weights along given noise")
def noisy_student_path(
    first: FiniteNumbers,
    second: FiniteNumbers,
    label_noise: FiniteNumbers,
    *,
    strength: FiniteFloat,
    learning_rate: PositiveFloat,
) -> NoisyStudentPath:
    """u_{k+1} = u_k + η z_k v_k and v_{k+1} = v_k + η z_k u_k with z_k = s − u_k v_k + ε_k, descent on noisy labels.

    Args:
        first: u_0, one number or one for each run.
        second: v_0, likewise.
        label_noise: ε_k, shape (steps,), or (steps, runs).
        strength: s of the teacher.
        learning_rate: η > 0.

    Raises:
        InputError: A number out of range, shapes that do not fit, or steps so large that the weights explode.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> path = noisy_student_path(0.6, 0.5, 2 * np.sin(3 * np.arange(1, 31)), strength=1.0, learning_rate=0.05)
        >>> print(path.first[-1].round(12), path.second[-1].round(12))
        0.994537373671 0.946436127182
    """
    noise = _of_steps("label_noise", label_noise)
    u, v = (_of_runs(name, value, noise) for name, value in {"first": first, "second": second}.items())
    path, errors = np.empty((2, len(noise) + 1, *noise.shape[1:])), np.empty(noise.shape)
    path[:, 0] = u, v
    with np.errstate(all="ignore"):
        for k, each in enumerate(noise):
            u, v = path[:, k]
            errors[k] = strength - u * v + each
            path[:, k + 1] = u + learning_rate * errors[k] * v, v + learning_rate * errors[k] * u
    return NoisyStudentPath(path[0], path[1], errors)


@_covers(start="any", gives="how noise balances two layers")
def noisy_imbalance(
    imbalance: FiniteNumbers, errors: FiniteNumbers, *, learning_rate: PositiveFloat
) -> Float[np.ndarray, "steps ..."]:
    """(u² − v²)_n = (u² − v²)_0 Π_{k<n} (1 − η² z_k²), exactly, whatever the errors z_k are.

    Gradient flow conserves the imbalance; the noise of finite steps destroys it at the rate ης² for each unit of time.

    Args:
        imbalance: u² − v² at the start, one number or one for each run.
        errors: z_k of every step, shape (steps,), or (steps, runs).
        learning_rate: η > 0.

    Returns:
        The imbalance before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number out of range, or shapes that do not fit.

    References:
        Own derivation; the model is that of Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> print(noisy_imbalance(0.11, [1.0, -2.0], learning_rate=0.1).round(6))
        [0.11     0.1089   0.104544]
    """
    z = _of_steps("errors", errors)
    first = _of_runs("imbalance", imbalance, z)
    with np.errstate(all="ignore"):
        factors = np.cumprod(1 - (learning_rate * z) ** 2, axis=0)
        return np.asarray(np.concatenate([first[None], first * factors]))


def _of_steps(name: str, values: ArrayLike) -> np.ndarray:
    found = np.asarray(values)
    require(found.ndim > 0, f"{name} is a number", argument=name, value=(), remedy="give one for each step")
    return found


def _of_runs(name: str, values: ArrayLike, steps: np.ndarray) -> np.ndarray:
    """One number for each run, whose steps have it in front."""
    found, runs = np.asarray(values), steps.shape[1:]
    require(
        found.shape in ((), runs),
        f"{name} has shape {found.shape}",
        argument=name,
        value=found.shape,
        remedy=f"give one number, or numbers of shape {runs}",
    )
    return np.broadcast_to(found, runs)
