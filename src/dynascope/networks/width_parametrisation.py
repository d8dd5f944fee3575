"""Two-layer networks whose initialisation and learning rates are powers of a single scaling parameter."""

from __future__ import annotations

import math

import equinox as eqx
import numpy as np

from dynascope.networks.two_layer import TwoLayer
from dynascope.theory.regimes.phases import Parametrisation
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

__all__ = ["initial_network"]


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
