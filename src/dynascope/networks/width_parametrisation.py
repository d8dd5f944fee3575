"""Networks whose initialisation and learning rates are powers of the width or of another scaling parameter."""

from __future__ import annotations

import math

import equinox as eqx
import numpy as np

from dynascope.networks.mlp import MLP, ActivationName
from dynascope.networks.two_layer import TwoLayer
from dynascope.theory.regimes.abc_parametrisation import ABCParametrisation
from dynascope.theory.regimes.phases import Parametrisation
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["abc_network", "initial_network"]


def initial_network(
    parametrisation: Parametrisation,
    scaling_parameter: PositiveFloat,
    input_dimension: PositiveInt,
    output_dimension: PositiveInt = 1,
    *,
    width: PositiveFloat = 1.0,
    activation: str = "linear",
    seed: Seed = 0,
) -> tuple[TwoLayer, dict[str, float]]:
    """Draw the network of a parametrisation at a given κ, and compute the learning rates of its layers.

    The output multiplier γ is absorbed into the second layer, whose weights become γu and whose learning rate becomes
    γ²η_u. The function that is computed during training does not change.

    Args:
        parametrisation: The exponents of the parametrisation.
        scaling_parameter: Scaling parameter κ > 0.
        input_dimension: Number of inputs.
        output_dimension: Number of outputs.
        width: Factor by which the width is multiplied, as in `Parametrisation.at`.
        activation: Name of an activation (see `networks.homogeneous_activation`).
        seed: Seed of the draw.

    Returns:
        The network and its rates {"first": η_w, "second": γ²η_u}, in the format of `GradientFlow`.

    Raises:
        InputError: If a number is not positive, or if a rate or weight overflows.

    Example:
        >>> from dynascope.theory.regimes import standard_parametrisations
        >>> network, rates = initial_network(standard_parametrisations()["lazy"], 10.0, 3, width=8)
        >>> network.first.shape, rates, bool(np.abs(network(np.eye(3))).max() < 1e-12)
        ((3, 8), {'first': 1.0, 'second': 100.0}, True)
    """
    size = parametrisation.at(scaling_parameter, width=width)
    drawn = size.width // 2 if parametrisation.zero_output else size.width
    network = TwoLayer(input_dimension, drawn, output_dimension, activation=activation, seed=seed)
    # `TwoLayer` draws weights with variance 1/width.
    first = network.first * math.sqrt(drawn * size.first_variance)
    second = network.second * math.sqrt(drawn * size.second_variance) * size.multiplier
    if parametrisation.zero_output:
        first, second = np.concatenate([first, first], axis=1), np.concatenate([second, -second])
    rates = {"first": size.first_rate, "second": size.multiplier * size.multiplier * size.second_rate}
    require(
        all(map(math.isfinite, rates.values())) and bool(np.isfinite(second).all()),
        f"scaling_parameter is {scaling_parameter:g}, so a learning rate or a weight overflows",
        argument="scaling_parameter",
        value=scaling_parameter,
        remedy="choose a value closer to one",
    )
    return eqx.tree_at(lambda layers: (layers.first, layers.second), network, (first, second)), rates


def abc_network(
    parametrisation: ABCParametrisation,
    width: PositiveInt,
    input_dimension: PositiveInt,
    output_dimension: PositiveInt = 1,
    *,
    base_width: PositiveInt = 64,
    activation: ActivationName = "tanh",
    seed: Seed = 0,
) -> tuple[MLP, dict[str, float]]:
    """Draw an MLP without biases in an abc-parametrisation, and compute the relative learning rates of its layers.

    The multipliers n^(−a_l) are absorbed into the weights, so that the network is an ordinary MLP. With the ratio
    ν = n/n₀ of the width to the base width, the entries of W_l have the standard deviation ν^(−a_l − b_l)/√m_l, where
    m_l is the fan-in at the base width, and the learning rate of W_l under SGD is multiplied by ν^(−c − 2 a_l). The
    function that is computed during training does not change. At the base width, every parametrisation is the standard
    one.

    Args:
        parametrisation: The exponents, and the number of hidden layers.
        width: n, the width of all hidden layers.
        input_dimension: Number of inputs.
        output_dimension: Number of outputs.
        base_width: n₀.
        activation: Name of the activation of an `MLP`.
        seed: Seed of the draw.

    Returns:
        The network and its relative rates {"weights.0": …}. Multiply them by η, and pass them as `learning_rate` to
        `Descent`.

    Raises:
        InputError: If a number is not positive, or a power of the width overflows.

    References:
        G. Yang, E. J. Hu, Feature Learning in Infinite-Width Neural Networks, arXiv:2011.14522, section 3.

    Example:
        >>> from dynascope.theory.regimes import abc_parametrisations
        >>> network, rates = abc_network(abc_parametrisations()["muP"], 256, 3)
        >>> [weight.shape for weight in network.weights], rates
        ([(3, 256), (256, 256), (256, 1)], {'weights.0': 4.0, 'weights.1': 1.0, 'weights.2': 0.25})
    """
    factors = parametrisation.at(width, base_width=base_width)
    hidden = parametrisation.hidden_layers
    network = MLP((input_dimension, *(width,) * hidden, output_dimension), bias=False, activation=activation, seed=seed)
    # `MLP` draws weights with variance 1/fan-in.
    growth = (1.0, *(math.sqrt(width / base_width),) * hidden)
    sizes = zip(factors.multipliers, factors.deviations, growth, strict=True)
    weights = tuple(
        weight * (multiplier * deviation * root)
        for weight, (multiplier, deviation, root) in zip(network.weights, sizes, strict=True)
    )
    rates = {
        f"weights.{layer}": factors.learning_rate * multiplier * multiplier
        for layer, multiplier in enumerate(factors.multipliers)
    }
    require(
        all(map(math.isfinite, rates.values())) and all(bool(np.isfinite(weight).all()) for weight in weights),
        f"width is {width}, so a learning rate or a weight overflows",
        argument="width",
        value=width,
        remedy="choose a width closer to base_width",
    )
    return eqx.tree_at(lambda layers: layers.weights, network, weights), rates
