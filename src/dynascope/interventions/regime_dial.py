"""The regime dial: scales of outputs, weights, targets and inputs that make training lazier or richer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import optax

from dynascope.compilation.frameworks import also_in_pytorch
from dynascope.errors import InputError
from dynascope.interventions.dial_match import DialMatch, layer_factors, match_dial, require_target_scale
from dynascope.networks import MLP, DeepLinear, TwoLayer
from dynascope.protocols import Network
from dynascope.tasks import Task
from dynascope.tasks.as_task import TaskLike, as_task
from dynascope.theory.regimes import OptimizerSettings
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat

__all__ = ["RegimeDial", "regime_dial"]


class ScaledOutput(eqx.Module):
    """A network whose outputs are multiplied by a factor that is not trained."""

    network: Any
    factor: float = eqx.field(static=True)

    def __call__(self, x: Any) -> Any:
        """Compute the scaled outputs."""
        return self.factor * self.network(x)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RegimeDial(DialMatch):
    """A rescaled training problem, with matched settings of the optimiser.

    Attributes:
        task: The task with scaled inputs and targets.
        network: The network with scaled initial weights and outputs.
        output_scale: α, the effective output scale; training is lazier for α > 1 and richer for α < 1.
        regime: "twin" if α = 1, otherwise "lazier" or "richer".
        settings: Matched settings of each weight array, by its path in `network`.
        clock: Speed of the run under SGD if its learning rate is not matched, relative to the matched run, for small
            learning rates; None if the arrays have different rates, or for Adam.
        clip_norm: Matched threshold of the global gradient norm; None without clipping.
        broken_by: Parts of training that have no exact match.
        summary: One sentence about the regime.
    """

    task: Task
    network: Network

    def optimizer(self, schedule: Callable[[Any], Any] | None = None) -> optax.GradientTransformation:
        """Return the matched optimiser as an optax transformation, for `Descent`.

        Args:
            schedule: Factor on the learning rates of all arrays, a JAX function of the number of updates, such as
                `optax.cosine_decay_schedule(1.0, 1000)`. The given run and its twin have the same factor. A schedule of
                the learning rate itself would replace the matched rates, and break the twin.

        Raises:
            InputError: If the settings contain dampening, which optax lacks.
        """
        transformations: Any = {path: _transformation(each) for path, each in self.settings.items()}
        steps = optax.partition(
            transformations, lambda params: jax.tree_util.tree_map_with_path(lambda p, _: _path(p), params)
        )
        clipping = [] if self.clip_norm is None else [optax.clip_by_global_norm(self.clip_norm)]
        scheduled = [] if schedule is None else [optax.scale_by_schedule(schedule)]
        return optax.chain(*clipping, steps, *scheduled)


@also_in_pytorch("dynascope.torch.regime_dial")
def regime_dial(
    task: TaskLike,
    network: Network,
    settings: OptimizerSettings,
    *,
    output_scale: PositiveFloat = 1.0,
    init_scale: PositiveFloat = 1.0,
    layer_scales: Sequence[PositiveFloat] | None = None,
    target_scale: PositiveFloat = 1.0,
    input_scale: PositiveFloat = 1.0,
    clip_norm: PositiveFloat | None = None,
    loss: Literal["squared", "cross_entropy"] = "squared",
) -> RegimeDial:
    """Rescale a training problem, match the optimiser, and compute how much lazier or richer training becomes.

    With the factors o, s_l, i and T on the outputs, the initial weights of layer l, the inputs and the targets, the run
    has the effective output scale

        α = o · i^m · Π_l s_l^(m_l) / T,

    where m and m_l are the degrees of the outputs in the inputs and in the weights of layer l (all are one for ReLU and
    linear MLPs). At the matched settings, the run computes, at every step and up to the factor T, the same function as
    the given network with outputs multiplied by α, trained on L/α² with the given settings. Hence any two rescalings
    with equal α are exact twins, and for α = 1 the run is an exact twin of the given run. As α → ∞, training is lazy.

    Initial biases of layer l are multiplied by i s₁ ⋯ s_l, so that the function is scaled exactly. A learning-rate
    schedule must be multiplied by the same factor as the learning rate of each array; pass it as `schedule` to
    `RegimeDial.optimizer`.

    Args:
        task: A `Task`, or inputs and targets.
        network: A network with its initial weights. Dials other than the scales of outputs and targets require an `MLP`
            with ReLU or linear activation, a `DeepLinear` or a `TwoLayer` network, whose degrees are known. For a
            `torch.nn.Module`, the function is `dynascope.torch.regime_dial`.
        settings: Settings of the given run.
        output_scale: o > 0.
        init_scale: Factor > 0 on the weights of all layers.
        layer_scales: Additional factor > 0 for each layer, shape (layers,).
        target_scale: T > 0. It has no equivalent for cross-entropy.
        input_scale: i > 0.
        clip_norm: Threshold of the global gradient norm of the given run; None without clipping.
        loss: "squared" or "cross_entropy". For cross-entropy, α is also an inverse temperature of the outputs.

    Returns:
        The rescaled problem, its settings and its regime.

    Raises:
        InputError: If a scale is not positive, if the target scale is given with cross-entropy, if the degrees of the
            network are unknown but required, or if the number of layer scales is not the number of layers.

    References:
        L. Chizat, E. Oyallon, F. Bach, arXiv:1812.07956, for α; the matched settings are derived in
        `theory.regimes.matched_settings`.

    Example:
        >>> import numpy as np
        >>> task, network = Task(np.eye(2), np.eye(2)), DeepLinear((2, 8, 8, 2))
        >>> dial = regime_dial(task, network, OptimizerSettings("sgd", 0.1), init_scale=2.0)
        >>> dial.regime, dial.output_scale, dial.clock, dial.settings[".network.weights[0]"].learning_rate
        ('lazier', 8.0, 16.0, 0.00625)
    """
    require_target_scale(target_scale, loss)
    data = as_task(task)
    if not isinstance(data, Task):
        name = type(data).__name__
        raise InputError(f"task {name} has no samples", argument="task", value=name, remedy="give inputs and targets")
    scales, degrees = _layers(network, init_scale, layer_scales, input_scale)
    alpha = output_scale * degrees / target_scale
    factors = {f".network{_path(path)}": scale for path, scale in jax.tree_util.tree_leaves_with_path(scales)}
    match = match_dial(settings, factors, alpha, target_scale=target_scale, clip_norm=clip_norm)
    scaled = jax.tree.map(lambda weight, scale: weight * scale, eqx.filter(network, eqx.is_inexact_array), scales)
    return RegimeDial(
        **vars(match),
        task=dataclasses.replace(data, inputs=input_scale * data.inputs, targets=target_scale * data.targets),
        network=ScaledOutput(eqx.combine(scaled, network), output_scale),
    )


def _layers(
    network: Network, init_scale: float, layer_scales: Sequence[float] | None, input_scale: float
) -> tuple[Any, float]:
    """Return the scale of every weight array, as a tree, and the factor by which the scales multiply the outputs."""
    ones = jax.tree.map(lambda _: 1.0, eqx.filter(network, eqx.is_inexact_array))
    if init_scale == input_scale == 1 and layer_scales is None:
        return ones, 1.0
    homogeneous = isinstance(network, MLP) and network.activation in ("relu", "linear")
    require(
        homogeneous or isinstance(network, DeepLinear | TwoLayer),
        f"the degree of the outputs in the weights is not known for this {type(network).__name__}",
        argument="network",
        value=type(network).__name__,
        remedy="use an MLP with ReLU or linear activation, DeepLinear or TwoLayer; or output_scale and target_scale",
    )
    count = 2 if isinstance(network, TwoLayer) else len(network.weights)  # type: ignore[attr-defined]
    factors = layer_factors(count, init_scale, layer_scales)
    if isinstance(network, TwoLayer):
        tree = eqx.tree_at(lambda each: (each.first, each.second), ones, factors)
        return tree, math.prod((input_scale * factors[0],) * network.activation.degree) * factors[1]
    products = [input_scale * math.prod(factors[: layer + 1]) for layer in range(count)]
    tree = eqx.tree_at(lambda each: each.weights, ones, factors)
    if isinstance(network, MLP) and network.biases:
        tree = eqx.tree_at(lambda each: each.biases, tree, tuple(products))
    return tree, products[-1]


def _path(path: Any) -> str:
    return jax.tree_util.keystr(path)


def _transformation(settings: OptimizerSettings) -> optax.GradientTransformation:
    require(
        settings.dampening == 0,
        f"dampening is {settings.dampening:g}, which optax does not support",
        argument="dampening",
        value=settings.dampening,
        remedy="set dampening to 0, or pass the matched settings to PyTorch",
    )
    if settings.optimizer == "adam":
        core = optax.scale_by_adam(*settings.betas, eps=settings.epsilon)
    else:
        core = optax.trace(settings.momentum, settings.nesterov) if settings.momentum else optax.identity()
    return optax.chain(
        optax.add_decayed_weights(settings.coupled_decay),
        core,
        optax.add_decayed_weights(settings.decoupled_decay),
        optax.scale(-settings.learning_rate),
    )
