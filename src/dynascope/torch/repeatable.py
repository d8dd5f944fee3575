"""Checks that the results of a module are reproducible, and a context that leaves the module unchanged."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import nn

from dynascope.torch.modules import floating_tensors
from dynascope.validation import require

__all__ = [
    "BATCH_NORMS",
    "draws",
    "require_evaluation_mode",
    "require_no_draws",
    "require_repeatable",
    "require_same",
    "rounding",
    "unchanged",
]

BATCH_NORMS = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm
_DROPOUTS = nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout
_ROUNDINGS = 100  # sums of 10⁴ terms in a different order differ by about √10⁴ ε
_STILL = "disable dropout (module.eval(), or training=False in functions), and draw noise once before the call"
_SAME = "disable random operations (module.eval()), and avoid state that changes between calls"

Result = TypeVar("Result")


def require_evaluation_mode(argument: str, module: nn.Module, *, purpose: str) -> None:
    """Raise `InputError` if a layer in training mode draws random numbers or uses statistics of the batch."""
    moving = [
        f"{type(each).__name__} {name!r}"
        for name, each in module.named_modules()
        if each.training and (isinstance(each, (*BATCH_NORMS, nn.RReLU)) or _drops(each))
    ]
    require(
        not moving,
        f"the module is in training mode and contains {', '.join(moving[:3])}"
        f"{' and others' if len(moving) > 3 else ''}",
        argument=argument,
        value=moving,
        remedy=f"call module.eval() first, so that {purpose}",
    )


def require_repeatable(argument: str, function: Callable[[], Result], device: torch.device) -> Result:
    """Return the result of a function, after checking that it is reproducible and draws no random numbers.

    Raises:
        InputError: If the function draws PyTorch random numbers, or a second call returns a different result.
    """
    first, drew = draws(function, device)
    require_no_draws(argument, drew)
    require_same(argument, first, draws(function, device)[0])
    return first


def require_no_draws(argument: str, drew: bool) -> None:
    """Raise `InputError` if a call drew random numbers."""
    require(not drew, f"{argument} draws random numbers", argument=argument, remedy=_STILL)


def require_same(argument: str, first: Any, second: Any) -> None:
    """Raise `InputError` unless the outputs of two calls are equal up to rounding."""
    one, two = (list(floating_tensors(each)) for each in (first, second))
    require(
        len(one) == len(two) and all(map(_same, one, two)),
        f"{argument} gives different results in repeated calls",
        argument=argument,
        remedy=_SAME,
    )


def draws(function: Callable[[], Result], device: torch.device) -> tuple[Result, bool]:
    """Return the result of a function and whether it drew PyTorch random numbers; the random state is restored."""
    with torch.random.fork_rng(_forked(device)):
        before = _random_states(device)
        result = function()
        return result, not all(map(torch.equal, before, _random_states(device)))


def rounding(dtype: torch.dtype) -> float:
    """Return the relative difference below which two results count as equal.

    Example:
        >>> print(f"{rounding(torch.float32):.1e}")
        1.2e-05
    """
    # 16-bit numbers are summed in 32 bits and then rounded.
    epsilon = torch.finfo(dtype).eps
    return _ROUNDINGS * min(epsilon, torch.finfo(torch.float32).eps) + 2 * epsilon


@contextmanager
def unchanged(module: nn.Module, device: torch.device) -> Iterator[None]:
    """Restore the buffers of a module and the random state of PyTorch on exit.

    Example:
        >>> layer = nn.BatchNorm1d(2)
        >>> with unchanged(layer, torch.device("cpu")):
        ...     _ = layer(torch.rand(4, 2))
        >>> layer.running_mean.tolist()
        [0.0, 0.0]
    """
    owned = [(inner, *named) for inner in module.modules() for named in inner.named_buffers(recurse=False)]
    copies = [each.detach().clone() for _, _, each in owned]
    with torch.random.fork_rng(_forked(device)):
        try:
            yield
        finally:
            for (inner, name, buffer), copy in zip(owned, copies, strict=True):
                if not torch.equal(buffer, copy):
                    with torch.no_grad():
                        buffer.copy_(copy)
                if getattr(inner, name) is not buffer:
                    setattr(inner, name, buffer)


def _drops(layer: nn.Module) -> bool:
    if isinstance(layer, _DROPOUTS):
        return layer.p > 0
    if isinstance(layer, nn.RNNBase):
        return layer.dropout > 0 and layer.num_layers > 1
    return isinstance(layer, nn.MultiheadAttention) and layer.dropout > 0


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    if one.shape != two.shape or one.numel() == 0:
        return one.shape == two.shape
    size = float(one.detach().abs().nan_to_num(0.0, 0.0, 0.0).max())
    return torch.allclose(one, two, rtol=0.0, atol=rounding(one.dtype) * size, equal_nan=True)


def _forked(device: torch.device) -> list[torch.device]:
    return [device] if device.type == "cuda" else []


def _random_states(device: torch.device) -> list[torch.Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(each) for each in _forked(device))]
