"""A snapshot of a training run: everything that probes can read after one step, in arrays of any library."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["ForwardPass", "Initial", "MicroBatches", "Snapshot"]


@dataclasses.dataclass(frozen=True)
class ForwardPass:
    """The results of one forward pass on the reference batch, in evaluation mode.

    Every array has one row per sample; for images and sequences, one row per position.

    Attributes:
        outputs: The outputs, shape (n, c).
        preactivations: The inputs of the activation functions by name, shapes (rows, units).
        features: The features of the recorded layers by name, shapes (rows, p).
        readout: The name of the features that the last linear layer receives; empty if there is none.
        readout_weight: The weight of the last linear layer, shape (c, p).
        readout_bias: The bias of the last linear layer, shape (c,); None if it has none.
        unread: The layers whose features are requested but not available.
        raw_outputs: The outputs in the shape in which the model returns them; None if they are not available.
    """

    outputs: Any
    preactivations: Mapping[str, Any]
    features: Mapping[str, Any]
    readout: str = ""
    readout_weight: Any = None
    readout_bias: Any = None
    unread: tuple[str, ...] = ()
    raw_outputs: Any = None


@dataclasses.dataclass(frozen=True)
class Initial:
    """The first snapshot of a run, with which later ones are compared.

    Attributes:
        weights: A copy of the weights by name.
        active: Whether each unit is active (z > 0), by activation, as NumPy arrays of shapes (rows, units).
        kernel: The pseudo-kernel of the first examples, shape (m, m); None if it is not measured.
        exact_kernel: The exact kernel of the first examples, shape (m, m); None if it is not measured.
    """

    weights: Mapping[str, Any]
    active: Mapping[str, np.ndarray]
    kernel: np.ndarray | None = None
    exact_kernel: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class MicroBatches:
    """The gradients of the micro-batches of one step, whose mean is the gradient of the step.

    Attributes:
        squares: ‖g_i‖² of each micro-batch.
        mean_square: ‖ḡ‖² of the mean gradient.
        size: Number of examples in a micro-batch.
    """

    squares: tuple[float, ...]
    mean_square: float
    size: int


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """The state of a training run after one step.

    Expensive quantities are computed when a probe first reads them, and at most once.

    Attributes:
        weights: The trainable weights by name.
        initial: The first snapshot; None if this is the first one.
        before: The weights before the last step; None if unknown.
        gradients: The gradients of the last step by name; None if unknown.
        targets: The targets of the reference batch, shape (n,) for labels or (n, c); None if there are none.
        compute_forward: Computes the forward pass.
        compute_kernel: Computes the neural tangent kernel of the first examples.
        micro_batches: The gradients of the micro-batches of the last step; None if unknown.
        compute_exact_kernel: Computes the exact neural tangent kernel of the first examples, averaged over outputs.
        compute_curvatures: Computes the largest curvatures of the loss, in descending order; None without a loss.
        compute_batches: Splits the reference batch, and returns the gradients of the batch losses with their curvature
            gᵀHg along each gradient; None without a loss.
        note: Reports once that a part of a measurement failed, and raises in strict recorders.
        units_last: Whether weights have their output units along the last axis, as in x @ W, instead of the first.
        compute_loss: Computes the loss of the reference batch from `forward.raw_outputs`; None without a loss.
        flipped: Whether the label of each row of `targets` is known to be wrong, as a NumPy array of shape (n,); None
            if unknown.
    """

    weights: Mapping[str, Any]
    initial: Initial | None
    before: Mapping[str, Any] | None
    gradients: Mapping[str, Any] | None
    targets: Any
    compute_forward: Callable[[], ForwardPass]
    compute_kernel: Callable[[], Any]
    note: Callable[[str], None]
    micro_batches: MicroBatches | None = None
    compute_exact_kernel: Callable[[], Any] | None = None
    compute_curvatures: Callable[[], np.ndarray] | None = None
    compute_batches: Callable[[], tuple[MicroBatches, Sequence[float]]] | None = None
    units_last: bool = False
    compute_loss: Callable[[Any], Any] | None = None
    flipped: np.ndarray | None = None

    @functools.cached_property
    def forward(self) -> ForwardPass:
        """The forward pass on the reference batch."""
        return self.compute_forward()

    @functools.cached_property
    def kernel(self) -> Any:
        """The neural tangent kernel of the first examples, shape (m, m)."""
        return self.compute_kernel()
