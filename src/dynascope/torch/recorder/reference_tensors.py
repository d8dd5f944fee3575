"""The tensors of a reference batch."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import jax
import torch

from dynascope.diagnosis.reference_batch import split_reference
from dynascope.errors import InputError
from dynascope.validation import shown_error

__all__ = ["reference_tensors"]


def reference_tensors(reference: Any, device: torch.device) -> tuple[Any, torch.Tensor | None]:
    """Return the inputs and the targets of a reference batch, as copies on the device.

    Raises:
        InputError: The batch contains more than tensors.
    """

    def copied(each: Any) -> torch.Tensor:
        return torch.as_tensor(each).detach().to(device, copy=True)

    inputs, targets = split_reference(reference)
    try:
        return jax.tree.map(copied, inputs), None if targets is None else copied(targets)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"the reference batch contains more than tensors ({shown_error(error)})",
            argument="reference",
            value=type(reference).__name__,
            remedy="give inputs, or a pair of inputs and one tensor of targets",
        ) from error
