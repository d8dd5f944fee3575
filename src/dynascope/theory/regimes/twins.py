"""Twins: training runs with different scales and settings that compute the same function at every step."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Lt, MinLen

from dynascope.results.named_tuples import short_repr
from dynascope.theory.sgd import Momentum
from dynascope.validation import checked, require
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

__all__ = [
    "Dial",
    "OptimizerSettings",
    "ProblemScales",
    "Twin",
    "layer_scale_twin",
    "matched_settings",
    "normalised_layer_twin",
    "twin_of",
]

Dial = Literal["output scale", "target scale", "input scale", "initial scale", "loss scale"]


@checked
@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    """Settings of SGD or Adam, as PyTorch defines them.

    With the gradient g plus coupled decay, G = g + λθ, SGD computes v ← μ v + (1 − dampening) G (v = G at the first
    step) and θ ← θ (1 − η λ') − η v, or − η (G + μ v) with Nesterov momentum. Adam computes
    θ ← θ (1 − η λ') − η m̂/(√v̂ + ε). AdamW is Adam with λ = 0 and λ' > 0.

    Attributes:
        optimizer: "sgd" or "adam".
        learning_rate: η > 0.
        momentum: μ of SGD, at least 0 and below 1.
        dampening: Dampening of SGD, at least 0 and below 1.
        nesterov: Whether SGD uses Nesterov momentum.
        coupled_decay: λ ≥ 0, added to the gradient as λθ.
        decoupled_decay: λ' ≥ 0, which multiplies the weights by 1 − ηλ'.
        epsilon: ε ≥ 0 of Adam, added after the root.
        betas: (β₁, β₂) of Adam.

    Raises:
        InputError: If a setting is out of range, or belongs to the other optimiser.

    Example:
        >>> OptimizerSettings("adam", 1e-3, decoupled_decay=0.1).epsilon
        1e-08
    """

    optimizer: Literal["sgd", "adam"]
    learning_rate: PositiveFloat
    momentum: Momentum = 0.0
    dampening: Momentum = 0.0
    nesterov: bool = False
    coupled_decay: NonNegativeFloat = 0.0
    decoupled_decay: NonNegativeFloat = 0.0
    epsilon: NonNegativeFloat = 1e-8
    betas: tuple[Annotated[float, Ge(0), Lt(1)], Annotated[float, Ge(0), Lt(1)]] = (0.9, 0.999)

    def __post_init__(self):
        require(
            self.optimizer == "sgd" or not (self.momentum or self.dampening or self.nesterov),
            "momentum, dampening and nesterov are settings of SGD, but optimizer is 'adam'",
            argument="momentum",
            value=self.momentum,
            remedy="omit them, and set betas",
        )
        require(
            not self.nesterov or (self.momentum > 0 and self.dampening == 0),
            "nesterov requires momentum without dampening",
            argument="nesterov",
            value=self.nesterov,
            remedy="set momentum > 0 and dampening=0",
        )


def matched_settings(
    settings: OptimizerSettings, *, scale: PositiveFloat = 1.0, loss_factor: PositiveFloat = 1.0
) -> OptimizerSettings:
    """Return the settings with which a rescaled tensor has the same trajectory, up to its scale.

    Run A trains θ on the loss L_A. Run B trains φ = θ/s on L_B = q L_A with the same batches. The predictions are equal
    at every step if

        SGD:   η_B = η_A/(q s²),  λ_B = q s² λ_A,  λ'_B = q s² λ'_A;
        Adam:  η_B = η_A/s,       λ_B = q s² λ_A,  λ'_B = s λ'_A,     ε_B = q s ε_A.

    Momentum, Nesterov momentum, dampening and the betas are unchanged. Each tensor can have a different s. The
    predictions are equal bit by bit if s and q are powers of two and no number underflows or overflows; otherwise
    rounding differs. A learning-rate schedule is multiplied by the same factor. Clipping of the global norm is
    equivariant only if s is the same for all tensors; its threshold is then multiplied by q s.

    Args:
        settings: Settings of run A.
        scale: s > 0.
        loss_factor: q > 0.

    Returns:
        Settings of run B.

    Raises:
        InputError: If a number is not positive, or a setting of run B underflows or overflows.

    References:
        Derived here from the update rules: the gradient of L_B with respect to φ is q s times that of L_A.

    Example:
        >>> settings = OptimizerSettings("sgd", 0.1, momentum=0.9, coupled_decay=0.01)
        >>> twin = matched_settings(settings, scale=2.0, loss_factor=0.015625)  # ReLU, three layers: q = 2⁻⁶
        >>> twin.learning_rate / settings.learning_rate, settings.coupled_decay / twin.coupled_decay
        (16.0, 16.0)
    """
    s, q = scale, loss_factor
    adam = settings.optimizer == "adam"
    # Division by s² as two divisions keeps powers of two exact and avoids underflow of s².
    changed = {
        "learning_rate": settings.learning_rate / s if adam else settings.learning_rate / s / q / s,
        "coupled_decay": settings.coupled_decay * s * q * s,
        "decoupled_decay": settings.decoupled_decay * s if adam else settings.decoupled_decay * s * q * s,
        "epsilon": settings.epsilon * s * q if adam else settings.epsilon,
    }
    for name, value in changed.items():
        require(
            math.isfinite(value) and (value > 0 or getattr(settings, name) == 0),
            f"scale is {s:g} and loss_factor is {q:g}, so the {name} of the twin is {value:g}",
            argument="scale",
            value=s,
            remedy="choose factors closer to 1",
        )
    return dataclasses.replace(settings, **changed)


class ProblemScales(NamedTuple):
    """Factors that change a training problem: loss · ½‖output · f(input · x; θ) − target · y‖².

    Attributes:
        weights: Factor on the initial weights of each layer, shape (layers,).
        biases: Factor on the initial biases of each layer, shape (layers,).
        output: Factor on the outputs.
        target: Factor on the targets.
        input: Factor on the inputs.
        loss: Factor on the loss.
    """

    weights: tuple[float, ...]
    biases: tuple[float, ...]
    output: float = 1.0
    target: float = 1.0
    input: float = 1.0
    loss: float = 1.0

    __repr__ = short_repr


class Twin(NamedTuple):
    """Two problems with equal predictions, up to the factor on the targets, with the settings of `matched_settings`.

    Attributes:
        run: The problem whose scale a dial changed.
        twin: The equivalent problem.
        weight_scales: s of the weights of each layer: weights of the run divided by those of the twin.
        bias_scales: s of the biases of each layer.
        loss_factor: q, the loss of the twin divided by that of the run.
        requires: The networks for which the problems are equivalent.
    """

    run: ProblemScales
    twin: ProblemScales
    weight_scales: tuple[float, ...]
    bias_scales: tuple[float, ...]
    loss_factor: float
    requires: str

    __repr__ = short_repr

    def settings(
        self, settings: OptimizerSettings
    ) -> tuple[tuple[OptimizerSettings, ...], tuple[OptimizerSettings, ...]]:
        """Return the settings of the twin for the weights and for the biases of each layer.

        Args:
            settings: Settings of the run.
        """
        q = self.loss_factor
        return (
            tuple(matched_settings(settings, scale=s, loss_factor=q) for s in self.weight_scales),
            tuple(matched_settings(settings, scale=s, loss_factor=q) for s in self.bias_scales),
        )


def twin_of(
    dial: Dial, factor: PositiveFloat, *, layers: PositiveInt, through: Literal["output", "target"] = "output"
) -> Twin:
    """Return the twin of a run in which a dial multiplies one scale of the problem by a factor c.

    | dial of the run | network | twin | s | q |
    | --- | --- | --- | --- | --- |
    | output scale, c f on y | any | f on y/c | 1 | c⁻² |
    | target scale, f on c y | any | f/c on y | 1 | c⁻² |
    | input scale, f(c x) | first layer linear in x | c W₁ on x | 1/c on W₁ | 1 |
    | initial scale, through the output | degree one in each layer | c^L f on y | c, biases c^l | 1 |
    | initial scale, through the target | degree one in each layer | f on y/c^L | c, biases c^l | c^(−2L) |
    | loss scale, c L | any | L | 1 | 1/c |

    The loss is squared error, except for the input scale, the loss scale and the initial scale through the output,
    which hold for any loss. Cross-entropy has no twin of the target scale.

    Args:
        dial: The scale that is changed.
        factor: c > 0. With a power of two, the twins are equal bit by bit.
        layers: L ≥ 1, the number of layers with weights.
        through: Whether the twin of the initial scale has another output scale or another target scale.

    Raises:
        InputError: If the factor is not positive, if the dial is unknown, or if c^(2L) underflows or overflows.

    References:
        L. Chizat, E. Oyallon, F. Bach, arXiv:1812.07956, for the output scale; the settings are derived here.

    Example:
        >>> twin = twin_of("target scale", 4.0, layers=2)
        >>> twin.twin.output, twin.settings(OptimizerSettings("sgd", 0.5))[0][0].learning_rate
        (0.25, 8.0)
    """
    c, ones = factor, (1.0,) * layers
    if dial == "initial scale":
        return layer_scale_twin((c,) * layers) if through == "output" else _through_target(c, layers)
    same, any_network = ProblemScales(ones, ones), "any network, squared loss"
    if dial == "output scale":
        pair = same._replace(output=c), same._replace(target=1 / c)
    elif dial == "target scale":
        pair = same._replace(target=c), same._replace(output=1 / c)
    elif dial == "input scale":
        first = (c, *ones[1:])
        scales = (1 / c, *ones[1:])
        linear = "networks whose first layer is linear in the inputs"
        return Twin(same._replace(input=c), same._replace(weights=first), scales, ones, 1.0, linear)
    else:
        return Twin(same._replace(loss=c), same, ones, ones, 1 / c, "any network, any loss")
    _require_power(c, 2)
    return Twin(*pair, ones, ones, c**-2.0, any_network)


def layer_scale_twin(factors: Annotated[Sequence[PositiveFloat], MinLen(1)]) -> Twin:
    """Return the twin of a run whose initial weights are multiplied by a factor in each layer.

    For activations of degree one, the factors s_l on the weights and s₁ ⋯ s_l on the biases of layer l are equivalent
    to the output scale s₁ ⋯ s_L with unscaled weights (s = s_l or s₁ ⋯ s_l, q = 1). If the product of all factors is
    one, the twin differs only in its settings: its layers have the learning rates η/s_l² under SGD and η/s_l under
    Adam.

    Args:
        factors: s_l > 0 for each layer, shape (L,).

    Raises:
        InputError: If a factor is not positive, or the product of the factors underflows or overflows.

    References:
        Derived here.

    Example:
        >>> twin = layer_scale_twin([0.5, 2.0])
        >>> [each.learning_rate for each in twin.settings(OptimizerSettings("sgd", 0.1))[0]], twin.twin.output
        ([0.4, 0.025], 1.0)
    """
    scales, biases, product = tuple(map(float, factors)), [], 1.0
    for scale in scales:
        product *= scale
        _require_power(product, 1)
        biases.append(product)
    ones = (1.0,) * len(scales)
    run = ProblemScales(scales, tuple(biases))
    homogeneous = "networks with activations of degree one, such as ReLU or linear"
    return Twin(run, ProblemScales(ones, ones, output=product), scales, tuple(biases), 1.0, homogeneous)


def normalised_layer_twin(
    factor: PositiveFloat, *, layers: PositiveInt, layer: NonNegativeInt = 0, epsilon: NonNegativeFloat = 0.0
) -> Twin:
    """Return the twin of a run in which the initial weights before a normalisation are multiplied by c.

    The function does not depend on the scale of these weights, so c is equivalent to the learning rate η/c² under SGD
    and η/c under Adam (s = c, q = 1). The layer must have no bias before the normalisation.

    Args:
        factor: c > 0.
        layers: L, the number of layers with weights.
        layer: Index of the layer before the normalisation, from 0.
        epsilon: ε of the normalisation. Only ε = 0 has a twin.

    Raises:
        InputError: If ε > 0, because the layer then depends on its scale; or if there is no such layer.

    References:
        Derived here; S. Arora, Z. Li, K. Lyu, arXiv:1812.03981, for the effective learning rate.

    Example:
        >>> normalised_layer_twin(2.0, layers=2).settings(OptimizerSettings("sgd", 0.4))[0][0].learning_rate
        0.1
    """
    require(
        layer < layers,
        f"layer is {layer}, but there are {layers} layers",
        argument="layer",
        value=layer,
        remedy=f"choose an index from 0 to {layers - 1}",
    )
    require(
        epsilon == 0,
        f"epsilon is {epsilon:g}, so the normalised layer depends on the scale of its weights and has no twin",
        argument="epsilon",
        value=epsilon,
        remedy="set the epsilon of the normalisation to 0, or multiply it by the square of the factor",
    )
    ones = (1.0,) * layers
    scales = (*ones[:layer], factor, *ones[layer + 1 :])
    same = ProblemScales(ones, ones)
    return Twin(same._replace(weights=scales), same, scales, ones, 1.0, "a layer without bias before a normalisation")


def _through_target(c: float, layers: int) -> Twin:
    """Compose the twins of the initial scale and of the output scale."""
    _require_power(c, 2 * layers)
    through = layer_scale_twin((c,) * layers)
    output = through.twin.output
    twin = through.twin._replace(output=1.0, target=1 / output)
    homogeneous = "networks with activations of degree one, such as ReLU or linear, squared loss"
    return through._replace(twin=twin, loss_factor=output**-2.0, requires=homogeneous)


def _require_power(factor: float, power: int) -> None:
    logarithm = power * math.log10(factor) if factor > 0 else -math.inf
    require(
        abs(logarithm) < 300,
        f"factor is {factor:g}, so factor^{power} underflows or overflows",
        argument="factor",
        value=factor,
        remedy="choose a factor closer to 1",
    )
