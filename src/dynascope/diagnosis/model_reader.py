"""The interface between recorders and the framework of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dynascope.diagnosis.probe import Sizes
from dynascope.diagnosis.snapshot import ForwardPass, MicroBatches

__all__ = ["ModelReader"]


@runtime_checkable
class ModelReader(Protocol):
    """Reads the state of a model. The methods of a reader must not change training.

    Attributes:
        targets: The targets of the reference batch; None if there are none.
        flipped: Whether the label of each row of the targets is known to be wrong; None if unknown.
        knows_loss: Whether the loss of the reference batch can be computed.
        units_last: Whether weights have their output units along the last axis, as in x @ W, instead of the first.
        compiles: Whether the first measurement includes the time to compile it.
        needs_gradients: Whether missing gradients are reported, because they were probably cleared too early.
    """

    targets: Any
    flipped: np.ndarray | None
    knows_loss: bool
    units_last: bool
    compiles: bool
    needs_gradients: bool

    def weights(self) -> dict[str, Any]:
        """Return the trainable weights by name."""
        ...

    def copied_weights(self) -> dict[str, Any]:
        """Return copies of the trainable weights."""
        ...

    def restored(self, weights: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return saved weights as arrays of the framework, on the device of the model."""
        ...

    def gradients(self) -> dict[str, Any] | None:
        """Return the gradients of the last step by name; None if they are not available."""
        ...

    def forward(self) -> ForwardPass:
        """Run the model on the reference batch in evaluation mode."""
        ...

    def loss(self, outputs: Any) -> Any:
        """Return the loss of the reference batch, given the outputs as the model returns them."""
        ...

    def kernel(self) -> Any:
        """Return the pseudo-kernel of the first examples, shape (m, m)."""
        ...

    def exact_kernel(self) -> Any:
        """Return the exact neural tangent kernel of the first examples, averaged over outputs, shape (m, m)."""
        ...

    def curvatures(self) -> np.ndarray:
        """Return the largest curvatures of the loss on the reference batch, in descending order."""
        ...

    def batches(self) -> tuple[MicroBatches, Sequence[float]]:
        """Split the reference batch, and return the gradients of the batch losses with gᵀHg along each gradient."""
        ...

    def sizes(self, forward: ForwardPass) -> Sizes:
        """Return the sizes of the model and of the reference batch."""
        ...

    def unchanged(self) -> contextlib.AbstractContextManager[Any]:
        """Restore on exit all state that measurements could change, such as the state of random number generators."""
        ...
