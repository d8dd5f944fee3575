"""A product of two weights trained on noisy labels: the noise reduces the learned strength, possibly to zero."""

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
    covers, network="linear, two layers, one mode", data="noisy labels", reference="arXiv:2306.04251"
)


class NoisyStudentPath(NamedTuple):
    """Both weights before the first step and after each step, shape (steps + 1, ...).

    Attributes:
        first: u.
        second: v.
        errors: z = s − uv + ε at every step, shape (steps, ...).
    """

    first: Float[np.ndarray, "steps ..."]
    second: Float[np.ndarray, "steps ..."]
    errors: Float[np.ndarray, "steps ..."]

    __repr__ = short_repr


@_covers(start="any but zero", gives="the mean strength learned from noisy labels, a soft threshold", exact=False)
def noisy_student_strength(
    strength: FiniteNumbers, noise_variance: NonNegativeNumbers, *, learning_rate: PositiveFloat
) -> Float[np.ndarray, "*shape"]:
    """Mean strength that a student uv learns from noisy labels: a soft threshold of the teacher's strength.

        E[uv] = max(s − ης²/2, 0)   for gradient descent on ½(s + ε − uv)², Var ε = ς², from balanced weights

    In continuous time u = v follows the double-well equation of `quartic_stationary_law` with μ = s and ζ² = ης². Each
    mode of a diagonal network obeys this law. For Gaussian noise, `gaussian_collapse_exponent(−s, ς)` is the exact
    growth rate of u + v near zero; to leading order in η, the growth rate vanishes at s = ης²/2.

    Args:
        strength: Strength s of the teacher, any shape.
        noise_variance: ς² ≥ 0, the variance of the mean label of a batch, a number or an array with the shape of
            `strength`. For inputs of norm one, it is the label variance per sample divided by the batch size.
        learning_rate: η > 0.

    Returns:
        E[uv], in the broadcast shape.

    Raises:
        InputError: If a number is out of range, or the shapes do not broadcast.

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


@_covers(start="any", gives="the trajectory of both weights for a given realisation of the noise")
def noisy_student_path(
    first: FiniteNumbers,
    second: FiniteNumbers,
    label_noise: FiniteNumbers,
    *,
    strength: FiniteFloat,
    learning_rate: PositiveFloat,
) -> NoisyStudentPath:
    """Gradient-descent trajectory of a student uv on noisy labels, for a given noise realisation.

        u_{k+1} = u_k + η z_k v_k,   v_{k+1} = v_k + η z_k u_k,   z_k = s − u_k v_k + ε_k

    Args:
        first: u_0, a number or one per run.
        second: v_0, a number or one per run.
        label_noise: ε_k, shape (steps,) or (steps, runs).
        strength: Strength s of the teacher.
        learning_rate: η > 0.

    Raises:
        InputError: If a number is out of range, the shapes do not match, or the weights overflow.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> path = noisy_student_path(0.6, 0.5, 2 * np.sin(3 * np.arange(1, 31)), strength=1.0, learning_rate=0.05)
        >>> print(path.first[-1].round(12), path.second[-1].round(12))
        0.994537373671 0.946436127182
    """
    noise = _per_step("label_noise", label_noise)
    u, v = (_per_run(name, value, noise) for name, value in {"first": first, "second": second}.items())
    path, errors = np.empty((2, len(noise) + 1, *noise.shape[1:])), np.empty(noise.shape)
    path[:, 0] = u, v
    with np.errstate(all="ignore"):
        for k, each in enumerate(noise):
            u, v = path[:, k]
            errors[k] = strength - u * v + each
            path[:, k + 1] = u + learning_rate * errors[k] * v, v + learning_rate * errors[k] * u
    return NoisyStudentPath(path[0], path[1], errors)


@_covers(start="any", gives="the imbalance of two layers under noise")
def noisy_imbalance(
    imbalance: FiniteNumbers, errors: FiniteNumbers, *, learning_rate: PositiveFloat
) -> Float[np.ndarray, "steps ..."]:
    """Imbalance u² − v² of the two weights after every step, exact for any errors.

        (u² − v²)_n = (u² − v²)_0 Π_{k<n} (1 − η² z_k²)

    Gradient flow conserves the imbalance. With finite steps and label noise of variance ς², the imbalance decays at the
    rate ης² per unit of time.

    Args:
        imbalance: Initial u² − v², a number or one per run.
        errors: z_k at every step, shape (steps,) or (steps, runs).
        learning_rate: η > 0.

    Returns:
        The imbalance before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, or the shapes do not match.

    References:
        Derived here, for the model of Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> print(noisy_imbalance(0.11, [1.0, -2.0], learning_rate=0.1).round(6))
        [0.11     0.1089   0.104544]
    """
    z = _per_step("errors", errors)
    first = _per_run("imbalance", imbalance, z)
    with np.errstate(all="ignore"):
        factors = np.cumprod(1 - (learning_rate * z) ** 2, axis=0)
        return np.asarray(np.concatenate([first[None], first * factors]))


def _per_step(name: str, values: ArrayLike) -> np.ndarray:
    found = np.asarray(values)
    require(found.ndim > 0, f"{name} is a number", argument=name, value=(), remedy="give one number per step")
    return found


def _per_run(name: str, values: ArrayLike, steps: np.ndarray) -> np.ndarray:
    """Broadcast one number, or one per run, to the shape of a step."""
    found, runs = np.asarray(values), steps.shape[1:]
    require(
        found.shape in ((), runs),
        f"{name} has shape {found.shape}",
        argument=name,
        value=found.shape,
        remedy=f"give one number, or an array of shape {runs}",
    )
    return np.broadcast_to(found, runs)
