"""Deep ReLU networks with or without batch normalisation, at a relative scale of the first and last layers."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.tasks import Task

__all__ = ["DeepReLU", "Setting", "deep_relu", "layer_rates", "setting"]


class DeepReLU(eqx.Module):
    """A network h_l = max(N(h_(l−1) W_l), 0) with h_0 = x and the outputs h_(L−1) W_L, without biases.

    N is the identity or, if `normalised`, subtracts the mean over a batch and divides by the standard deviation.

    Attributes:
        weights: (W_1, …, W_L), each of shape (input width, output width).
        normalised: Whether the inputs of every ReLU are normalised.
    """

    weights: tuple[Any, ...]
    normalised: bool = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        """Compute the outputs for a batch, with its own statistics; shape (n, c)."""
        return self.layers(x, x)[-1]

    def layers(self, x: Any, batch: Any) -> tuple[Any, ...]:
        """Compute the inputs of every ReLU and the outputs for x, with the statistics of another batch."""
        found = []
        for weight in self.weights[:-1]:
            z, other = x @ weight, batch @ weight
            if self.normalised:
                mean, deviation = jnp.mean(other, axis=0), jnp.std(other, axis=0)
                z, other = (z - mean) / deviation, (other - mean) / deviation
            found.append(z)
            x, batch = jax.nn.relu(z), jax.nn.relu(other)
        return (*found, x @ self.weights[-1])


class Setting(NamedTuple):
    """Data and initial weights of one seed.

    Attributes:
        task: Training inputs, and outputs of the teacher.
        test: The same for test inputs.
        weights: Initial weights (W_1, …, W_L) at the relative scale one, before they are multiplied by the output
            scale.
    """

    task: Task
    test: Task
    weights: tuple[np.ndarray, ...]


def setting(
    seed: Any, *, inputs: int, samples: int, test_samples: int, width: int, depth: int, teacher_width: int
) -> Setting:
    """Draw Gaussian inputs, a ReLU teacher, and the weights of a network with entries of variance 2/fan-in.

    The teacher Σ a_i max(w_i · x, 0) has alternating signs a_i = ±1 and directions w_i from the unit sphere. Its
    outputs are divided by their root mean square over the training samples. Networks of all depths learn from one
    teacher.

    Args:
        seed: Seed of the draw, a list of integers.
        inputs: Number of inputs.
        samples: Number of training samples.
        test_samples: Number of test samples.
        width: Number of neurons of each hidden layer.
        depth: Number of hidden layers.
        teacher_width: Number of neurons of the teacher.
    """
    draw, own = np.random.default_rng([*seed, 0]), np.random.default_rng([*seed, depth])
    directions = draw.normal(size=(inputs, teacher_width))
    directions /= np.linalg.norm(directions, axis=0)
    signs = np.where(np.arange(teacher_width) % 2, -1.0, 1.0)
    data = [draw.normal(size=(number, inputs)) for number in (samples, test_samples)]
    targets = [(np.maximum(x @ directions, 0) @ signs)[:, None] for x in data]
    size = np.sqrt(np.mean(targets[0] ** 2))
    tasks = [Task(x, y / size, name="a ReLU teacher") for x, y in zip(data, targets, strict=True)]
    shapes = itertools.pairwise([inputs, *[width] * depth, 1])
    weights = tuple(np.sqrt(2 / shape[0]) * own.normal(size=shape) for shape in shapes)
    return Setting(tasks[0], tasks[1], weights)


def deep_relu(
    weights: tuple[np.ndarray, ...], relative_scale: float, output_scale: float, *, normalised: bool
) -> DeepReLU:
    """Make a network whose initial function does not depend on the relative scale α.

    W_1 is divided by α. Without normalisation, W_L is multiplied by α, and every layer by s^(1/L) for the output scale
    s. With normalisation, the scale of the hidden layers has no effect on the outputs, so s multiplies only W_L, and no
    layer is multiplied by α.
    """
    first, *middle, last = weights
    if normalised:
        return DeepReLU((first / relative_scale, *middle, output_scale * last), normalised=True)
    each = output_scale ** (1 / len(weights))
    scaled = (first / relative_scale, *middle, last * relative_scale)
    return DeepReLU(tuple(each * weight for weight in scaled), normalised=False)


def layer_rates(rate: float, relative_scale: float, layers: int, *, normalised: bool) -> dict[str, float]:
    """The learning rates at which a network at the relative scale one learns like one at the scale α at one rate η.

    The first layer has the rate ηα². Without normalisation, the last layer has the rate η/α²; all other layers have η.
    """
    rates = dict.fromkeys((f"weights.{layer}" for layer in range(layers)), rate)
    rates["weights.0"] *= relative_scale**2
    if not normalised:
        rates[f"weights.{layers - 1}"] /= relative_scale**2
    return rates
