"""Training of classifiers whose errors are sent back through feedback weights, with one program for an ensemble."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import jax
import numpy as np
import xarray as xr

from dynascope.errors import DivergenceError, DivergenceWarning, InputError
from dynascope.interventions.credit_rules import CreditRule
from dynascope.interventions.credit_steps import LARGEST_RATIO, Member, Schedule, run_members
from dynascope.interventions.feedback_network import FeedbackNetwork
from dynascope.tasks.labelled import Labelled
from dynascope.validation import checked, require
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Seed

__all__ = ["CreditTraining", "train_with_feedback"]

_PROBED = 256  # training samples on which gradients are compared
_NUMBERS = ("learning_rate", "weight_decay", "feedback_rate", "feedback_noise")


@checked
@dataclasses.dataclass(frozen=True)
class CreditTraining:
    """Settings of SGD with feedback weights.

    Each step draws a batch with replacement, updates all weights with the gradient g that the feedback weights send
    back, and then updates the feedback weights:

        W ← W − η (g + λ W),   B ← B − η_B (∇R + ν ξ)   with standard normal ξ

    With the rule Kolen-Pollack, B ← B − η (g + λ B + ν ξ).

    Attributes:
        learning_rate: η.
        weight_decay: λ ≥ 0 of the weights; biases do not decay.
        feedback_rate: η_B.
        feedback_noise: ν ≥ 0, standard deviation of the noise in the updates of the feedback weights.
        batch_size: Samples per step.
        steps: Number of steps, a multiple of `records`.
        warm_up: Number of steps before training in which only feedback weights that descend a regulariser are updated;
            about 5/(η_B β) steps suffice to align them, where β is the decay coefficient of the regulariser.
        drive: Input of the layers in the regulariser: "noise", standard normal, or "activity", the inputs of the layers
            for the batch.
        records: Number of equally spaced steps after which the run is measured, besides step 0.

    Raises:
        InputError: If a setting is out of range, or the number of steps is not a multiple of the number of records.

    Example:
        >>> CreditTraining(learning_rate=0.02, steps=200).records
        10
    """

    learning_rate: PositiveFloat
    weight_decay: NonNegativeFloat = 0.0
    feedback_rate: PositiveFloat = 0.1
    feedback_noise: NonNegativeFloat = 0.0
    batch_size: PositiveInt = 50
    steps: PositiveInt = 1000
    warm_up: NonNegativeInt = 0
    drive: Literal["noise", "activity"] = "noise"
    records: PositiveInt = 10

    def __post_init__(self):
        require(
            self.steps % self.records == 0,
            f"steps is {self.steps}, which is not a multiple of records={self.records}",
            argument="steps",
            value=self.steps,
            remedy=f"choose a multiple of {self.records}, or another number of records",
        )

    @property
    def schedule(self) -> Schedule:
        """The settings that determine the compiled program."""
        return Schedule(self.batch_size, self.steps, self.warm_up, self.drive, self.records)


@checked
def train_with_feedback(
    data: Labelled,
    networks: FeedbackNetwork | Sequence[FeedbackNetwork],
    rule: CreditRule | Sequence[CreditRule],
    training: CreditTraining | Sequence[CreditTraining],
    *,
    test: Labelled | None = None,
    seed: Seed = 0,
    return_networks: bool = False,
) -> Any:
    """Train classifiers with a rule for the feedback weights, and measure the alignment of weights and gradients.

    The loss is the cross-entropy. Networks, rules and settings form an ensemble that trains in one compiled program.
    Networks train in the precision of their weights.

    Args:
        data: Training data.
        networks: One network, or networks with the same architecture, one for each member.
        rule: One rule, or a rule for each member.
        training: The settings, or settings for each member. Settings of members may differ only in rates, decay and
            noise.
        test: Test data for the accuracy, or None.
        seed: Seed of batches and noise; all members draw the same batches.
        return_networks: Whether to return the trained networks too, as a list.

    Returns:
        A dataset over `member` (if a sequence is given), `step` and `layer` (only layers with feedback weights, counted
        from 1): `loss` and `accuracy` on the training data, `test_accuracy`, `weight_angle` (between B and W, in
        degrees), `norm_ratio` (‖B‖/‖W‖) and `gradient_angle` (between the approximate gradient of the rule and the
        exact gradient, on the same training samples, in degrees); and `diverged`, the step from which a
        member diverged, or −1. The measures of a diverged member are NaN from that step onwards.

    Raises:
        DivergenceError: If every member diverges: the norm ratio of a layer exceeds 1000, or the loss is not finite.
            The error names the layer or the loss.
        InputError: If architectures or settings of the members differ in more than the stated parts, if the sequences
            have different lengths, if no layer has feedback weights, or if the networks do not fit the data.

    Warns:
        DivergenceWarning: If some members diverge.

    References:
        Kunin, Nayebi, Sagastuy-Brena, Ganguli, Bloom, Yamins, arXiv:2003.01513.

    Example:
        >>> from dynascope.interventions import CREDIT_RULES, feedback_mlp
        >>> x = np.random.default_rng(0).normal(size=(100, 3))
        >>> record = train_with_feedback(
        ...     Labelled(x, (x[:, 0] > 0).astype(int)),
        ...     feedback_mlp((3, 8, 2)),
        ...     CREDIT_RULES["symmetric alignment"],
        ...     CreditTraining(0.1, steps=100, warm_up=50),
        ... )
        >>> bool(record["accuracy"][-1] > 0.9), bool(record["gradient_angle"][-1] < 5)
        (True, True)
    """
    parts = (networks, rule, training)
    lengths = {len(each) for each in parts if isinstance(each, Sequence)}
    require(
        len(lengths) < 2 and 0 not in lengths,
        f"networks, rule and training have lengths {sorted(lengths)}",
        argument="networks",
        value=sorted(lengths),
        remedy="give non-empty sequences of equal length",
    )
    count = max(lengths, default=1)
    every, rules, settings = (_repeated(each, count) for each in parts)
    _require_same("training", "training schedules", [each.schedule for each in settings])
    _require_same("networks", "architectures", [_architecture(each) for each in every])
    require(
        len(_feedback_layers(every[0])) > 0,
        "networks contains no layer with feedback weights",
        argument="networks",
        remedy="give networks of two or more layers, with feedback weights in every layer except the first",
    )
    _require_fit(every[0], data)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *every)
    precision = jax.tree.leaves(stacked)[0].dtype
    numbers = {name: np.array([getattr(each, name) for each in settings], precision) for name in _NUMBERS}
    kinds, primitives = (
        sorted({each.feedback for each in rules}),
        sorted({name for r in rules for name in r.primitives}),
    )
    coefficients = {name: np.array([each.primitives.get(name, 0) for each in rules], precision) for name in primitives}
    kind = np.array([kinds.index(each.feedback) for each in rules], np.int32)
    members = Member(stacked, **numbers, kind=kind, coefficients=coefficients)
    tested = data if test is None else test
    sets = [(each.inputs, each.labels) for each in (data, tested)]
    sets.append((data.inputs[:_PROBED], data.labels[:_PROBED]))
    with jax.enable_x64(bool(precision == np.float64)):
        key = jax.random.key(seed)
        ends, curves, failed = jax.device_get(run_members(tuple(kinds), settings[0].schedule, members, sets, key))
    if test is None:
        del curves["test_accuracy"]
    _report(failed, every[0], settings)
    single = not lengths
    record = _record(curves, failed, every[0], settings[0], single)
    if not return_networks:
        return record
    trained = [jax.tree.map(lambda leaf, k=k: leaf[k], ends) for k in range(count)]
    return record, trained[0] if single else trained


def _require_fit(network: FeedbackNetwork, data: Labelled) -> None:
    """Raise `InputError` unless the network takes the inputs and has an output for every class."""
    try:
        outputs = jax.eval_shape(network, data.inputs[:1]).shape
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the networks cannot be applied to inputs of shape {data.inputs.shape[1:]}",
            argument="networks",
            value=data.inputs.shape[1:],
            remedy=f"give networks with {math.prod(data.inputs.shape[1:])} inputs",
        ) from error
    classes = data.output_dimension
    require(
        outputs[-1] >= classes,
        f"data has {classes} classes, but the output dimension of the networks is {outputs[-1]}",
        argument="networks",
        value=outputs[-1],
        remedy=f"give networks with at least {classes} outputs",
    )


def _repeated(each: Any, count: int) -> list[Any]:
    return list(each) if isinstance(each, Sequence) else [each] * count


def _require_same(name: str, what: str, described: Sequence[Any]) -> None:
    for k, each in enumerate(described):
        if each != described[0]:
            raise InputError(
                f"members 0 and {k} have different {what}",
                argument=name,
                value=each,
                remedy="train these members in separate calls",
            )


def _architecture(network: FeedbackNetwork) -> Any:
    return jax.tree.structure(network), [np.shape(leaf) for leaf in jax.tree.leaves(network)]


def _feedback_layers(network: FeedbackNetwork) -> list[int]:
    return [k for k, each in enumerate(network.layers, start=1) if each.backward is not None]


def _report(failed: np.ndarray, network: FeedbackNetwork, settings: Sequence[CreditTraining]) -> None:
    """Raise or warn about diverged members; the first columns are the layers, and the last is the loss."""
    diverged = np.asarray((failed >= 0).any(axis=1))
    if not diverged.any():
        return
    member = int(np.argmax(diverged))
    steps = np.where(failed[member] < 0, np.inf, failed[member])
    step, column, layers = int(steps.min()), int(np.argmin(steps)), _feedback_layers(network)
    if column < len(layers):
        what = f"‖B‖/‖W‖ of layer {layers[column]} exceeds {LARGEST_RATIO:g} or is not finite"
        remedy = "lower feedback_rate or the amplification, or add decay or the null primitive"
    else:
        what, remedy = "the loss is not finite", "lower learning_rate, or increase warm_up"
    time = step * settings[member].learning_rate
    if diverged.all():
        raise DivergenceError(f"{what} at step {step}", time=time, remedy=remedy)
    problem = f"{diverged.sum()} of {len(diverged)} members diverged; in member {member}, {what} at step {step}"
    warnings.warn(DivergenceWarning(problem, time=time, remedy=remedy), stacklevel=3)


def _record(
    curves: dict[str, np.ndarray],
    failed: np.ndarray,
    network: FeedbackNetwork,
    training: CreditTraining,
    single: bool,
) -> xr.Dataset:
    steps = np.arange(training.records + 1) * (training.steps // training.records)
    first = np.where(failed < 0, np.inf, failed).min(axis=1)  # of any layer
    lost = np.asarray(steps >= first[:, None])
    variables: dict[str, Any] = {}
    for name, values in curves.items():
        dims = ("member", "step", "layer")[: values.ndim]
        hidden = lost.reshape(*lost.shape, *(1,) * (values.ndim - 2))
        variables[name] = (dims, np.where(hidden, np.nan, values))
    variables["diverged"] = ("member", np.where((failed >= 0).any(axis=1), first, -1))
    record = xr.Dataset(variables, {"step": steps, "layer": _feedback_layers(network)})
    return record.isel(member=0) if single else record
