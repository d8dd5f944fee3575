"""Patches of the inputs that a convolution multiplies with its kernel."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence

import torch

__all__ = ["patches"]


def patches(
    x: torch.Tensor,
    window: Sequence[int],
    stride: int | Sequence[int],
    padding: int | str | Sequence[int],
    dilation: int | Sequence[int],
) -> torch.Tensor:
    """Return the patches of x (n, channels, ...) in the order of the output positions of a convolution.

    Args:
        x: Input of the convolution.
        window: Size of the kernel along each axis.
        stride: Stride, as for `torch.nn.functional.conv2d`.
        padding: Number of zeros before and after each axis, or "valid" or "same".
        dilation: Distance between elements of the kernel.

    Returns:
        Patches of shape (n, ..., channels·window).
    """
    axes = len(window)
    strides, dilations = _along(stride, axes), _along(dilation, axes)
    sides = []
    for axis in range(axes):
        missing = dilations[axis] * (window[axis] - 1)
        if isinstance(padding, str):
            before = missing // 2 if padding == "same" else 0
            after = missing - before if padding == "same" else 0
        else:
            before = after = _along(padding, axes)[axis]
        sides.append((before, after))
    # `pad` takes the last axis first.
    found = torch.nn.functional.pad(x, [each for side in reversed(sides) for each in side])
    for axis in range(axes):
        reach = dilations[axis] * (window[axis] - 1) + 1
        found = found.unfold(2 + axis, reach, strides[axis])[..., :: dilations[axis]]
    # From (n, channels, places, window) to (n, places, channels, window).
    return found.movedim(1, 1 + axes).flatten(1 + axes)


def _along(value: int | Sequence[int], axes: int) -> Sequence[int]:
    if isinstance(value, int):
        return (value,) * axes
    return tuple(value) * (axes if len(value) == 1 else 1)
