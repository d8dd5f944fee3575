"""Networks of samples, mapped over a batch."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

from dynascope.errors import InputError

__all__ = ["BatchedNetwork", "accepts", "maps_samples"]


class BatchedNetwork(eqx.Module):
    """A network that maps single samples, applied to a batch."""

    network: Any

    def __call__(self, x: Any) -> Any:
        """Compute the outputs for a batch."""
        return jax.vmap(self.network)(x)


def maps_samples(network: Any, batch: tuple[int, ...], dtype: Any = np.float32) -> bool | None:
    """Return whether a network maps single samples instead of batches of a shape; None if it accepts neither."""
    if accepts(network, batch, dtype):
        return False
    return True if accepts(network, batch[1:], dtype) else None


def accepts(network: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> bool:
    """Return whether a network can be applied to inputs of a shape."""
    try:
        jax.eval_shape(network, jax.ShapeDtypeStruct(shape, dtype))
    except (TypeError, ValueError, AssertionError, InputError):
        return False
    return True
