"""The tensors of a reference batch."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import torch

from dynascope.diagnosis.reference_batch import split_reference
from dynascope.errors import InputError
from dynascope.validation import shown_error

__all__ = ["next_token_labels", "reference_tensors"]

_IGNORED = -100


def reference_tensors(reference: Any, device: torch.device) -> tuple[Any, torch.Tensor | None]:
    """Return the inputs and the targets of a reference batch, as copies on the device.

    Raises:
        InputError: If the batch contains values other than tensors.
    """

    def copied(each: Any) -> torch.Tensor:
        return torch.as_tensor(each).detach().to(device, copy=True)

    inputs, targets = split_reference(reference)
    try:
        return jax.tree.map(copied, inputs), None if targets is None else copied(targets)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"the reference batch contains values other than tensors ({shown_error(error)})",
            argument="reference",
            value=type(reference).__name__,
            remedy="give inputs, or a pair of inputs and one tensor of targets, such as next(iter(loader))",
        ) from error


def next_token_labels(inputs: Any, labels: torch.Tensor) -> torch.Tensor:
    """Return labels at the positions whose outputs predict them.

    Language models of `transformers` get their input tokens as labels and compare the output at each position with the
    next token. Labels that are equal to `input_ids`, except where they are −100 (ignored), are therefore moved by one
    position, and the last one is −100. Other labels are returned unchanged.

    Example:
        >>> tokens = torch.tensor([[5, 6, 7]])
        >>> next_token_labels({"input_ids": tokens}, tokens)
        tensor([[   6,    7, -100]])
        >>> next_token_labels({"input_ids": tokens}, tokens + 1)
        tensor([[6, 7, 8]])
    """
    tokens = inputs.get("input_ids") if isinstance(inputs, Mapping) else None
    if tokens is None or tokens.shape != labels.shape or labels.ndim != 2:
        return labels
    if not bool(((labels == tokens) | (labels == _IGNORED)).all()):
        return labels
    return torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], _IGNORED)], dim=1)
