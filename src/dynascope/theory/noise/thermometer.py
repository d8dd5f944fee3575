"""Stationary SGD noise of a trained network along Hessian directions: temperature, variances, relaxation times."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.noise.oscillation import decay_and_phase
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry import equilibration_steps, equilibrium_angular_step
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["Thermometer", "thermometer"]


class Thermometer(NamedTuple):
    """Stationary noise of a trained network; all fields but the last two have one value per Hessian direction.

    Attributes:
        stationary: Whether a stationary law exists along the direction: the curvature plus weight decay is positive,
            and the steps do not diverge.
        position_variance: Variance E a² of the weights around the minimum; ∞ without a stationary law.
        velocity_variance: Variance E v² of the velocity, the displacement in one step divided by the learning rate; ∞
            without a stationary law.
        temperature: h E a² = ½ η(1 + β) E v², twice the mean excess loss due to the direction; ∞ without a stationary
            law.
        relaxation_steps: Number of steps −1/log|z| in which a deviation decays by a factor of e, for the decay factor
            |z| per step; ∞ if it does not decay.
        angular_step: Equilibrium angle, in radians, by which each step rotates the weights of a layer that is followed
            by a normalisation; zero without weight decay.
        equilibration_steps: Number of steps in which the deviation of ‖θ‖⁴ from equilibrium shrinks by a factor of e,
            for the weights θ of such a layer; ∞ without weight decay.
    """

    stationary: Bool[np.ndarray, "*directions"]
    position_variance: Float[np.ndarray, "*directions"]
    velocity_variance: Float[np.ndarray, "*directions"]
    temperature: Float[np.ndarray, "*directions"]
    relaxation_steps: Float[np.ndarray, "*directions"]
    angular_step: float
    equilibration_steps: float

    __repr__ = short_repr


@covers(
    network="any, trained by SGD",
    data="any, in independent batches",
    start="any",
    gives="the stationary noise of a trained network, and its relaxation times",
    reference="arXiv:2107.09133",
    exact=False,
    infinite=True,
    assumes=(SMALL_STEPS,),
)
def thermometer(
    curvature: FiniteNumbers,
    noise: NonNegativeNumbers,
    sgd: SGD,
) -> Thermometer:
    """Stationary SGD noise ("temperature") along Hessian directions, and the rotation of normalised layers.

        E a² = ηs(1 + β)/(Sh(1 − β)(2(1 + β) − ηh)) along each direction,   angle per step √(2ηλ/(1 + β)),   h = ρ + λ

    The directions are eigenvectors of the Hessian, and s is the variance of the per-sample gradients along them. The
    formula assumes that noise and curvature do not depend on the weights, so the result for a real network is an
    estimate. It also assumes that every batch is drawn independently of the others. If the batches of an epoch are
    drawn without replacement, as with `DataLoader(shuffle=True)`, their noise sums to zero over the epoch. The
    variances are then upper bounds, far too large along directions whose `relaxation_steps` exceed the number of
    batches per epoch. The angle per step of normalised layers depends on neither curvature nor noise. A direction
    becomes stationary after a few times its `relaxation_steps`, and the norms after a few times `equilibration_steps`.

    Args:
        curvature: ρ of each direction, positive or negative, a number or an array of shape (directions,); measured by
            `probes.diffusion.top_curvatures`.
        noise: s ≥ 0, the variance of the per-sample gradients along each direction, a number or an array of shape
            (directions,); measured by `probes.diffusion.gradient_noise`.
        sgd: η, β, λ, S and N.

    Raises:
        InputError: If a setting is out of range, or the shapes do not match.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133; Tanaka, Kunin,
        arXiv:2105.02716; Kühn, Rosenow, arXiv:2306.05300, for epochs without replacement.

    Example:
        >>> found = thermometer([2.0, -0.5], 0.7, SGD(0.05, momentum=0.9, weight_decay=0.1, batch_size=8))
        >>> print(found.stationary, found.position_variance.round(6), round(found.angular_step, 6))
        [ True False] [0.010713      inf] 0.072548
    """
    steps = noisy_steps(curvature, noise, sgd)
    with np.errstate(all="ignore"):
        h, x = steps.curvature, np.asarray(steps.rate * steps.curvature)
        stationary = (h > 0) & (x < steps.edge)
        velocity = np.where(stationary, steps.step_variance, np.inf)
        temperature = steps.rate * (1 + steps.momentum) / 2 * velocity
        position = np.where(stationary, temperature / np.where(stationary, h, 1.0), np.inf)
        relaxation = np.where(stationary, -1 / decay_and_phase(x, steps.momentum)[0], np.inf)
    settings = sgd.without_batches
    return Thermometer(
        np.asarray(stationary),
        np.asarray(position),
        np.asarray(velocity),
        np.asarray(temperature),
        np.asarray(np.abs(relaxation)),
        equilibrium_angular_step(settings) if sgd.weight_decay else 0.0,
        equilibration_steps(settings) if sgd.weight_decay else float("inf"),
    )
