"""Descriptions of the features learned at each jump, in terms of input and output names."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.neuron_sum import NeuronSum
from dynascope.networks.two_layer import TwoLayer
from dynascope.prediction.sensitivity import sensitivity
from dynascope.prediction.unit_dependence import spreads_of
from dynascope.protocols import Learnable, Network
from dynascope.results import name_all
from dynascope.results import staircase_names as names
from dynascope.tasks.task import Task

__all__ = ["Side", "dependence_words", "direction_words", "output_words", "with_words"]

_NAMED = 3  # maximum number of inputs, or of classes on one side, to name
_WHOLE = 0.9  # share of the squared norm above which no further inputs are named
_NOTICEABLE = 0.1  # smallest coefficient at unit norm whose omission is marked
_FAINT = 0.1  # fraction of the largest output below which outputs of the other sign are not mentioned
_CLEAR = 0.6  # fraction of the largest output on a side from which another output is named with it


class Side(enum.Enum):
    """The range of pre-activations for which a neuron is active."""

    BOTH = "any sign, as for linear neurons"
    HIGH = "only or mainly positive"
    FAR = "large values of either sign equally"


def with_words(record: xr.Dataset, task: Learnable, network: Network) -> xr.Dataset:
    """Describe the features learned at each jump, if the theory predicts their inputs and outputs.

    Args:
        record: A staircase with `input_feature` (and `output_feature` if there are several outputs); or with the
            `settled_direction` of custom neurons, for which the description states the inputs on which they depend.
        task: The task, with names of inputs and outputs.
        network: The network.

    Returns:
        The record with new descriptions in `learned`, and with `learned_direction` over (jump, feature): the dominant
        linear map added at the jump (`main_map`) or, if unavailable, the input weights that grow (`input_feature`), at
        unit norm. The direction is in units of the standard deviation of each input, so entries are comparable and do
        not depend on units such as metres or feet. If the activation is odd, the sign is chosen such that the most
        affected output increases along the direction. For other activations of `alternating_flow`, the record also
        contains `output_effect` over (jump, target): the change in each output when the inputs move by one unit along
        this direction, starting where the neuron becomes active. For a ReLU neuron, `output_effect` is the output
        weight times the norm of the input weights. It is NaN if the neuron has no separate effect on the plateau (see
        `settled_norm` of `alternating_flow`).
    """
    if "input_feature" not in record:
        return _of_any_neurons(record, task, network)
    maps, side = record["main_map" if "main_map" in record else "input_feature"].to_numpy(), _side(network)
    outputs = record["output_feature"].to_numpy() if "output_feature" in record else None
    if outputs is not None and side is Side.BOTH:
        # The sign is arbitrary for odd activations; choose it such that the most affected output increases.
        signs = np.sign(np.take_along_axis(outputs, np.abs(outputs).argmax(axis=1)[:, None], axis=1))
        maps, outputs = signs * maps, signs * outputs
    biases = record["hidden_bias"].to_numpy() if "hidden_bias" in record else np.zeros(len(maps))
    parts = maps * spreads_of(task)
    sizes = np.linalg.norm(parts, axis=1, keepdims=True)
    directions = np.divide(parts, sizes, out=np.zeros_like(parts), where=sizes > 0)
    record = record.assign(learned_direction=(("jump", "feature"), directions))
    if "settled_norm" in record and side is not Side.BOTH and isinstance(network, TwoLayer | BiasedTwoLayer):
        activation = network.activation
        changes = record["settled_norm"].to_numpy()[:, None] ** network.degree * sizes**activation.degree * outputs
        record = record.assign(output_effect=(("jump", "target"), activation.positive * changes))
    record = name_all(record)
    texts = [str(each) for each in record[names.LEARNED].to_numpy()]
    features = [] if getattr(task, "image_shape", None) else [str(each) for each in record["feature"].to_numpy()]
    if outputs is None and features:
        # Append the direction to the description of the theory.
        texts = [f"{words}: {direction_words(row, features)}" for words, row in zip(texts, directions, strict=True)]
    elif outputs is not None:
        labels, means = [str(each) for each in record["target"].to_numpy()], _class_means(task, network, maps, biases)
        for k, (output, row) in enumerate(zip(outputs, directions, strict=True)):
            words = output_words(output, labels, row, features, means=None if means is None else means[k], side=side)
            texts[k] = _of_neurons(words, record.isel(jump=k), texts[k]) if "activated" in record else words
    return record.assign({names.LEARNED: ("jump", np.array(texts, dtype=str), record[names.LEARNED].attrs)})


def _of_any_neurons(record: xr.Dataset, task: Learnable, network: Network) -> xr.Dataset:
    """Describe neurons for which only the output function is known."""
    if "settled_direction" not in record or not isinstance(network, NeuronSum) or not isinstance(task, Task):
        return record
    texts = [str(each) for each in record[names.LEARNED].to_numpy()]
    for k, weights in enumerate(record["settled_direction"].to_numpy()):
        parts, moved = sensitivity(network, weights, np.asarray(task.inputs))
        words = dependence_words(parts, () if task.image_shape else task.feature_names, moved, task.target_names)
        texts[k] = _of_neurons(words, record.isel(jump=k), texts[k]) if words else texts[k]
    return record.assign({names.LEARNED: ("jump", np.array(texts, dtype=str), record[names.LEARNED].attrs)})


def dependence_words(
    parts: Float[np.ndarray, " d"],
    features: Sequence[str],
    moved: Float[np.ndarray, " c"],
    labels: Sequence[str],
) -> str:
    """Describe the inputs that a neuron depends on and the outputs it changes; empty if there are none.

    Args:
        parts: Sensitivity to each input, at unit norm.
        features: Names of the inputs; empty for images.
        moved: Effect on each output, at unit norm.
        labels: Names of the outputs.

    Example:
        >>> dependence_words(np.array([0.0, 0.8, 0.6]), ("age", "size", "rent"), np.eye(2)[1], ("oak", "elm"))
        'changes elm based on size and rent'
    """
    if not parts.any() or not moved.any():
        return ""
    basis = _listed_inputs(parts, features) if features else "a pattern"
    return f"changes {_listed_inputs(moved, labels) if len(labels) > 1 else 'the output'} based on {basis}"


def direction_words(direction: Float[np.ndarray, " d"], features: Sequence[str]) -> str:
    """Format the largest entries of a unit vector as a sum.

    At most three entries are named, up to 90 % of the squared norm. An ellipsis stands for the rest if it contains an
    entry of at least 0.1.

    Example:
        >>> direction_words(np.array([0.05, -0.6, 0.79]), ("age", "height", "weight"))
        '0.8 weight − 0.6 height'
        >>> direction_words(np.array([0.2, -0.6, 0.77]), ("age", "height", "weight"))
        '0.8 weight − 0.6 height + …'
        >>> direction_words(np.array([0.0, -1.0, 0.0]), ("age", "height", "weight"))
        '−height'
        >>> direction_words(np.full(16, 0.25), [f"x{i}" for i in range(16)])
        '0.2 x0 + 0.2 x1 + 0.2 x2 + …'
    """
    kept, rest = _largest(direction)
    if len(kept) == 1 and not rest:
        return f"{'−' if direction[kept[0]] < 0 else ''}{features[kept[0]]}"
    parts = [f"{'−' if direction[i] < 0 else '+'} {abs(direction[i]):.1f} {features[i]}" for i in kept]
    first = parts[0].removeprefix("+ ").replace("− ", "−", 1)
    return " ".join([first, *parts[1:], *(["+ …"] if rest else [])])


def output_words(
    output: Float[np.ndarray, " c"],
    labels: Sequence[str],
    direction: Float[np.ndarray, " d"],
    features: Sequence[str],
    *,
    means: Float[np.ndarray, " c"] | None,
    side: Side = Side.BOTH,
) -> str:
    """Describe the effect of an input direction on the outputs.

    Args:
        output: Weight from the neuron to each output.
        labels: Names of the outputs.
        direction: Entry of each input, at unit norm.
        features: Names of the inputs; empty for images, which are shown as pictures.
        means: Mean activation of the neuron in each class, centred; None if the outputs are not classes.
        side: The pre-activations for which the neuron is active.

    Example:
        >>> classes, inputs = ("class 0", "class 1", "class 2"), ("alcohol", "proline")
        >>> output_words(np.array([-0.6, 0.0, 0.7]), classes, np.eye(2)[1], inputs, means=np.array([-1.0, -0.1, 1.0]))
        'separates class 2 from class 0 by proline'
        >>> output_words(np.array([1.0]), ("price",), np.array([-0.8, 0.6]), ("age", "size"), means=None)
        'direction −0.8 age + 0.6 size'
    """
    if side is Side.BOTH:
        if means is not None:
            by = f" by {_listed_inputs(direction, features)}" if features else ""
            return _separated(output, labels, means) + by
        of = f"direction {direction_words(direction, features)}" if features else "a pattern"
        return of if len(labels) == 1 else f"{of}, for {direction_words(_unit(output), labels)}"
    text = _moved(output, labels) if means is None else _separated(output, labels, means)
    return f"{text} where {_where(direction, features, side)}" if features else text


def _moved(output: np.ndarray, labels: Sequence[str]) -> str:
    words = direction_words(_signed(_unit(output)), labels)
    return f"{'lowers' if _leading(output) < 0 else 'raises'} {words}"


def _where(direction: np.ndarray, features: Sequence[str], side: Side) -> str:
    # Negating the direction avoids a double negation: a positive sum that is low, not a negative one that is high.
    words = direction_words(_signed(direction), features)
    if side is Side.FAR:
        return f"{words} is far from its mean"
    return f"{words} is {'low' if _leading(direction) < 0 else 'high'}"


def _separated(output: np.ndarray, labels: Sequence[str], means: np.ndarray) -> str:
    """Name the classes whose outputs rise most, and those whose outputs fall most."""
    if len(labels) == 1:
        sides = (labels[0], "the rest") if output[0] > 0 else ("the rest", labels[0])
        return _contrast(*sides, apart=bool(output[0] * means[0] > 0))
    rising, falling = _clearest(output), _clearest(-output)
    if not rising or not falling:
        return "common to all classes"
    # A neuron that corrects other neurons may raise a class in which it is hardly active.
    apart = bool(means[rising].min() > means[falling].max())
    return _contrast(_members(rising, falling, labels), _members(falling, rising, labels), apart=apart)


def _contrast(rising: str, falling: str, *, apart: bool) -> str:
    return f"separates {rising} from {falling}" if apart else f"raises {rising} over {falling}"


def _members(side: Sequence[int], other: Sequence[int], labels: Sequence[str]) -> str:
    if len(side) > _NAMED and len(other) <= _NAMED:
        return "the rest"
    return _joined([labels[i] for i in side[:_NAMED]]) + (" and others" if len(side) > _NAMED else "")


def _clearest(output: np.ndarray) -> list[int]:
    """Return the outputs close to the largest, in decreasing order; none if the largest barely rises."""
    largest = output.max()
    if largest <= _FAINT * np.abs(output).max():
        return []
    return [int(i) for i in np.argsort(-output, kind="stable") if output[i] >= _CLEAR * largest]


def _listed_inputs(direction: np.ndarray, features: Sequence[str]) -> str:
    if not features:
        return ""
    kept, rest = _largest(direction)
    chosen = [features[i] for i in kept]
    return f"{', '.join(chosen)} and others" if rest else _joined(chosen)


def _largest(direction: np.ndarray) -> tuple[list[int], bool]:
    """Return the few largest entries, and whether the rest contains a noticeable one."""
    order = np.argsort(-np.abs(direction).round(9), kind="stable")
    parts = np.abs(direction[order]) / max(float(np.linalg.norm(direction)), 1e-300)
    needed = min(int(np.argmax(np.cumsum(parts**2) >= _WHOLE)) + 1, _NAMED)
    return order[:needed].tolist(), needed < len(parts) and bool(parts[needed] >= _NOTICEABLE)


def _joined(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _of_neurons(words: str, jump: xr.Dataset, old: str) -> str:
    """Return the description of a jump of one or more neurons; the previous description if no neuron was activated."""
    activated, returned = int(jump["activated"].sum()), int(jump["returned"].sum())
    if not activated:
        return old
    more = f"; and {activated - 1} more neuron{'s' * (activated > 2)}" if activated > 1 else ""
    return f"{words}{more}" + (f"; {returned} neuron{'s' * (returned > 1)} dormant again" if returned else "")


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / (np.linalg.norm(vector) or 1.0)


def _signed(direction: np.ndarray) -> np.ndarray:
    """Return the direction, with the sign that makes its entry of largest absolute value positive."""
    return direction * np.copysign(1.0, _leading(direction))


def _leading(direction: np.ndarray) -> float:
    """Return the first of the entries of largest absolute value."""
    return float(direction[np.argmax(np.abs(direction).round(9))])


def _class_means(
    task: Learnable, network: Network, maps: np.ndarray, biases: np.ndarray
) -> Float[np.ndarray, "jump c"] | None:
    """For neurons with these weights, return the centred mean activation in each class; None without classes.

    Targets are classes if, up to a shift, they are one-hot vectors or a single column of zeros and ones.
    """
    if not isinstance(task, Task):
        return None
    raised = task.targets - task.targets.min(axis=0)
    one_or_none = np.isclose(raised, 0.0, atol=1e-9) | np.isclose(raised, 1.0, atol=1e-9)
    if not one_or_none.all() or not (task.output_dimension == 1 or np.allclose(raised.sum(axis=1), 1.0)):
        return None
    answers = task.inputs @ maps.T + biases
    if isinstance(network, TwoLayer | BiasedTwoLayer):
        answers = np.asarray(network.activation(answers))
    return (answers.T @ raised) / np.maximum(raised.sum(axis=0), 1.0) - answers.mean(axis=0)[:, None]


def _side(network: Any) -> Side:
    if not isinstance(network, TwoLayer | BiasedTwoLayer):
        return Side.BOTH
    activation = network.activation
    if activation.positive == -activation.negative:
        return Side.BOTH
    return Side.FAR if activation.positive == activation.negative else Side.HIGH
