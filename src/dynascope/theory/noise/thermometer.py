"""What the noise of SGD does to a trained network: how warm it is, how far it swings, and when that has settled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.noise.oscillation import swings
from dynascope.theory.noise.quadratic_loss import noisy_steps
from dynascope.theory.sgd import SGD
from dynascope.theory.symmetry import equilibration_steps, equilibrium_angular_step
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["Thermometer", "thermometer"]


class Thermometer(NamedTuple):
    """The noise of a trained network along directions of its Hessian, each of their shape but for the last two.

    Attributes:
        stationary: Whether there is a stationary law along a direction: the loss with decay curves upwards, and steps
            do not diverge.
        position_variance: E a² of the weights around the minimum; ∞ where there is no stationary law.
        velocity_variance: E v² of steps over the learning rate; ∞ where there is no stationary law.
        temperature: h E a² = ½ η(1 + β) E v², twice the mean excess loss of a direction; ∞ where there is no law.
        relaxation_steps: Steps in which a deviation decays by the factor e, −1/log|z|; ∞ where it does not.
        angular_step: Angle in radians of a step of each layer before a normalisation, at equilibrium; zero without
            decay.
        equilibration_steps: Steps in which ‖θ‖⁴ of such a layer comes nearer to its equilibrium by the factor e; ∞
            without decay.
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
    data="any",
    start="any",
    gives="the stationary noise of a trained network, and when it has settled",
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
    """E a² = ηs(1 + β)/(Sh(1 − β)(2(1 + β) − ηh)) along directions, and the angle √(2ηλ/(1 + β)) of normalised layers.

    Directions are eigenvectors of the Hessian, h = ρ + λ, along which the noise of gradients has the variance s over
    samples; noise that depends on the weights and curvature that changes are left out, so that of directions of a real
    network this is a forecast. The law of normalised layers needs neither curvature nor noise. A run has settled along
    a direction after a few times its `relaxation_steps`, and in its norms after a few times `equilibration_steps`.
    Along directions without a stationary law all of these are ∞.

    Args:
        curvature: ρ of each direction, of either sign, one number or a row; `probes.diffusion.top_curvatures` measures
            them.
        noise: s ≥ 0, likewise, the variance over samples of the gradient along each direction;
            `probes.diffusion.gradient_noise` measures it.
        sgd: η, β, λ, S and N.

    Raises:
        InputError: A setting out of range, or shapes that do not fit.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133; Tanaka, Kunin,
        arXiv:2105.02716.

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
        relaxation = np.where(stationary, -1 / swings(x, steps.momentum)[0], np.inf)
    laws = sgd.without_batches
    return Thermometer(
        np.asarray(stationary),
        np.asarray(position),
        np.asarray(velocity),
        np.asarray(temperature),
        np.asarray(np.abs(relaxation)),
        equilibrium_angular_step(laws) if sgd.weight_decay else 0.0,
        equilibration_steps(laws) if sgd.weight_decay else float("inf"),
    )
