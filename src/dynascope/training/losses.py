"""Losses of outputs and targets, and their means over samples."""

from __future__ import annotations

import dataclasses
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
_ROUNDING = 1e-6  # rows of probabilities may come in single precision
_TOGETHER = 1000  # samples at a time in evaluation


@checked
@dataclasses.dataclass(frozen=True)
class Loss:
    """A mean over samples of a loss of outputs f(x), shape (n, c), and targets.

    The name or the function alone, as in `loss="cross_entropy"`, stands for `Loss("cross_entropy")`.

    Targets are numbers (n, c), or class labels (n,), which stand for one-hot rows e_y. With a single output two labels
    stand for −1 and 1.

    Attributes:
        kind: "squared", ½‖f − y‖²; "cross_entropy", −Σ_k y_k log softmax(f)_k; "exponential" or "logistic", of the
            margin y f of a single output with targets −1 and 1, or summed over the margins f_y − f_k of several; or a
            JAX function of outputs and targets with one value for each sample, or for each entry of the outputs.
        label_smoothing: s of the cross-entropy, which replaces the targets by (1 − s) y + s/c.
        over_outputs: Whether the values of a sample are summed or averaged. The cross-entropy, a single value for all
            classes, is what it is; margins are averaged over the c − 1 other classes.

    Raises:
        InputError: An unknown name, or a label smoothing of another loss than the cross-entropy.

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
            f"label_smoothing is {self.label_smoothing} and loss is {self.kind!r}",
            argument="label_smoothing",
            value=self.label_smoothing,
            remedy='smooth the labels of loss="cross_entropy"',
        )

    @classmethod
    def of(cls, loss: LossName | Callable[[Any, Any], Any] | Loss) -> Loss:
        """The loss, or that of this name or function."""
        return loss if isinstance(loss, Loss) else cls(loss)

    @property
    def name(self) -> str:
        """Its name, or that of the function."""
        return self.kind if isinstance(self.kind, str) else getattr(self.kind, "__name__", type(self.kind).__name__)

    @property
    def convention(self) -> str:
        """What records say of the loss and of time."""
        if self == Loss():
            return CONVENTION
        if not isinstance(self.kind, str):
            return f"loss = E {self.name}(f(x), y) (mean over samples, {self.over_outputs} over outputs); {_TIME}"
        smoothed = f", y smoothed by {self.label_smoothing:g}" if self.label_smoothing else ""
        over = "" if self.kind == "cross_entropy" else f", {self.over_outputs} over outputs"
        return f"loss = {_FORMULAS[self.kind]} (mean over samples{over}{smoothed}); {_TIME}"

    @property
    def classifies(self) -> bool:
        """Whether its targets are classes."""
        return isinstance(self.kind, str) and self.kind != "squared"

    def each(self, outputs: Float[Array, "n ..."], targets: Any) -> Float[Array, " n"]:
        """The loss of every sample.

        Example:
            >>> outputs, labels = np.array([[0.0, 0.0]]), np.array([1])
            >>> each = jax.jit(lambda outputs: [Loss(kind).each(outputs, labels)[0] for kind in _FORMULAS])
            >>> [round(float(loss), 4) for loss in each(outputs)]
            [0.5, 0.6931, 1.0, 0.6931]
        """
        if self.kind == "cross_entropy":
            classes = outputs.shape[-1]
            rows = (1 - self.label_smoothing) * _numbers(targets, outputs) + self.label_smoothing / classes
            return self._over(optax.softmax_cross_entropy(outputs, rows))
        if self.kind == "squared":
            return self._over((outputs - _numbers(targets, outputs)) ** 2) / 2
        if not isinstance(self.kind, str):
            form = "give a JAX function of outputs and targets with one value for each sample, or for each output"
            with calling("loss", self.name, form):
                return self._over(self.kind(outputs, targets))
        growing = jnp.exp if self.kind == "exponential" else jax.nn.softplus
        rows = _numbers(targets, outputs)
        if outputs.shape[-1] == 1:
            return self._over(growing(-rows * outputs))
        gaps = outputs - jnp.sum(rows * outputs, axis=-1, keepdims=True)
        values = jnp.sum((1 - rows) * growing(gaps), axis=-1)
        return values / (outputs.shape[-1] - 1) if self.over_outputs == "mean" else values

    def right(self, outputs: Float[Array, "n c"], targets: Any) -> Bool[Array, " n"]:
        """Whether the largest output is that of the class, or a single output has the sign of its target."""
        rows = _numbers(targets, outputs)
        if outputs.shape[-1] == 1:
            return (outputs * rows > 0)[..., 0]
        return jnp.argmax(outputs, axis=-1) == jnp.argmax(rows, axis=-1)

    def _over(self, values: Array) -> Array:
        reduce = jnp.sum if self.over_outputs == "sum" else jnp.mean
        return reduce(values, axis=tuple(range(1, values.ndim))) if values.ndim > 1 else values


def check_targets(loss: Loss, targets: np.ndarray, outputs: tuple[int, ...], name: str) -> None:
    """Raise `InputError` unless the targets of the samples of this name are those that the loss is defined for."""
    if targets.dtype.kind in "iu":
        classes, most = int(targets.max()) + 1, max(outputs[-1], 2)
        require(
            classes <= most and (outputs[-1] > 1 or loss.kind not in ("squared", "cross_entropy")),
            f"the labels go up to {classes - 1} and the network has {outputs[-1]} outputs",
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
        f"the targets go from {targets.min():.6g} to {targets.max():.6g}, and the loss is {loss.name}",
        argument=name,
        value=(float(targets.min()), float(targets.max())),
        remedy=remedy,
    )


def applied(function: Callable[[Any], Any], network: Any, inputs: Any) -> Any:
    """Outputs of a function of the network; raises `InputError` if it does not take such inputs."""
    try:
        return function(inputs)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the network cannot be applied to the inputs ({shown_error(error)})",
            argument="network",
            value=type(network).__name__,
            remedy=f"pass a function of a batch of shape {inputs.shape}",
        ) from error


def losses(loss: Loss, outputs: Any, batch: Batch) -> Array:
    """The loss of every sample; raises `InputError` if outputs, targets and loss do not fit together."""
    inputs, targets = batch.inputs, batch.targets
    labels = jnp.issubdtype(targets.dtype, jnp.integer)
    # A function of the user may compare outputs with targets of another shape.
    if isinstance(loss.kind, str):
        fits = outputs.shape[:-1] == targets.shape if labels else outputs.shape == targets.shape
        require(
            fits and outputs.ndim > 1,
            f"the network's outputs have shape {outputs.shape}",
            argument="network",
            value=outputs.shape,
            remedy=f"pass a function of a batch of shape {inputs.shape} with outputs of shape "
            f"{(*targets.shape, 'classes') if labels else targets.shape}",
        )
        require(
            loss.kind != "cross_entropy" or outputs.shape[-1] > 1,
            "the loss is cross_entropy and the network has one output, whose softmax is one",
            argument="network",
            value=outputs.shape,
            remedy="give it one output for each class, or choose the logistic loss",
        )
    values = loss.each(outputs, targets)
    require(
        values.shape == inputs.shape[:1],
        f"the loss {loss.name} has values of shape {values.shape} for {len(inputs)} samples",
        argument="loss",
        value=values.shape,
        remedy="return one value for each sample, or one for each entry of the outputs",
    )
    return values


def evaluated(loss: Loss, network: Any, data: Batch, dtype: Any, *, right: bool) -> dict[str, Array]:
    """Mean loss of a network, and its accuracy if required, computed some samples at a time."""
    samples = len(data.inputs)

    def sums(batch: Batch, counted: Any) -> Array:
        outputs = applied(network, network, jnp.asarray(batch.inputs)).astype(dtype)
        each = losses(loss, outputs, batch)
        hits = loss.right(outputs, batch.targets) if right else jnp.zeros_like(each)
        return jnp.stack([jnp.sum(jnp.where(counted, values, 0)) for values in (each, hits)]).astype(dtype)

    def block(first: Any) -> Array:
        rows = first + jnp.arange(_TOGETHER)
        # The last block is filled up with samples that do not count.
        kept = jnp.minimum(rows, samples - 1)
        return sums(jax.tree.map(lambda values: values[kept], data), rows < samples)

    if samples <= _TOGETHER:
        found = sums(data, True)
    else:
        found = jax.lax.map(block, _TOGETHER * jnp.arange(-(-samples // _TOGETHER))).sum(axis=0)
    means = found / samples
    return {"loss": means[0], "accuracy": means[1]} if right else {"loss": means[0]}


def _numbers(targets: Any, outputs: Any) -> Any:
    """Targets as numbers: one-hot rows for labels, and −1 or 1 where there is a single output."""
    if not jnp.issubdtype(jnp.result_type(targets), jnp.integer):
        return targets
    if outputs.shape[-1] == 1:
        return (2 * targets[:, None] - 1).astype(outputs.dtype)
    return jax.nn.one_hot(targets, outputs.shape[-1], dtype=outputs.dtype)
