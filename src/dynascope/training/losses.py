"""Loss functions of outputs and targets, and their means over samples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from annotated_types import Interval
from jax import Array
from jaxtyping import Bool, Float

from dynascope.errors import InputError
from dynascope.results import CONVENTION
from dynascope.training.batches import Batch
from dynascope.validation import calling, checked, require, require_function, shown_error

__all__ = ["Loss", "LossName", "applied", "check_targets", "evaluated", "losses"]

LossName = Literal["squared", "cross_entropy", "exponential", "logistic"]

_FORMULAS: dict[str, str] = {
    "squared": "½ E‖f(x) − y‖²",
    "cross_entropy": "−E Σ_k y_k log softmax(f(x))_k (natural logarithm)",
    "exponential": "E exp(−y f(x)), or with several outputs E Σ_{k≠y} exp(f(x)_k − f(x)_y)",
    "logistic": "E log(1 + exp(−y f(x))), or with several outputs E Σ_{k≠y} log(1 + exp(f(x)_k − f(x)_y))",
}
_TIME = "time = sum of learning rates"
_ROUNDING = 1e-6  # tolerance of the sums of probabilities, which may be in single precision
_TOGETHER = 1000  # samples per block in evaluation,
_POSITIONS_TOGETHER = 4096  # and positions, if samples have several


@checked
@dataclasses.dataclass(frozen=True)
class Loss:
    """Mean over samples of a loss of the outputs f(x), shape (n, c), and the targets.

    `loss="cross_entropy"` is short for `loss=Loss("cross_entropy")`; a function can also be given directly.

    Targets are numbers, shape (n, c), or class labels, shape (n,), which are converted to one-hot rows e_y. For a
    single output, the labels 0 and 1 are converted to the targets −1 and 1. For outputs at several positions, shape
    (n, positions, c), labels have shape (n, positions), and the loss of a sample is the mean over its positions.

    Attributes:
        kind: "squared", ½‖f − y‖²; "cross_entropy", −Σ_k y_k log softmax(f)_k; "exponential"; "logistic"; or a JAX
            function of outputs and targets that returns one value for each sample, or for each entry of the outputs.
            For a single output with targets −1 and 1, the exponential and the logistic loss are functions of the margin
            y f. For several outputs, these losses are summed over the margins f_y − f_k.
        label_smoothing: s, 0 ≤ s < 1, for the cross-entropy: the targets become (1 − s) y + s/c.
        over_outputs: Whether the loss of a sample is the "sum" or the "mean" over the outputs. For margins, the mean is
            over the c − 1 other classes. The cross-entropy does not depend on this argument.

    Raises:
        InputError: If the name is unknown, or `label_smoothing` is used with a loss other than the cross-entropy.

    Example:
        >>> Loss("cross_entropy", label_smoothing=0.1).name
        'cross_entropy'
    """

    kind: LossName | Callable[[Any, Any], Any] = "squared"
    label_smoothing: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    over_outputs: Literal["sum", "mean"] = "sum"

    def __post_init__(self):
        if callable(self.kind):
            require_function("loss", self.kind)
        require(
            self.label_smoothing == 0 or self.kind == "cross_entropy",
            f"label_smoothing is {self.label_smoothing}, but loss is {self.kind!r}",
            argument="label_smoothing",
            value=self.label_smoothing,
            remedy='use loss="cross_entropy", or omit label_smoothing',
        )

    @classmethod
    def of(cls, loss: LossName | Callable[[Any, Any], Any] | Loss) -> Loss:
        """Return `loss`, or `Loss(loss)` for a name or a function."""
        return loss if isinstance(loss, Loss) else cls(loss)

    @property
    def name(self) -> str:
        """Name of the loss or of its function."""
        return self.kind if isinstance(self.kind, str) else getattr(self.kind, "__name__", type(self.kind).__name__)

    @property
    def convention(self) -> str:
        """Formula of the loss and definition of time, as stated in records."""
        if self == Loss():
            return CONVENTION
        if not isinstance(self.kind, str):
            return f"loss = E {self.name}(f(x), y) (mean over samples, {self.over_outputs} over outputs); {_TIME}"
        smoothed = f", y smoothed by {self.label_smoothing:g}" if self.label_smoothing else ""
        over = "" if self.kind == "cross_entropy" else f", {self.over_outputs} over outputs"
        return f"loss = {_FORMULAS[self.kind]} (mean over samples{over}{smoothed}); {_TIME}"

    @property
    def classifies(self) -> bool:
        """Whether the targets are classes."""
        return isinstance(self.kind, str) and self.kind != "squared"

    def each(self, outputs: Float[Array, "n ..."], targets: Any) -> Float[Array, " n"]:
        """Return the loss of every sample.

        Example:
            >>> outputs, labels = np.array([[0.0, 0.0]]), np.array([1])
            >>> each = jax.jit(lambda outputs: [Loss(kind).each(outputs, labels)[0] for kind in _FORMULAS])
            >>> [round(float(loss), 4) for loss in each(outputs)]
            [0.5, 0.6931, 1.0, 0.6931]
        """
        if self.kind == "cross_entropy":
            classes = outputs.shape[-1]
            rows = (1 - self.label_smoothing) * _numbers(targets, outputs) + self.label_smoothing / classes
            return _over_positions(optax.softmax_cross_entropy(outputs, rows))
        if self.kind == "squared":
            values = (outputs - _numbers(targets, outputs)) ** 2
            return _over_positions(self._over_outputs(values) if _are_labels(targets) else self._over(values)) / 2
        if not isinstance(self.kind, str):
            form = "give a JAX function of outputs and targets that returns one value for each sample or each output"
            with calling("loss", self.name, form):
                return self._over(self.kind(outputs, targets))
        growing = jnp.exp if self.kind == "exponential" else jax.nn.softplus
        rows = _numbers(targets, outputs)
        if outputs.shape[-1] == 1:
            return _over_positions(self._over_outputs(growing(-rows * outputs)))
        gaps = outputs - jnp.sum(rows * outputs, axis=-1, keepdims=True)
        values = jnp.sum((1 - rows) * growing(gaps), axis=-1)
        return _over_positions(values / (outputs.shape[-1] - 1) if self.over_outputs == "mean" else values)

    def right(self, outputs: Float[Array, "n ... c"], targets: Any) -> Bool[Array, "n ..."]:
        """Whether the output of the class is the largest; for a single output, whether it has the target's sign."""
        rows = _numbers(targets, outputs)
        if outputs.shape[-1] == 1:
            return (outputs * rows > 0)[..., 0]
        return jnp.argmax(outputs, axis=-1) == jnp.argmax(rows, axis=-1)

    def _over(self, values: Array) -> Array:
        reduce = jnp.sum if self.over_outputs == "sum" else jnp.mean
        return reduce(values, axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values

    def _over_outputs(self, values: Array) -> Array:
        return jnp.sum(values, axis=-1) if self.over_outputs == "sum" else jnp.mean(values, axis=-1)


def check_targets(loss: Loss, targets: np.ndarray, outputs: tuple[int, ...], name: str) -> None:
    """Raise `InputError` if the loss is not defined for the targets of the argument `name`."""
    if targets.dtype.kind in "iu":
        classes, most = int(targets.max()) + 1, max(outputs[-1], 2)
        require(
            classes <= most and (outputs[-1] > 1 or loss.kind not in ("squared", "cross_entropy")),
            f"the labels go up to {classes - 1}, but the network has {outputs[-1]} output{'s' * (outputs[-1] != 1)}",
            argument="network",
            value=outputs[-1],
            remedy="give the network one output for each class",
        )
        return
    if not loss.classifies:
        return
    if loss.kind == "cross_entropy":
        total = targets.sum(axis=-1)
        fits = bool(np.all(targets >= 0) and np.all(np.abs(total - 1) < _ROUNDING) and outputs[-1] > 1)
        remedy = "give labels, one-hot rows, or rows of probabilities, and a network with one output for each class"
    elif outputs[-1] == 1:
        fits, remedy = bool(np.all(np.abs(targets) == 1)), "give targets −1 and 1"
    else:
        fits = bool(np.all((targets == 0) | (targets == 1)) and np.all(targets.sum(axis=-1) == 1))
        remedy = "give labels or one-hot rows"
    require(
        fits,
        f"the targets range from {targets.min():.6g} to {targets.max():.6g}, but the loss is {loss.name}",
        argument=name,
        value=(float(targets.min()), float(targets.max())),
        remedy=remedy,
    )


def applied(function: Callable[[Any], Any], network: Any, inputs: Any) -> Any:
    """Apply a function of the network to inputs; raise `InputError` if it does not accept them."""
    try:
        return function(inputs)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the network cannot be applied to the inputs ({shown_error(error)})",
            argument="network",
            value=type(network).__name__,
            remedy=f"give a network that accepts a batch of shape {inputs.shape}",
        ) from error


def losses(loss: Loss, outputs: Any, batch: Batch) -> Array:
    """Return the loss of every sample; raise `InputError` if outputs, targets and loss do not match."""
    inputs, targets = batch.inputs, batch.targets
    labels = _are_labels(targets)
    # A user function may compare outputs with targets of another shape.
    if isinstance(loss.kind, str):
        fits = outputs.shape[:-1] == targets.shape if labels else outputs.shape == targets.shape
        require(
            fits and outputs.ndim > 1,
            f"the outputs of the network have shape {outputs.shape}",
            argument="network",
            value=outputs.shape,
            remedy=f"give a network that maps a batch of shape {inputs.shape} to outputs of shape "
            f"{(*targets.shape, 'classes') if labels else targets.shape}",
        )
        require(
            loss.kind != "cross_entropy" or outputs.shape[-1] > 1,
            "the loss is cross_entropy, but the network has a single output, whose softmax is always one",
            argument="network",
            value=outputs.shape,
            remedy="give the network one output for each class, or use the logistic loss",
        )
    values = loss.each(outputs, targets)
    require(
        values.shape == inputs.shape[:1],
        f"the loss {loss.name} returns values of shape {values.shape} for {len(inputs)} samples",
        argument="loss",
        value=values.shape,
        remedy="return one value for each sample, or for each entry of the outputs",
    )
    return values


def evaluated(loss: Loss, network: Any, data: Batch, dtype: Any, *, right: bool) -> dict[str, Array]:
    """Return the mean loss of a network and, if required, its accuracy, computed in blocks of samples."""
    samples = len(data.inputs)
    together = _TOGETHER
    if _are_labels(data.targets) and data.targets.ndim > 1:
        together = max(1, _POSITIONS_TOGETHER // math.prod(data.targets.shape[1:]))

    def sums(batch: Batch, counted: Any) -> Array:
        outputs = applied(network, network, jnp.asarray(batch.inputs)).astype(dtype)
        each = losses(loss, outputs, batch)
        hits = _over_positions(loss.right(outputs, batch.targets)) if right else jnp.zeros_like(each)
        return jnp.stack([jnp.sum(jnp.where(counted, values, 0)) for values in (each, hits)]).astype(dtype)

    def block(first: Any) -> Array:
        rows = first + jnp.arange(together)
        # The last block is padded with samples that do not count.
        kept = jnp.minimum(rows, samples - 1)
        return sums(jax.tree.map(lambda values: values[kept], data), rows < samples)

    if samples <= together:
        found = sums(data, True)
    else:
        found = jax.lax.map(block, together * jnp.arange(-(-samples // together))).sum(axis=0)
    means = found / samples
    return {"loss": means[0], "accuracy": means[1]} if right else {"loss": means[0]}


def _numbers(targets: Any, outputs: Any) -> Any:
    """Convert targets to numbers: labels become one-hot rows, or −1 and 1 for a single output."""
    if not _are_labels(targets):
        return targets
    if outputs.shape[-1] == 1:
        return (2 * targets[..., None] - 1).astype(outputs.dtype)
    return jax.nn.one_hot(targets, outputs.shape[-1], dtype=outputs.dtype)


def _are_labels(targets: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(targets), jnp.integer)


def _over_positions(values: Array) -> Array:
    """Return the mean over all axes after the first."""
    return jnp.mean(values, axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values
